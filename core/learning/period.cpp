// SPDX-License-Identifier: BSD-3-Clause
// From calls to slots: the period of the sequence of calls, and what the slots have seen.
#include <algorithm>

#include "core/base/text.hpp"
#include "core/learning/learner.hpp"
#include "core/pap/pattern.hpp"

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
    slot->signature = signature, slot->hash = hash;
    slot->site = site;
    if (const auto* before = history_of_ ? history_of_(site, signature.op) : nullptr) slot->predictor.seed(*before);
  }
  return slot.get();
}

void Learner::see(const CallSeen& call) {
  const std::uint64_t hash = call.signature.hash(), key = key_of(hash, call.site);
  divergent_ = divergent_ || call.divergent;
  if (call.n != next_) {
    history_.clear();
    if (call.n < next_) return;
  }
  next_ = call.n + 1;
  if (history_.size() == 2 * kHistory) history_.erase(history_.begin(), history_.begin() + kHistory);
  history_.push_back(key);

  Slot* slot = nullptr;
  if (!slots_.empty()) {
    Slot& expected = *slots_[(call.n - first_) % slots_.size()];
    if (expected.site == call.site && expected.hash == hash) slot = &expected;
    else end_period();  // the next announcement looks again
  }
  if (!slot) slot = slot_of(call.signature, hash, call.site);
  if (!slot) return;
  ++slot->calls;
  if (call.signature.kind != CallKind::blocking) return;
  slot->edged = call.edge ? slot->edged + 1 : 0;
  slot->spent += call.mean_elapsed;
  Rank last = call.last;
  Nanoseconds imbalance = call.imbalance;
  if (!call.offsets.empty()) {
    slot->predictor.add(call.offsets);
    const auto [first, latest] = std::ranges::minmax(call.offsets);
    last = last_rank([&](std::size_t i) { return call.offsets[i]; }, first, latest, call.tie);
    imbalance = latest - first;
  }
  slot->came_last.resize(static_cast<std::size_t>(ranks_));
  if (last >= 0) ++slot->came_last[static_cast<std::size_t>(last)];
  ++slot->seen, slot->imbalance += static_cast<double>(imbalance);
  if (!call.sizes.empty()) slot->expected.add(call.sizes);
  if (call.after_last < 0) return;
  if (call.algorithm < 0) {
    slot->native.add(call.after_last, call.mean_elapsed);
    if (slot->on_trial && call.n >= slot->counts_from) ++slot->after_trial;
    return;
  }
  if (slot->on_trial && slot->native.enough())
    slot->risked = std::max(0.0, slot->risked + static_cast<double>(call.after_last) - slot->native.median_after());
  if (call.algorithm == slot->algorithm && call.n >= slot->counts_from)
    slot->current.add(call.after_last, call.mean_elapsed);
}

/// What the slots learnt stays with their sites.
void Learner::end_period() {
  for (auto& slot : slots_) {
    const std::uint64_t key = key_of(slot->hash, slot->site);
    by_key_[key] = std::move(slot);
  }
  slots_.clear();
}

/// The longest stretch of calls up to now that has a period, and that twice: prefix function of the reversed history.
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
    if (2 * p <= i + 1 && i + 1 >= kShortest) period = p, length = i + 1;
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
}

}  // namespace latecomer::core
