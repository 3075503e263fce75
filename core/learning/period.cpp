// SPDX-License-Identifier: BSD-3-Clause
// Assigns calls to slots: finds the period of the sequence of calls, and registers each call in its slot.
#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/learning/learner.hpp"

namespace latecomer::core {
namespace {

std::uint64_t key_of(std::uint64_t hash, std::uint64_t site) { return mix64(hash ^ mix64(site)); }

}  // namespace

Learner::Slot* Learner::slot_of(const Signature& signature, std::uint64_t hash, std::uint64_t site) {
  auto& slot = by_key_[key_of(hash, site)];
  if (!slot) {
    if (by_key_.size() > most_slots_) {
      by_key_.erase(key_of(hash, site));
      return nullptr;
    }
    slot = std::make_unique<Slot>(ranks_, policy_.predictor_window);
    slot->signature = signature;
    slot->hash = hash;
    slot->site = site;
    if (const auto* before = history_of_ ? history_of_(site, signature.op) : nullptr) slot->predictor.seed(*before);
    const Learned* won = winner_of_ ? winner_of_(site, signature) : nullptr;
    if (won) slot->expected.sizes = won->sizes;
    if (won && may(*slot, won->algorithm, won->segments)) {
      slot->earlier = *won;
      slot->proven = won->algorithm;
      slot->proven_segments = won->segments;
      slot->algorithm = won->algorithm;
      slot->segments = won->segments;
      slot->overlap = won->overlap;
      slot->modelled_for = won->pattern;
      slot->modelled_flat = won->pattern.empty();
      slot->modelled_sizes = slot->announced_sizes = won->sizes;
      if (algorithm_at(won->algorithm).uses_pattern()) slot->announced = won->pattern;
      if (!won->pattern.empty()) slot->predictor.seed(won->pattern);
      slot->counts_from = 0;
    }
  }
  return slot.get();
}

Learner::Runner* Learner::Rota::of(int algorithm) {
  const auto at = std::ranges::find_if(runners, [&](const Runner& r) { return r.algorithm == algorithm; });
  return at == runners.end() ? nullptr : &*at;
}

void Learner::see(const CallSeen& call) {
  const std::uint64_t hash = call.signature.hash(), key = key_of(hash, call.site);
  divergent_ = divergent_ || call.divergent;
  const auto before = std::exchange(previous_, {});
  if (call.n != next_) {
    history_.clear();
    if (call.n < next_) return;
  } else if (before.slot && call.arrived > before.arrived) {
    Rota& rota = before.slot->rota;
    if (Runner* runner = before.n >= rota.counts_from && rota.interleaved() ? rota.of(before.algorithm) : nullptr)
      runner->measured.add_next(call.arrived - before.arrived);
  }
  next_ = call.n + 1;
  if (history_.size() == 2 * kHistory) history_.erase(history_.begin(), history_.begin() + kHistory);
  history_.push_back(key);

  Slot* slot = nullptr;
  if (!slots_.empty()) {
    Slot& expected = *slots_[(call.n - first_) % slots_.size()];
    if (expected.site == call.site && expected.hash == hash) slot = &expected;
    else end_period();  // the next announcement looks for a new period
  }
  if (!slot) slot = slot_of(call.signature, hash, call.site);
  if (!slot) return;
  ++slot->calls;
  if (call.signature.kind != CallKind::blocking) return;
  slot->edged = call.edge ? slot->edged + 1 : 0;
  slot->spent += call.mean_elapsed;
  if (!call.offsets.empty()) slot->predictor.add(call.offsets);
  slot->came_last.resize(static_cast<std::size_t>(ranks_));
  if (call.imbalance >= 0) {
    if (call.last >= 0) ++slot->came_last[static_cast<std::size_t>(call.last)];
    ++slot->seen;
    slot->imbalance += static_cast<double>(call.imbalance);
  }
  if (!call.sizes.empty()) slot->expected.add(call.sizes);
  if (call.arrived >= 0) previous_ = {slot, call.n, call.algorithm, call.arrived};
  if (call.after_last < 0) return;
  if (call.n >= slot->rota.counts_from && slot->rota.running()) see_turn(*slot, call);
  if (call.algorithm < 0) slot->native.add(call.after_last, call.mean_elapsed);
  else if (call.algorithm == slot->algorithm && call.n >= slot->counts_from)
    slot->current.add(call.after_last, call.mean_elapsed);
}

/// Adds a call to the algorithm of the rota that served it. Adds the loss of a candidate's call to Slot::risked.
void Learner::see_turn(Slot& slot, const CallSeen& call) {
  Rota& rota = slot.rota;
  ++rota.seen;
  Runner* runner = rota.of(call.algorithm);
  const bool in_use = runner == rota.runners.data();
  rota.in_a_row = in_use ? rota.in_a_row + 1 : 0;
  if (!in_use) {
    const Samples& usual = slot.native.enough() ? slot.native : rota.runners[0].measured;
    if (usual.count > 0)
      slot.risked = std::max(0.0, slot.risked + static_cast<double>(call.after_last) - usual.median_after());
  }
  if (runner && rota.interleaved()) runner->measured.add(call.after_last, call.mean_elapsed);
}

/// Ends the period. Each slot becomes the slot of its signature and call site again.
void Learner::end_period() {
  previous_ = {};
  for (auto& slot : slots_) {
    const std::uint64_t key = key_of(slot->hash, slot->site);
    by_key_[key] = std::move(slot);
  }
  slots_.clear();
}

/// Finds the longest stretch of latest calls that contains a period twice: prefix function of the reversed history.
void Learner::find_period() {
  // Derived: let two kinds of calls come at random. Then the latest calls seem to have a period p with probability
  // 2^-(24 - p) up to p = 12, and 2^-p beyond. The sum is below 0.1%.
  constexpr std::size_t kShortest = 24;
  if (!slots_.empty()) return;
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
      slots_.clear();
      return;
    }
    slots_.push_back(std::make_unique<Slot>(*known->second));
  }
  previous_ = {};
}

}  // namespace latecomer::core
