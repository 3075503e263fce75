// SPDX-License-Identifier: BSD-3-Clause
// Judges a job's ranks by their present calls: the ranks that stand still, the collective and the ranks that they wait
// for, and the differing calls of one communicator. `who` shows it for a running job, the report for one that hung.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "profiles/analysis/live_rank.hpp"

namespace latecomer::profiles {

using analysis::LiveRank;
using analysis::LiveState;

class Hang {
 public:
  /// `state`: of one job, not empty.
  explicit Hang(LiveState state);

  struct Finding {
    std::string sentence;
    bool different_calls = false;  ///< the ranks made different calls as the same one of a communicator
  };
  /// Empty: every rank moves, or no rank waits. Ranks whose state is stale are not judged.
  std::vector<Finding> findings() const;
  std::vector<std::string> sentences() const;  ///< of the findings

  const std::vector<LiveRank>& ranks() const { return state_.ranks; }
  /// The time of a process at its present place.
  struct Age {
    std::int64_t ns = -1;   ///< -1: not known
    bool at_least = false;  ///< since the first look: calls that are only counted, or not timed, have no time
    auto operator<=>(const Age&) const = default;
  };
  static Age age(const LiveRank& r);
  static std::string operation(const LiveRank& r);
  static std::string communicator(const LiveRank& r);
  static std::string state(const LiveRank& r);
  std::string site(const LiveRank& r) const;
  /// Of a rank in a blocking call that is no collective: "in MPI_Recv at main (a.c:5) with rank 3 and tag 1".
  std::string message(const LiveRank& r) const;
  /// "in barrier at main (a.c:5), call 7 on MPI_COMM_WORLD, for 1.2 s".
  std::string where(const LiveRank& r) const;
  /// One line per rank, with a head. Of a large job, unless `each` is set: one line for all ranks that do the same, the
  /// fewest first.
  std::string table(bool each = false) const;

 private:
  bool is_judged(const LiveRank& r) const;
  std::string place_of(std::uint64_t site) const;
  std::string call_text(const LiveRank& r) const;
  std::string place(const LiveRank& r) const;
  std::string table_of_groups() const;
  std::string doing(const LiveRank& r) const;
  std::vector<const LiveRank*> absent(const LiveRank& call, const std::vector<const LiveRank*>& members) const;
  void judge_call(const std::vector<const LiveRank*>& members, std::vector<Finding>& out) const;

  LiveState state_;
  bool several_hosts_ = false;
};

}  // namespace latecomer::profiles
