// SPDX-License-Identifier: BSD-3-Clause
// The symbolic verifier: proves a set of schedules correct for every interleaving, or names a fault.
//
// Matching is static, because dependencies order the messages of a channel. So a set of schedules is a marked graph,
// and whether it finishes does not depend on the interleaving. Finding a cycle under synchronous sends is enough.
// Races are judged under the weakest order that MPI guarantees, which is that of eager sends. If two operations of a
// rank touch the same element and one of them writes, dependencies must order them, possibly through messages of other
// ranks. Without races, every interleaving computes the values of one symbolic execution.
#pragma once

#include <string>
#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

enum class Fault {
  none,
  malformed,     ///< a slice, peer, channel or dependency is out of range, or an operation writes the input
  unmatched,     ///< a message has no partner, a partner of another size, or an ambiguous partner
  deadlock,      ///< the schedules cannot finish under synchronous sends
  race,          ///< unordered operations touch the same element
  undefined,     ///< an operation reads an element that was never written
  wrong_result,  ///< an output element differs from the result of the collective, or between ranks
  early_touch,   ///< a background operation can touch a program buffer before the arrival
};
std::string_view name_of(Fault fault);

struct ScheduleVerdict {
  Fault fault = Fault::none;
  std::string what;         ///< names the rank, the operation and the fault
  bool rank_order = false;  ///< operands stay in rank order, as non-commutative operators require
  /// Fingerprint of the association of every output element's operands, up to commutation. Two runs with equal
  /// fingerprints round alike. Data movement: fingerprint of the senders and receivers of all messages.
  std::uint64_t association = 0;
  bool ok() const { return fault == Fault::none; }
};

/// Verifies the schedules of all ranks of one call. programs: shape [ranks].
ScheduleVerdict verify(const Call& call, const std::vector<RankProgram>& programs);

/// Describes an operation, for example "send to 3 of output[0..4) on channel 2".
std::string describe_operation(const Operation& op);

struct SweepFailure {
  std::string algorithm;
  int ranks;
  Rank root;
  std::string what;
};
struct SweepResult {
  std::int64_t cases = 0;
  std::vector<SweepFailure> failures;
  bool rank_order = true;           ///< operands stay in rank order in every case with elements
  bool pattern_independent = true;  ///< the association is the same under all arrival patterns, in every case
};

/// Verifies `algorithm` for one number of ranks. Sweeps over counts (0, 1, below, at and above P), in-place and other
/// calls, lockstep and overlap, and the patterns in `arrivals`. An empty `arrivals` stands for flat, ascending,
/// descending, random and one-late patterns.
SweepResult sweep(const Algorithm& algorithm, int ranks, Rank root, const std::vector<Pattern>& arrivals);

}  // namespace latecomer::core
