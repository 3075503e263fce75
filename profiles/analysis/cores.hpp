// SPDX-License-Identifier: BSD-3-Clause
// Compares the ranks of each host with the cores that they may use.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "profiles/analysis/profile.hpp"

namespace latecomer::profiles::analysis {

/// The ranks of one host.
struct HostCores {
  std::string name;
  double cores = 0;  ///< of the host
  std::vector<const ProcessFigures*> ranks;
  std::vector<std::set<int>> allowed;  ///< by index in `ranks`: the cores that it may use; empty: unknown

  double count() const { return static_cast<double>(ranks.size()); }
  /// The cores that some rank may use; all if a rank's cores are unknown.
  double usable() const {
    std::set<int> all;
    for (const auto& cores_of_one : allowed) {
      if (cores_of_one.empty()) return cores;
      all.insert(cores_of_one.begin(), cores_of_one.end());
    }
    return static_cast<double>(all.size());
  }
  bool crowded() const { return cores > 0 && count() > usable(); }
  /// The share of the ranks' time in which they were ready to run, but had no core; 0: not measured.
  double coreless() const {
    double wall = 0, runnable = 0;
    for (const auto* r : ranks) {
      wall += r->wall;
      runnable += r->times.runnable;
    }
    return wall > 0 ? runnable / wall : 0;
  }
  bool courteous() const {
    return std::ranges::any_of(ranks, [](const auto* r) { return r->waiting == "courteous"; });
  }
};

/// By name of the host.
std::vector<HostCores> cores_by_host(const Profile& profile);

/// Ranks that share fewer cores than they are, although the host has a core for each of its ranks; nothing if every
/// rank can have a core of its own.
struct Sharing {
  std::vector<int> ranks;
  std::set<int> cores;
};
Sharing sharing(const HostCores& host);

/// Whether two ranks may run on one core, because a host or a mask has fewer cores than ranks.
bool share_cores(const Profile& profile);

}  // namespace latecomer::profiles::analysis
