// SPDX-License-Identifier: BSD-3-Clause
// Slow calls and open verdicts get short epochs, and boundaries that wait get long ones.
#include "core/learning/epoch_lengths.hpp"

#include <algorithm>
#include <cmath>

namespace latecomer::core {
namespace {

// Nanoseconds of an epoch while some slot has no verdict, if that is less than Sequence::kSteadyEpoch calls. A verdict
// takes four epochs. A boundary costs some 50 us and 1 us per rank and call. Derived: 50 us are 1% of 5 ms. A shorter
// epoch spends more time on boundaries, a longer one delays verdicts.
constexpr double kLearningEpoch = 5e6;
// Nanoseconds of an epoch after all verdicts. The leader notices a new pattern two epochs after it begins. Derived:
// 50 us are 0.05% of 100 ms.
constexpr double kSettledEpoch = 1e8;
// The least number of calls of a logged epoch between two rests; with more slots, one call per slot. One late arrival
// in these calls ends the rest. Derived: 32 calls are 0.8% of the 4,096 of the longest rest.
constexpr std::uint64_t kGlance = 32;
// Where ranks wait for the leader at boundaries: the share of time that they may wait, except at the first boundaries,
// and the most calls between two boundaries. A larger share costs more, a smaller share delays learning. The limit on
// calls keeps one long wait from ending the learning.
constexpr double kWaiting = 0.01, kMostBetweenWaits = 65'536;

}  // namespace

void EpochLengths::begin_announcement(std::uint64_t n, Nanoseconds now) {
  if (n > n_ && now_ > 0) pace_ = static_cast<double>(now - now_) / static_cast<double>(n - n_);
  n_ = n;
  now_ = now;
}

/// The number of calls of the next epoch, or 0 for the default. Slow calls get shorter epochs: a verdict on calls of
/// 10 ms should not wait for 128 calls.
std::uint64_t EpochLengths::choose_length(const std::vector<Slot*>& slots) const {
  const auto learning = [](const Slot* slot) {
    return slot->reason == Reason::measuring || slot->reason == Reason::tried || slot->reason == Reason::no_budget ||
           (!slot->native.enough() && slot->algorithm < 0);
  };
  const bool early = n_ < Sequence::kSteadyEpoch && slots.empty();
  if (pace_ <= 0) return early ? Sequence::kFirstBoundary : 0;
  const double lasts =
      early || std::ranges::any_of(slots, learning) ? kLearningEpoch * (1 + ranks_ / 100.0) : kSettledEpoch;
  const double calls = std::max(static_cast<double>(Sequence::kShortestEpoch), lasts / pace_);
  if (early) return static_cast<std::uint64_t>(std::min(calls, static_cast<double>(Sequence::kFirstBoundary)));
  return calls < static_cast<double>(Sequence::kSteadyEpoch) ? static_cast<std::uint64_t>(calls) : 0;
}

void EpochLengths::set_epoch(Announcement& announcement, bool quiet, const std::vector<Slot*>& slots) {
  if (!slots.empty()) glance_ = std::clamp<std::uint64_t>(slots.size(), kGlance, Sequence::kSteadyEpoch);
  const Rest::Epoch epoch = rest_.next(quiet, n_, now_, glance_);
  announcement.rest = epoch.rest;
  announcement.epoch = quiet && epoch.calls != 0 ? epoch.calls : epoch.rest ? 0 : choose_length(slots);
  if (waited_ > 0 && pace_ > 0 && n_ >= Sequence::kSteadyEpoch) {  // the first boundaries are fixed
    const auto least = static_cast<std::uint64_t>(std::ceil(std::min(waited_ / (kWaiting * pace_), kMostBetweenWaits)));
    if (least > (announcement.epoch ? announcement.epoch : Sequence::kSteadyEpoch)) announcement.epoch = least;
  }
}

}  // namespace latecomer::core
