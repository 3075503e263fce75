// SPDX-License-Identifier: BSD-3-Clause
// Matches ranks with cores.
#include "profiles/analysis/cores.hpp"

#include <sched.h>

#include <cstdlib>
#include <map>

namespace latecomer::profiles::analysis {
namespace {

/// The numbers of "0-3,8".
std::set<int> numbers_in(const std::string& list) {
  std::set<int> out;
  for (const char* at = list.c_str(); *at;) {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10), last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    // Only a damaged profile has more cores than the kernel knows.
    for (long c = first; c <= std::min(last, first + CPU_SETSIZE); ++c) out.insert(static_cast<int>(c));
    at = *end == ',' ? end + 1 : "";
  }
  return out;
}

class HostMatching {
 public:
  explicit HostMatching(const HostCores& host) : host_(host) {}
  Sharing sharing() {
    for (std::size_t r = 0; r < host_.ranks.size(); ++r) {
      tried_.clear();
      if (host_.allowed[r].empty()) return {};
      if (place(r)) continue;
      // The cores that were tried, and the ranks on them, have no free core among them.
      Sharing out{{rank(r)}, tried_};
      for (const int core : tried_) out.ranks.push_back(rank(on_[core]));
      std::ranges::sort(out.ranks);
      return out;
    }
    return {};
  }

 private:
  int rank(std::size_t r) const { return static_cast<int>(host_.ranks[r]->rank); }
  /// Finds a core for a rank, and moves others to do so.
  bool place(std::size_t r) {
    for (const int core : host_.allowed[r]) {
      if (!tried_.insert(core).second) continue;
      const auto taken = on_.find(core);
      if (taken != on_.end() && !place(taken->second)) continue;
      on_[core] = r;
      return true;
    }
    return false;
  }

  const HostCores& host_;
  std::map<int, std::size_t> on_;  ///< ranks by core
  std::set<int> tried_;
};

}  // namespace

std::vector<HostCores> cores_by_host(const Profile& profile) {
  std::map<std::string, HostCores> hosts;
  std::vector<HostCores> out;
  for (const ProcessFigures& p : profile.processes) {
    HostCores& host = hosts[p.host];
    host.name = p.host;
    host.cores = p.host_cores;
    host.ranks.push_back(&p);
    host.allowed.push_back(numbers_in(p.core_list));
  }
  out.reserve(hosts.size());
  for (auto& [name, host] : hosts) out.push_back(std::move(host));
  return out;
}

Sharing sharing(const HostCores& host) { return HostMatching(host).sharing(); }

bool share_cores(const Profile& profile) {
  return std::ranges::any_of(cores_by_host(profile),
                             [](const HostCores& host) { return host.crowded() || !sharing(host).ranks.empty(); });
}

}  // namespace latecomer::profiles::analysis
