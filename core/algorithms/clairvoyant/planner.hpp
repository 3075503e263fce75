// SPDX-License-Identifier: BSD-3-Clause
// The Clairvoyant planner: the sender, the receiver and the segment of each message by round, for known arrival times.
// Deterministic to the last tie. Source: Marendic et al. 2016 as corrected by Proficz and Ocetkiewicz 2021, sections 4
// and 5. The folder generators/ has the publication's own generators of the same plan.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core::clairvoyant {

/// The input of a plan. Times are integers, so that ties never depend on rounding.
struct Problem {
  int segments = 1;
  Rank root = 0;
  Nanoseconds round_ns = 1;               ///< at least 1
  std::span<const Nanoseconds> arrivals;  ///< [ranks]
  int ranks() const { return static_cast<int>(arrivals.size()); }
};

/// In `round`, `src` sends its partial result of `segment` to `dst`, which adds it to its own (or, if it has sent its
/// own away, takes it over).
struct Message {
  std::int64_t round = 0;
  Rank src = -1, dst = -1;
  std::int32_t segment = -1;
  bool operator==(const Message&) const = default;
};

/// Gets the messages of one round.
using Emit = std::function<void(std::span<const Message>)>;
/// Generates the plan of a reduce round by round, since one rank keeps its own part only; within a round by receivers
/// in the order in which they are served.
using Generate = void(const Problem& problem, const Emit& emit);
/// The generator of production: bit rows beside bit columns, 2 bits per (process, segment).
Generate plan_rows;
/// Generates the plan of a problem in range. "", or the value that is out of range.
std::string plan(const Problem& problem, const Emit& emit, Generate& generate = plan_rows);
/// The plan as a list.
Result<std::vector<Message>> plan(const Problem& problem, Generate& generate = plan_rows);

/// Sorts by round, then by destination.
void sort_messages(std::vector<Message>& messages);

/// The plan of an allreduce, which the paper leaves as future work. Partial results are combined by the rules of the
/// reduce without a sink. Finished segments use the rest of each round. `problem.root` has no effect.
struct PairExchange : Message {
  bool finished = false;  ///< a finished segment, to be stored; otherwise a partial result, to be added
};
using EmitExchange = std::function<void(const PairExchange&)>;
std::string plan_everywhere(const Problem& problem, const EmitExchange& emit);

}  // namespace latecomer::core::clairvoyant
