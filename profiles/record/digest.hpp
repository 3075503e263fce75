// SPDX-License-Identifier: BSD-3-Clause
// The data about a call that the ranks of a communicator exchange. Digests of a call go up the tree to the leader, and
// each node merges them, so their size does not depend on the number of ranks. The facts about the call go down the
// tree, and each rank computes its own figures from them. All times are on the job's common clock.
#pragma once

#include <cstdint>
#include <span>

#include "profiles/record/call_record.hpp"

namespace latecomer::profiles {

using core::Rank;

/// The merged records of one call, of some ranks of a communicator. The owner of a call is its root, or else rank 0.
struct CallDigest {
  Nanoseconds first = INT64_MAX, last = INT64_MIN;  ///< arrivals
  Nanoseconds arrivals = 0;                         ///< sum of arrival - first
  Nanoseconds exit = 0;                             ///< the last exit
  Nanoseconds elapsed = 0;                          ///< sum of exit - arrival
  Nanoseconds awaited_at = INT64_MIN;               ///< arrival of `awaited`
  std::int64_t bytes = -1;                          ///< the owner's; of gatherv and scatterv the sum of the blocks
  std::uint64_t site = 0;                           ///< call site of the owner, or of another rank before `owned`
  std::uint32_t callers = 0;                        ///< callers of the same rank
  Rank latest = -1;                                 ///< the rank that arrived last, the lowest of several
  Rank maker = -1;                                  ///< one of the ranks that made the call with `op` and `root`
  Rank other = -1;    ///< a rank that made another call, which a correct program never does; -1: none
  Rank awaited = -1;  ///< the rank that others wait for: the root, or the latest of those that can be; -1: none
  std::int32_t ranks = 0, said = 0;  ///< number of records; number of ranks that had called latecomer_edge before
  std::int32_t root = -1, other_root = -1;
  core::Collective op = core::Collective::barrier, other_op = core::Collective::barrier;
  core::CallKind kind = core::CallKind::blocking;
  std::uint8_t algorithm = 0;  ///< the owner's, as CallRecord::algorithm
  std::uint8_t edge = 0;       ///< the owner's, as CallRecord::edge
  bool owned = false;          ///< the record of the owner is merged
  bool by_pattern = false;     ///< the owner's call used a pattern
  bool complete = true;        ///< all exits are known
  bool divergent = false;      ///< ranks came from different call sites
  bool other_callers = false;  ///< ranks came from different callers
  bool sampled = false;        ///< the leader needs the arrivals of all ranks (kSampled)

  /// Adds the record of a rank of a communicator of `size` ranks.
  void add(const CallRecord& record, Rank rank, int size);
  /// Adds other ranks' records of the same call.
  void merge(const CallDigest& more);

 private:
  void compare(Rank rank, core::Collective its_op, std::int32_t its_root);
};

/// The facts that every rank gets about a call of which all records are known.
struct CallFacts {
  Nanoseconds first = 0, last = 0;  ///< arrivals
  Nanoseconds arrivals = 0;         ///< sum of arrival - first
  Nanoseconds awaited_at = 0;       ///< as in CallDigest
  std::uint64_t site = 0;           ///< the owner's
  std::uint32_t callers = 0;
  Rank awaited = -1;   ///< as in CallDigest
  Rank latest = -1;    ///< the rank that came last; -1: all came together
  bool known = false;  ///< all ranks' records are known: the call counts
  bool by_pattern = false;
  bool with_arrivals = false;  ///< the arrivals of all ranks come with the facts
};

/// The facts of a call on `size` ranks. `tie`: arrivals that differ by no more count as equal.
CallFacts facts_of(const CallDigest& digest, int size, Nanoseconds tie);

/// Sums over one rank or several, which they compute from the facts and send to the leader.
struct CallSums {
  Nanoseconds waited = 0;  ///< time that the ranks waited for the awaited rank
  Nanoseconds error = 0;   ///< sum of absolute errors of the pattern that the call used
};

/// The sums of one rank: its wait for the awaited rank, and the error of its forecast.
CallSums sums_of(const CallRecord& record, const CallFacts& facts, Rank rank);

/// What a call with records of all ranks stands for.
struct StandsFor {
  std::uint32_t epochs = 1;  ///< its epoch stands for so many (core::EpochClasses)
  double time = 1;           ///< sums of times stand for the same epochs: their time, in lengths of this one
  std::uint32_t scans = 1;   ///< of a scan whose arrivals are known: it stands for so many scans
  std::uint64_t epoch = 0;   ///< the number of its first call
};

/// The facts for one rank of a scan, which waits for the last of the ranks below it. arrivals: [size].
CallFacts facts_below(CallFacts facts, std::span<const Nanoseconds> arrivals, Rank rank);

}  // namespace latecomer::profiles
