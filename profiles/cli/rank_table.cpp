// SPDX-License-Identifier: BSD-3-Clause
// Sums the processes of a profile by rank and by host.
#include "profiles/cli/rank_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "profiles/cli/common.hpp"
#include "profiles/cli/efficiency.hpp"
#include "profiles/cli/profile_file.hpp"
#include "profiles/cli/rank_rows.hpp"
#include "profiles/cli/verdict.hpp"

namespace latecomer::cli {
namespace {

/// By rank: the largest cause of its lateness with its share.
std::map<long, std::string> largest_causes(const Json& profile) {
  std::map<long, std::string> out;
  for (const Json& rank : ranks_json(profile)) {
    double most = 0;
    for (const auto& [cause, share] : rank["causes"].items())
      if (rank["mean_lateness_ns"].get<double>() > 0 && share.get<double>() > most)
        most = share.get<double>(), out[rank["rank"].get<long>()] = cause + " (" + percent(most) + ")";
  }
  return out;
}

/// `causes`: of single ranks; nullptr for hosts.
void print(const char* title, const char* first, std::vector<TimeRow> rows, int most,
           const std::map<long, std::string>* causes) {
  std::stable_sort(rows.begin(), rows.end(), [](const TimeRow& a, const TimeRow& b) { return a.awaited > b.awaited; });
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(std::max(most, 0))));
  int width = 6;
  for (const TimeRow& row : rows) width = std::max(width, static_cast<int>(row.name.size()));
  std::printf("\n%s\n%*s %-16s", title, width, first, "host");
  for (const auto& [key, column] : kTimeParts) std::printf(" %9s", column);
  std::printf(" %9s %12s", "waits", "awaited");
  std::printf(causes ? " %9s %12s  %s\n" : "\n", "last", "late", "cause");
  for (const TimeRow& row : rows) {
    const double all = std::max(1.0, row.wall);
    std::printf("%*s %-16s", width, row.name.c_str(), row.host.c_str());
    for (const double part : row.parts) std::printf(" %8.1f%%", 100 * part / all);
    std::printf(" %8.1f%% %12s", 100 * row.waited / all, human_time(row.awaited).c_str());
    if (causes) {
      const auto cause = causes->find(row.first);
      const std::string late = !row.late ? "-" : (*row.late < 0 ? "-" : "") + human_time(std::abs(*row.late));
      std::printf(" %9.0f %12s  %s", row.last, late.c_str(), cause == causes->end() ? "-" : cause->second.c_str());
    }
    std::printf("\n");
  }
}

}  // namespace

void print_ranks(const Json& profile, int most) {
  std::vector<TimeRow> ranks = rank_rows(profile);
  std::erase_if(ranks, [](const TimeRow& row) { return row.wall == 0; });  // of ranks that sent no data
  const std::vector<TimeRow> hosts = host_rows(ranks);
  const Efficiencies efficiencies(profile);
  const Efficiency all = efficiencies.of_host("");
  if (all.load_balance <= 0) return;
  const auto causes = largest_causes(profile);
  print("ranks, those that others waited for most first; shares of the rank's own time", "rank", ranks, most, &causes);
  if (hosts.size() > 1)
    print("hosts, in the same way; shares of the time of their ranks", "ranks", hosts, most, nullptr);
  std::printf("\nefficiencies%*s load balance  communication  serialisation  transfer\n", 11, "");
  const auto line = [](const std::string& name, const Efficiency& e) {
    std::printf("  %-21s %12.2f %14.2f %14.2f %9.2f\n", name.c_str(), e.load_balance, e.communication, e.serialisation,
                e.transfer);
  };
  line("all ranks", all);
  for (std::size_t i = 0; hosts.size() > 1 && i < std::min(hosts.size(), static_cast<std::size_t>(std::max(most, 0)));
       ++i)
    line(hosts[i].host, efficiencies.of_host(hosts[i].host));
  std::printf("%s", kEfficiencyText);
}

Json hosts_json(const Json& profile) {
  Json out = Json::array();
  const Efficiencies efficiencies(profile);
  for (const TimeRow& row : host_rows(rank_rows(profile))) {
    Json host = {{"host", row.host}, {"ranks", row.ranks}, {"waited_ns", row.waited}, {"awaited_ns", row.awaited}};
    for (std::size_t k = 0; k < std::size(kTimeParts); ++k) host[kTimeParts[k].first] = row.parts[k];
    host["efficiency"] = efficiency_json(efficiencies.of_host(row.host));
    out.push_back(host);
  }
  return out;
}

}  // namespace latecomer::cli
