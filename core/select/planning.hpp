// SPDX-License-Identifier: BSD-3-Clause
// The cost of planning a call, and the limits of a job. The cost is the number of messages of the plan, as if no plan
// existed before. So every rank computes the same cost, whatever plans it keeps.
#pragma once

#include <cstdint>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

/// Messages of a plan that may be made inside a call: about 1 ms, since planning takes some 300 ns per message
/// (planning_ns of `latecomer simulate --json`).
inline constexpr std::int64_t kPlannedInside = 3'000;
/// Of one that the leader has announced, which ranks make between two calls, once per plan: about 40 ms.
inline constexpr std::int64_t kPlannedAhead = 131'072;

/// A plan serves so many calls at least: those of an epoch (Sequence::kSteadyEpoch).
inline constexpr std::int64_t kCallsOfPlan = 128;

/// The least size of its class. Sizes of one class differ by less than an eighth.
std::int64_t size_class(std::int64_t size);
/// The call for which the plan of a call is made: the least of its size class.
Call planned_call(Call call);

/// Messages of all ranks together. Up to 64 ranks all schedules are counted, above that the root's and a sample of 16.
/// For an algorithm that plans message by message: the largest number that its plan can have, without planning it.
/// `segments`: 0 for the algorithm's own choice.
std::int64_t messages_of(const Algorithm& algorithm, const Call& call, int segments, const Network& network);

/// The cost of planning, in messages. 0: nothing is planned. Equal to `messages_of` except for trees, which take a
/// search.
std::int64_t planning_of(const Algorithm& algorithm, const Call& call, int segments, const Network& network);

/// Whether an algorithm plans a whole exchange in segments.
inline bool plans_segments(const Algorithm& a) { return a.planning == Planning::whole && a.segments != Segments::none; }
/// Messages of such a plan: each segment is collected from all ranks, or sent to all ranks, or both.
inline std::int64_t planned_messages(const Call& call, int segments) {
  return std::int64_t{reduces_to_all(call.op) ? 2 : 1} * call.ranks * segments;
}
/// The smallest number of segments for which such a plan is worth its time. A pipeline of fewer than about log2 P
/// segments gains nothing over a tree.
int fewest_segments(const Call& call);

/// How an algorithm serves a call where a plan may take so many messages.
struct Fitting {
  bool fits = true;
  int segments = 0;  ///< as requested; if the request is 0 and the algorithm plans, the number that suits the network
                     ///< and that may be planned
  std::int64_t messages = 0;  ///< that the plan takes, or would take at least
};
Fitting fit_to(const Algorithm& algorithm, const Call& call, int segments, const Network& network, std::int64_t most);

}  // namespace latecomer::core
