// SPDX-License-Identifier: BSD-3-Clause
// A rank's part of a short call of a range communicator as a list that runs from top to bottom. A line serves all
// counts of its size class, because its positions are multiples of the count.
#pragma once

#include <vector>

#include "core/collective/call.hpp"
#include "core/schedule/schedule.hpp"

namespace latecomer::core {

/// The largest Call::count that range_algorithm serves like a call with count 1. `call.count` has no meaning.
Elements range_class_end(Call call);

struct Line {
  /// Positions and counts in units of Call::count.
  struct Step {
    OpKind kind = OpKind::copy;
    Rank peer = -1;
    std::int32_t channel = 0;
    Slice dst, src;
  };
  std::vector<Step> steps;
  Elements scratch = 0;  ///< units
  Elements longest = 0;  ///< units of the longest message
  Elements most = 0;     ///< the largest count that the line serves
};

/// The line for calls like `call` with a count from 1 to Line::most, or for the count 0 if `call.count` is 0. The
/// elements are those of a call with blocks of one size. A rank that runs its line from top to bottom, with sends that
/// do not wait for their receivers, sends and receives the messages of the schedule of range_algorithm.
Line range_line(Call call, Rank me);

}  // namespace latecomer::core
