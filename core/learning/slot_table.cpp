// SPDX-License-Identifier: BSD-3-Clause
// Finds the period by the prefix function of the reversed history.
#include "core/learning/slot_table.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/learning/forecast.hpp"
#include "core/learning/rota.hpp"

namespace latecomer::core {
namespace {

std::uint64_t key_of(std::uint64_t hash, std::uint64_t site) { return mix64(hash ^ mix64(site)); }

void start_with_winner(Slot& slot, const Learned& won) {
  slot.earlier = won;
  slot.proven = won.algorithm;
  slot.proven_segments = won.segments;
  slot.algorithm = won.algorithm;
  slot.segments = won.segments;
  slot.overlap = won.overlap;
  slot.model.pattern = won.pattern;
  slot.model.flat = won.pattern.empty();
  slot.model.sizes = won.sizes;
  slot.announced_sizes = won.sizes;
  if (algorithm_at(won.algorithm).uses_pattern()) slot.announced = won.pattern;
  if (!won.pattern.empty()) slot.arrivals.predictor.fill_window(won.pattern);
  slot.counts_from = 0;
}

}  // namespace

SlotTable::SlotTable(const LearningTerms& terms, std::size_t memory) : terms_(terms) {
  const std::size_t each = sizeof(Slot) + static_cast<std::size_t>(terms.ranks) *
                                              (2 * static_cast<std::size_t>(terms.policy.predictor_window) + 8) *
                                              sizeof(Nanoseconds);
  most_slots_ = std::clamp<std::size_t>(memory / each, 4, kHistory / 2);
}

Slot* SlotTable::find_slot_of_site(const CallSeen& call, std::uint64_t hash, std::uint64_t key) {
  auto& slot = by_key_[key];
  if (slot) return slot.get();
  if (by_key_.size() > most_slots_) {
    by_key_.erase(key);
    return nullptr;
  }
  slot = std::make_unique<Slot>(terms_.ranks, terms_.policy.predictor_window);
  slot->signature = call.signature;
  slot->hash = hash;
  slot->site = call.site;
  if (const Learned* won = winner_of_ ? winner_of_(call.site, call.signature) : nullptr) {
    slot->expected.sizes = won->sizes;
    if (is_allowed(terms_, *slot, won->algorithm, won->segments)) start_with_winner(*slot, *won);
  }
  return slot.get();
}

/// Adds the call to the history. Returns nullptr if it has no slot.
Slot* SlotTable::find_slot(const CallSeen& call) {
  const std::uint64_t hash = call.signature.hash(), key = key_of(hash, call.site);
  const auto before = std::exchange(previous_, {});
  if (call.n != next_) {
    history_.clear();
    if (call.n < next_) return nullptr;
  } else if (before.slot && call.arrived > before.arrived) {
    Rota& rota = before.slot->rota;
    if (Runner* runner =
            before.n >= rota.counts_from && rota.interleaved() ? rota.find_runner(before.algorithm) : nullptr)
      runner->measured.add_until_next(call.arrived - before.arrived);
  }
  next_ = call.n + 1;
  if (history_.size() == 2 * kHistory) history_.erase(history_.begin(), history_.begin() + kHistory);
  history_.push_back(key);
  if (!positions_.empty()) {
    Slot& expected = *positions_[(call.n - first_) % positions_.size()];
    if (expected.site == call.site && expected.hash == hash) return &expected;
    end_period();  // the next announcement looks for a new period
  }
  return find_slot_of_site(call, hash, key);
}

void SlotTable::record_call(const CallSeen& call) {
  Slot* slot = find_slot(call);
  if (!slot) return;
  ++slot->calls;
  if (call.signature.kind != CallKind::blocking) return;
  slot->edged = call.edge ? slot->edged + 1 : 0;
  slot->spent += call.mean_elapsed;
  record_arrivals(slot->arrivals, call);
  if (!call.sizes.empty()) slot->expected.add_call(call.sizes);
  if (call.arrived >= 0) previous_ = {slot, call.n, call.algorithm, call.arrived};
  if (call.after_last < 0) return;
  if (call.n >= slot->rota.counts_from && slot->rota.running()) record_turn(*slot, call);
  if (call.algorithm < 0) slot->native.add_call(call.after_last, call.mean_elapsed);
  else if (call.algorithm == slot->algorithm && call.n >= slot->counts_from)
    slot->current.add_call(call.after_last, call.mean_elapsed);
}

/// Ends the period. Each position becomes the slot of its signature and call site again.
void SlotTable::end_period() {
  previous_ = {};
  for (auto& slot : positions_) {
    const std::uint64_t key = key_of(slot->hash, slot->site);
    by_key_[key] = std::move(slot);
  }
  positions_.clear();
}

void SlotTable::find_period() {
  // Derived: let two kinds of calls come at random. Then the latest calls seem to have a period p with probability
  // 2^-(24 - p) up to p = 12, and 2^-p beyond. The sum is below 0.1%.
  constexpr std::size_t kShortest = 24;
  if (!positions_.empty()) return;
  const std::size_t m = std::min(history_.size(), kHistory);
  std::vector<std::size_t> fail(m, 0);
  const auto at = [&](std::size_t i) { return history_[history_.size() - 1 - i]; };
  std::size_t period = 0, length = 0;
  for (std::size_t i = 1; i < m; ++i) {
    std::size_t k = fail[i - 1];
    while (k > 0 && at(i) != at(k)) k = fail[k - 1];
    if (at(i) == at(k)) ++k;
    fail[i] = k;
    const std::size_t p = i + 1 - k;
    if (2 * p <= i + 1 && i + 1 >= kShortest) {
      period = p;
      length = i + 1;
    }
  }
  if (period == 0 || period > most_slots_) return;
  first_ = next_ - length;
  for (std::size_t s = 0; s < period; ++s) {
    const auto known = by_key_.find(at(length - 1 - s));
    if (known == by_key_.end()) {
      positions_.clear();
      return;
    }
    positions_.push_back(std::make_unique<Slot>(*known->second));
  }
  previous_ = {};
}

std::vector<Slot*> SlotTable::slots() const {
  std::vector<Slot*> out;
  if (!positions_.empty())
    for (const auto& slot : positions_) out.push_back(slot.get());
  else
    for (const auto& [key, slot] : by_key_) out.push_back(slot.get());
  return out;
}

bool SlotTable::has_signature(std::uint64_t hash) const {
  return std::ranges::any_of(by_key_, [&](const auto& one) { return one.second->hash == hash; });
}

}  // namespace latecomer::core
