// SPDX-License-Identifier: BSD-3-Clause
// The Clairvoyant planner: who sends which segment to whom in which round, when arrival times are known beforehand.
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

/// What a plan is made for. Times are integers, so that ties never depend on rounding.
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
/// Generates the plan of a problem in range. "", or what is out of range.
std::string plan(const Problem& problem, const Emit& emit, Generate& generate = plan_rows);
/// The same as a list.
Result<std::vector<Message>> plan(const Problem& problem, Generate& generate = plan_rows);

/// By round, then destination.
void sort(std::vector<Message>& messages);

/// The plan of an allreduce, which the paper leaves as future work. Partial results are combined by the rules of the
/// reduce without a sink. Finished segments use the rest of each round. `problem.root` has no effect.
struct Exchange : Message {
  bool finished = false;  ///< a finished segment, to be stored; otherwise a partial result, to be added
};
using EmitExchange = std::function<void(const Exchange&)>;
std::string plan_everywhere(const Problem& problem, const EmitExchange& emit);

}  // namespace latecomer::core::clairvoyant
