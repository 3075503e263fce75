// SPDX-License-Identifier: BSD-3-Clause
// The weight of timed calls follows their price.
#include "profiles/record/call_draw.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/agreement/epoch_sample.hpp"

namespace latecomer::profiles {
namespace {

/// The weight does not rise if the standard error of the sum would become a larger share of it, were the calls of the
/// latter half drawn again. Chosen: the verdict compares ranks by tenths.
constexpr double kMostError = 0.1;
/// The timed calls that this time of the run pays for come first, without a draw.
constexpr Nanoseconds kAtFirst = 1'000'000'000;

}  // namespace

std::uint64_t CallDraw::draw_next(std::uint32_t weight, Nanoseconds time, Nanoseconds at, Nanoseconds price) {
  const double w = weight, t = static_cast<double>(time);
  variance_ += w * (w - 1) * t * t;
  if (std::has_single_bit(timed_)) squares_before_ = std::exchange(squares_, 0);
  std::uint64_t ended = 0;
  if (const std::uint64_t timed = timed_ - timed_before_; timed >= kCalls || at - began_ >= kTime) {
    ended = timed;
    choose_weight(at, price);
  }
  // A geometric distance has no memory: the same probability holds for each call, also after a draw before its time.
  until_ = weight_ == 1 ? 0 : static_cast<std::uint32_t>(std::log(1 - random_.uniform()) * gap_);
  return ended;
}

void CallDraw::choose_weight(Nanoseconds at, Nanoseconds price) {
  const std::uint64_t timed = timed_ - timed_before_, calls = timed + resting_ - resting_before_;
  if (price > 0 && timed_ >= static_cast<std::uint64_t>(kAtFirst / price)) {
    const auto length = (at - began_) / static_cast<Nanoseconds>(calls);
    const double variance = variance_ + (2.0 * weight_ - 1) * (squares_ + squares_before_);
    const bool rises = std::sqrt(variance) <= kMostError * static_cast<double>(sum_);
    // Ranks must not draw in step, so the seeds are times.
    if (weight_ == 1) random_ = core::SplitMix64(static_cast<std::uint64_t>(at));
    weight_ = std::min(1u << core::EpochSample::level_for(price, length), rises ? 2 * weight_ : weight_);
    gap_ = 1 / std::log1p(-1.0 / weight_);
  }
  began_ = at;
  timed_before_ = timed_;
  resting_before_ = resting_;
}

}  // namespace latecomer::profiles
