// SPDX-License-Identifier: BSD-3-Clause
// The Clairvoyant planner: who sends which segment to whom in which round, when arrival times are known beforehand.
// Five generators of one and the same plan; time and memory are what tells them apart. Deterministic to the last tie.
// Source: paper 000 (Marendic et al. 2016 as corrected by Proficz, Ocetkiewicz, J Supercomput 2021), sections 4 and 5;
// the rules as restated in ALGORITHMS 3.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
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

enum class Generator {
  linear,   ///< the corrected pseudocode: every segment and process looked at in turn (000, 4.6)
  heap,     ///< a pairing heap of candidates per segment (000, 4.1)
  segment,  ///< a segment tree over bit columns (000, 5.4): 5 bits per (process, segment)
  rows,     ///< bit rows beside the bit columns (docs/clairvoyant.md): 2 bits per (process, segment), no log P
  wide,     ///< the same in registers of 512 bits, where the processor has them (AVX-512), up to 2048 processes and
            ///< segments; else as rows
};
inline constexpr std::string_view kGeneratorNames[] = {"linear", "heap", "segment", "rows", "wide"};

/// Gets the messages of one round.
using Emit = std::function<void(std::span<const Message>)>;
/// The plan of a reduce, round by round, since one rank keeps but its own; within a round by receivers as they are
/// served.
/// "", or what is out of range.
std::string plan(const Problem& problem, const Emit& emit, Generator generator = Generator::wide);
/// The same as a list.
Result<std::vector<Message>> plan(const Problem& problem, Generator generator = Generator::wide);

/// By round, then destination.
void sort(std::vector<Message>& messages);

/// The plan of an allreduce (what the paper leaves as future work): partial results are combined by the reduce's rules
/// without a sink, and what is finished spreads by what is left of every round. `problem.root` counts for nothing.
struct Exchange : Message {
  bool finished = false;  ///< a finished segment, to be stored; otherwise a partial result, to be added
};
using EmitExchange = std::function<void(const Exchange&)>;
std::string plan_everywhere(const Problem& problem, const EmitExchange& emit);

}  // namespace latecomer::core::clairvoyant
