// SPDX-License-Identifier: BSD-3-Clause
// Judges two looks at a job's ranks: which ranks stand still in which collective, for which ranks, and which calls of
// one communicator differ.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiles/cli/live_ranks.hpp"

namespace latecomer::cli {

class Hang {
 public:
  /// `ranks`: of one job, not empty, from live_ranks_twice(). Resolves the names of the call sites.
  explicit Hang(std::vector<LiveRank> ranks);

  /// What is wrong, one sentence each; empty: every rank moves, or nobody waits. Ranks whose state is stale are not
  /// judged.
  std::vector<std::string> findings() const;

  const std::vector<LiveRank>& ranks() const { return ranks_; }
  bool several_hosts() const { return several_hosts_; }
  /// How long a process has been where it is. Calls of idle epochs have no time: at least as long as we looked.
  static std::int64_t age(const LiveRank& r);
  static std::string operation(const LiveRank& r);
  static std::string communicator(const LiveRank& r);
  static std::string state(const LiveRank& r);
  std::string site(const LiveRank& r) const;
  /// "in barrier at main (a.c:5), call 7 on MPI_COMM_WORLD, for 1.2 s".
  std::string where(const LiveRank& r) const;

 private:
  std::string call_text(const LiveRank& r) const;
  std::string doing(const LiveRank& r) const;
  std::vector<const LiveRank*> absent(const LiveRank& call, const std::vector<const LiveRank*>& members) const;
  void judge_call(const std::vector<const LiveRank*>& members, std::vector<std::string>& out) const;

  std::vector<LiveRank> ranks_;
  bool several_hosts_ = false;
  std::map<std::uint64_t, nlohmann::ordered_json> places_;  ///< frames by site
};

}  // namespace latecomer::cli
