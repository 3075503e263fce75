// SPDX-License-Identifier: BSD-3-Clause
// A sample of a rank's calls on one communicator, within a fixed memory (policy key `record`). It keeps stretches of
// consecutive calls by their numbers, which all ranks count alike. So the samples of all ranks hold the same calls,
// without any message between them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>
#include <vector>

#include "profiles/record/call_record.hpp"

namespace latecomer::profiles {

struct SampledCall {
  std::uint64_t number = 0;  ///< on its communicator
  CallRecord record;
  static auto members(auto& s) { return std::tie(s.number, s.record); }
};

class CallSample {
 public:
  /// Begins. The memory depends on the size of the job only. Derived: 1,024 calls take 56 KiB. In larger jobs all ranks
  /// together keep 65,536 arrivals, which take 1.5 MB in the profile, and a rank at least 16.
  void start(int ranks) {
    const auto most =
        std::clamp<std::size_t>(std::bit_floor(65536u / static_cast<unsigned>(std::max(1, ranks))), 16, 1024);
    calls_.clear();
    calls_.reserve(most);
    stretch_ = std::min<std::uint64_t>(kStretch, most / 2);
    stride_ = 1;
    mask_ = stretch_ - 1;
  }
  bool begun() const { return stretch_ > 0; }

  /// Whether the sample holds the call of this number: its stretch has a number that the stride divides.
  bool keeps(std::uint64_t number) const { return (number & mask_) < stretch_; }
  /// The first number from this one on that it keeps.
  std::uint64_t next_kept(std::uint64_t number) const { return keeps(number) ? number : (number | mask_) + 1; }
  /// Adds a call that it keeps. Allocates nothing: if the memory is full, every second stretch goes.
  void add(const SampledCall& call) {
    while (calls_.size() == calls_.capacity()) {
      if (stride_ > UINT64_MAX / kStretch / 4) return;
      stride_ *= 2;
      mask_ = stride_ * stretch_ - 1;
      std::erase_if(calls_, [&](const SampledCall& one) { return !keeps(one.number); });
    }
    if (keeps(call.number)) calls_.push_back(call);
  }

  const std::vector<SampledCall>& calls() const { return calls_; }
  std::uint64_t stretch() const { return stretch_; }
  std::uint64_t stride() const { return stride_; }

  /// Replaces the content. Returns false if the parts do not fit together.
  bool restore(std::vector<SampledCall> calls, std::uint64_t stretch, std::uint64_t stride) {
    if (stretch == 0) return calls.empty();
    if (stretch > kStretch || !std::has_single_bit(stretch) || !std::has_single_bit(stride) ||
        stride > UINT64_MAX / kStretch / 2)
      return false;
    calls_ = std::move(calls);
    stretch_ = stretch;
    stride_ = stride;
    mask_ = stride * stretch - 1;
    return true;
  }

  /// Counted calls of the communicator so far.
  std::uint64_t counted = 0;

 private:
  /// Derived: a replay needs calls that follow each other. Of 32, it lacks the interval before the first.
  static constexpr std::uint64_t kStretch = 32;
  std::vector<SampledCall> calls_;
  std::uint64_t stretch_ = 0, stride_ = 1,
                mask_ = 0;  ///< `mask_` + 1: calls from the begin of a kept stretch to the next
};

}  // namespace latecomer::profiles
