// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a communicator tell each other about a call. Digests of a call are merged on the way up the tree of
// the exchange, so their size does not depend on the number of ranks. The facts about the call come down, and from them
// each rank computes its own figures. All times are on the job's common clock.
#pragma once

#include <cstdint>
#include <span>

#include "profiles/record/call_record.hpp"

namespace latecomer::profiles {

using core::Rank;

/// The records of one call, of some ranks of a communicator.
struct CallDigest {
  Nanoseconds first = INT64_MAX, last = INT64_MIN;  ///< arrivals
  Nanoseconds arrivals = 0;                         ///< sum of arrival - first
  Nanoseconds exit = 0;                             ///< the last one
  Nanoseconds elapsed = 0;                          ///< sum of exit - arrival
  Nanoseconds awaited_at = INT64_MIN;               ///< arrival of `awaited`
  std::int64_t bytes = -1;                          ///< the owner's; of gatherv and scatterv the sum of the blocks
  std::uint64_t site = 0;                           ///< the owner's, or of any of the ranks
  std::uint32_t callers = 0;                        ///< of the same rank
  Rank latest = -1;                                 ///< that arrived last, the lowest of several
  Rank maker = -1;                                  ///< of the ranks, one that made a call with `op` and `root`
  Rank other = -1;    ///< one that made another call: no call of a correct program; -1: none
  Rank awaited = -1;  ///< that others wait for: the root, or the last of the ranks that can be awaited; -1: none
  std::int32_t ranks = 0, said = 0;  ///< number of records; of those that had called latecomer_edge before
  std::int32_t root = -1, other_root = -1;
  core::Collective op = core::Collective::barrier, other_op = core::Collective::barrier;
  core::CallKind kind = core::CallKind::blocking;
  std::uint8_t algorithm = 0;  ///< the owner's, as CallRecord::algorithm
  std::uint8_t edge = 0;       ///< the owner's, as CallRecord::edge
  bool owned = false;          ///< the owner is among the ranks: the root, or rank 0
  bool by_pattern = false;     ///< the owner's call ran on a pattern
  bool complete = true;        ///< all exits are known
  bool divergent = false;      ///< ranks came from different call sites
  bool other_callers = false;  ///< or from different callers
  bool sampled = false;        ///< the arrivals of all ranks are wanted (kSampled)

  /// Adds the record of a rank of a communicator of `size` ranks.
  void add(const CallRecord& record, Rank rank, int size);
  /// Adds other ranks' records of the same call.
  void merge(const CallDigest& more);

 private:
  void compare(Rank rank, core::Collective its_op, std::int32_t its_root);
};

/// What every rank is told about a call of which all records are known.
struct CallFacts {
  Nanoseconds first = 0, last = 0;  ///< arrivals
  Nanoseconds arrivals = 0;         ///< sum of arrival - first
  Nanoseconds awaited_at = 0;       ///< as in CallDigest
  std::uint64_t site = 0;           ///< the owner's
  std::uint32_t callers = 0;
  Rank awaited = -1;   ///< as in CallDigest
  Rank latest = -1;    ///< that came last; -1: all came together
  bool known = false;  ///< all ranks' records are known: the call counts
  bool by_pattern = false;
  bool with_arrivals = false;  ///< the arrivals of all ranks come with the facts
};

/// The facts of a call on `size` ranks. `tie`: arrivals that differ by no more count as equal.
CallFacts facts_of(const CallDigest& digest, int size, Nanoseconds tie);

/// What one rank, or several, derive from the facts and send to the leader.
struct CallSums {
  Nanoseconds waited = 0;  ///< for the awaited rank
  Nanoseconds error = 0;   ///< of the pattern that the call ran on: sum of absolute errors
};

/// Of the rank's own record: its wait for the awaited rank, and the error of its forecast.
CallSums sums_of(const CallRecord& record, const CallFacts& facts, Rank rank);

/// The facts for one rank of a scan, which waits for the last of the ranks below it. arrivals: [size].
CallFacts facts_below(CallFacts facts, std::span<const Nanoseconds> arrivals, Rank rank);

}  // namespace latecomer::profiles
