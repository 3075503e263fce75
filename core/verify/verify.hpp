// SPDX-License-Identifier: BSD-3-Clause
// The symbolic verifier: proves one set of schedules right for every interleaving, or names what is wrong.
//
// Matching is static (a channel's messages are ordered), so a set of schedules is a marked graph: whether
// it finishes does not depend on the interleaving, and it is enough to find a cycle under synchronous
// sends. Races are judged under the weakest ordering that MPI gives (eager sends): two operations of a
// rank that touch the same element, one of them writing, must be ordered by dependencies, through other
// ranks' messages if need be. Then one execution with symbols stands for all.
#pragma once

#include <string>
#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

enum class Fault {
  none,
  malformed,     ///< a slice, peer, channel or dependency out of range; input written; scratch bound exceeded
  unmatched,     ///< a message left over, of another size, or ambiguously matched
  deadlock,      ///< cannot finish under synchronous sends
  race,          ///< unordered operations touch the same element
  undefined,     ///< an operation reads what nobody wrote
  wrong_result,  ///< an output element is not exactly what the collective asks for, or ranks differ
  early_touch,   ///< a background operation touches a program buffer before the arrival
};
std::string_view name_of(Fault fault);

struct Verdict {
  Fault fault = Fault::none;
  std::string what;         ///< rank, operation and place of the fault
  bool rank_order = false;  ///< operands stay in rank order (needed by non-commutative operators)
  /// How each output element's operands are associated, up to commutation: two runs with equal
  /// fingerprints round alike. Data movement: who sends to whom.
  std::uint64_t association = 0;
  bool ok() const { return fault == Fault::none; }
};

/// programs: shape [ranks].
Verdict verify(const Call& call, const std::vector<RankProgram>& programs);

/// "send to 3 of output[0..4) on channel 2".
std::string describe(const Operation& op);

struct SweepFailure {
  std::string algorithm;
  int ranks;
  Rank root;
  std::string what;
};
struct SweepResult {
  std::int64_t cases = 0;
  std::vector<SweepFailure> failures;
  bool rank_order = true;           ///< over all cases that ask for it
  bool pattern_independent = true;  ///< over all cases
};

/// Verifies `algorithm` for one number of ranks over counts (0, 1, below, at and above P), in place and
/// not, lockstep and overlap, and arrival patterns: `arrivals`, or, if empty, flat, sorted, reversed, one
/// late and random ones.
SweepResult sweep(const Algorithm& algorithm, int ranks, Rank root, const std::vector<Pattern>& arrivals);

}  // namespace latecomer::core
