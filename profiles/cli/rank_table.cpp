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
#include "profiles/cli/verdict.hpp"

namespace latecomer::cli {
namespace {

/// The parts of a process's time, with their column.
constexpr std::pair<const char*, const char*> kParts[] = {
    {"computing_ns", "computes"}, {"kernel_ns", "kernel"}, {"runnable_ns", "no core"},    {"blocked_ns", "blocked"},
    {"messages_ns", "messages"},  {"io_ns", "files"},      {"collectives_ns", "in coll."}};

/// A rank, or the ranks of a host together.
struct Row {
  std::string name, host;
  double ranks = 0, wall = 0, waited = 0, awaited = 0;
  double parts[std::size(kParts)] = {};
  double last = 0;  ///< times that it came last; of single ranks only, as the two below
  std::string late = "-", cause = "-";
  void add(const Row& o) {
    ranks += o.ranks, wall += o.wall, waited += o.waited, awaited += o.awaited;
    for (std::size_t k = 0; k < std::size(kParts); ++k) parts[k] += o.parts[k];
  }
};

/// One row per rank, or per row of ranks where the profile adds up several.
std::vector<Row> rows_of_ranks(const Json& profile) {
  const Json sums = profile.value("rank_sums", Json::array());
  long per = 1;
  for (const Json& sum : sums) per = std::max(per, sum[1].get<long>());
  std::map<long, Row> rows;
  for (const Json& p : profile.value("processes", Json::array())) {
    const long first = p["rank"].get<long>() / per * per;
    Row& row = rows[first];
    if (row.host.empty()) row.host = p["host"].get<std::string>();
    ++row.ranks;
    row.name = row_name({{"rank", first}, {"ranks", row.ranks}});
    row.wall += p["wall_ns"].get<double>();
    for (std::size_t k = 0; k < std::size(kParts); ++k) row.parts[k] += p[kParts[k].first].get<double>();
  }
  for (const Json& sum : sums)
    if (const auto row = rows.find(sum[0].get<long>()); row != rows.end())
      row->second.waited = sum[2].get<double>(), row->second.awaited = sum[3].get<double>();
  std::vector<Row> out;
  out.reserve(rows.size());
  for (const auto& [rank, row] : rows) out.push_back(row);
  return out;
}

/// Fills `last`, `late` and `cause` of single ranks.
void add_lateness(std::vector<Row>& rows, const Json& profile) {
  std::map<std::string, Row*> by_name;
  for (Row& row : rows) by_name[row.name] = &row;
  for (const Json& rank : ranks_json(profile)) {
    const auto found = by_name.find(rank["rank"].dump());
    if (found == by_name.end()) continue;
    Row& row = *found->second;
    row.last = rank["times_last"].get<double>();
    const double late = rank["mean_lateness_ns"].get<double>();
    row.late = (late < 0 ? "-" : "") + human_time(std::abs(late));
    double most = 0;
    for (const auto& [cause, share] : rank["causes"].items())
      if (late > 0 && share.get<double>() > most)
        most = share.get<double>(), row.cause = cause + " (" + percent(most) + ")";
  }
}

std::vector<Row> rows_of_hosts(const std::vector<Row>& ranks) {
  std::map<std::string, Row> rows;
  for (const Row& rank : ranks) {
    Row& row = rows[rank.host];
    row.add(rank), row.name = std::to_string(static_cast<long>(row.ranks)), row.host = rank.host;
  }
  std::vector<Row> out;
  out.reserve(rows.size());
  for (const auto& [host, row] : rows) out.push_back(row);
  return out;
}

void print(const char* title, const char* first, std::vector<Row> rows, int most, bool single) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.awaited > b.awaited; });
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(std::max(most, 0))));
  int width = 6;
  for (const Row& row : rows) width = std::max(width, static_cast<int>(row.name.size()));
  std::printf("\n%s\n%*s %-16s", title, width, first, "host");
  for (const auto& [key, column] : kParts) std::printf(" %9s", column);
  std::printf(" %9s %12s", "waits", "awaited");
  std::printf(single ? " %9s %12s  %s\n" : "\n", "last", "late", "cause");
  for (const Row& row : rows) {
    const double all = std::max(1.0, row.wall);
    std::printf("%*s %-16s", width, row.name.c_str(), row.host.c_str());
    for (const double part : row.parts) std::printf(" %8.1f%%", 100 * part / all);
    std::printf(" %8.1f%% %12s", 100 * row.waited / all, human_time(row.awaited).c_str());
    if (single) std::printf(" %9.0f %12s  %s", row.last, row.late.c_str(), row.cause.c_str());
    std::printf("\n");
  }
}

}  // namespace

void print_ranks(const Json& profile, int most) {
  std::vector<Row> ranks = rows_of_ranks(profile);
  const std::vector<Row> hosts = rows_of_hosts(ranks);
  const Efficiencies efficiencies(profile);
  const Efficiency all = efficiencies.of_host("");
  if (all.load_balance <= 0) return;
  add_lateness(ranks, profile);
  print("ranks, those that others waited for most first; shares of the rank's own time", "rank", ranks, most, true);
  if (hosts.size() > 1) print("hosts, in the same way; shares of the time of their ranks", "ranks", hosts, most, false);
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
  for (const Row& row : rows_of_hosts(rows_of_ranks(profile))) {
    Json host = {{"host", row.host}, {"ranks", row.ranks}, {"waited_ns", row.waited}, {"awaited_ns", row.awaited}};
    for (std::size_t k = 0; k < std::size(kParts); ++k) host[kParts[k].first] = row.parts[k];
    host["efficiency"] = efficiency_json(efficiencies.of_host(row.host));
    out.push_back(host);
  }
  return out;
}

}  // namespace latecomer::cli
