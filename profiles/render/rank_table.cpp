// SPDX-License-Identifier: BSD-3-Clause
// Writes the figures of ranks and hosts as text and as JSON.
#include "profiles/render/rank_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "profiles/analysis/run_shares.hpp"
#include "profiles/base/text.hpp"

namespace latecomer::profiles {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kEfficiencyText =
    "  load balance    mean over longest time outside MPI\n"
    "  communication   longest time outside MPI over run time: serialisation x transfer\n"
    "  serialisation   longest time outside MPI over run time without transfers (estimate)\n"
    "  transfer        run time without transfers over run time (estimate). Transfers: what follows the last arrival\n"
    "                  of a collective, other MPI calls, and time in messages that no late rank explains\n";

/// The largest cause of a rank's lateness with its share.
std::string main_cause(const analysis::RankFigures& rank) {
  if (!rank.causes || !rank.is_late()) return "-";
  const auto most = std::ranges::max_element(*rank.causes);
  return std::string(analysis::kCauseNames[static_cast<std::size_t>(most - rank.causes->begin())].title) + " (" +
         percent(*most, 1) + ")" + (rank.shares_causes() ? " of " + rank.causes_name() : "");
}

std::string name_of(const analysis::RankFigures& rank) { return rank.name(); }
std::string name_of(const analysis::HostFigures& host) { return std::to_string(static_cast<long>(host.ranks)); }
const std::string& host_of(const analysis::RankFigures& rank) { return rank.host; }
const std::string& host_of(const analysis::HostFigures& host) { return host.name; }

/// Prints the `most` rows that others waited for most. `end` adds the last columns to a row, or to the heading.
template <typename Row, typename End>
void print_rows(const char* title, const char* first, const std::vector<Row>& all, int most, End end) {
  std::vector<const Row*> rows;
  for (const Row& row : all)
    if (row.wall > 0) rows.push_back(&row);  // the others sent no data
  std::ranges::stable_sort(rows, [](const Row* a, const Row* b) { return a->awaited > b->awaited; });
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(std::max(most, 0))));
  int width = 6;
  for (const Row* row : rows) width = std::max(width, static_cast<int>(name_of(*row).size()));
  std::printf("\n%s\n%*s %-16s", title, width, first, "host");
  for (const auto& column : analysis::kTimeColumns) std::printf(" %9s", std::string(column.title).c_str());
  std::printf(" %9s %12s%s\n", std::string(analysis::kWaits.title).c_str(), "awaited", end(nullptr).c_str());
  for (const Row* row : rows) {
    std::printf("%*s %-16s", width, name_of(*row).c_str(), host_of(*row).c_str());
    const auto cell = [](double part, double whole) {
      std::printf(" %9s", Share::of(part, whole).percent(1, "-").c_str());
    };
    for (const auto& column : analysis::kTimeColumns) cell(row->times.*column.value, row->wall);
    cell(row->waited, row->covered);
    std::printf(" %12s%s\n", human_time(row->awaited).c_str(), end(row).c_str());
  }
}

Json causes_json(const std::optional<analysis::Causes>& causes) {
  if (!causes) return nullptr;
  Json out = Json::object();
  for (std::size_t k = 0; k < causes->size(); ++k) out[std::string(analysis::kCauseNames[k].key)] = (*causes)[k];
  return out;
}

}  // namespace

void print_ranks(const analysis::Analysis& analysis, int most) {
  const auto& hosts = analysis.hosts();
  if (analysis.efficiency().load_balance <= 0) return;
  print_rows("ranks, those that others waited for most first; shares of the rank's own time", "rank", analysis.ranks(),
             most, [](const analysis::RankFigures* row) {
               char text[128];
               if (!row) {
                 std::snprintf(text, sizeof text, " %9s %15s  %s", "last", "late", "cause");
                 return std::string(text);
               }
               const std::string late =
                   row->late ? (*row->late < 0 ? "early " : "") + human_time(std::abs(*row->late)) : "-";
               std::snprintf(text, sizeof text, " %9.0f %15s  ", row->last, late.c_str());
               return text + main_cause(*row);
             });
  if (hosts.size() > 1)
    print_rows("hosts, in the same way; shares of the time of their ranks", "ranks", hosts, most,
               [](const analysis::HostFigures*) { return std::string(); });
  std::printf("\nefficiencies%*s load balance  communication  serialisation  transfer\n", 11, "");
  const auto line = [](const std::string& name, const analysis::Efficiency& e) {
    std::printf("  %-21s %12.2f %14.2f %14.2f %9.2f\n", name.c_str(), e.load_balance, e.communication, e.serialisation,
                e.transfer);
  };
  line("all ranks", analysis.efficiency());
  for (std::size_t i = 0; hosts.size() > 1 && i < std::min(hosts.size(), static_cast<std::size_t>(std::max(most, 0)));
       ++i)
    line(hosts[i].name, hosts[i].efficiency);
  std::printf("%s", kEfficiencyText);
}

Json efficiency_json(const analysis::Efficiency& e) {
  return {{"load_balance", e.load_balance},
          {"communication", e.communication},
          {"serialisation", e.serialisation},
          {"transfer", e.transfer}};
}

/// Shares of the run that add up to 1, in the order of time_shares(); null: not known.
Json parts_json(const analysis::Figures& figures) {
  constexpr const char* kKeys[] = {"computing", "kernel", "no_core", "asleep",     "messages", "files",
                                   "other_mpi", "ends",   "waits",   "after_last", "rest"};
  static_assert(std::size(kKeys) == analysis::kTimeParts);
  if (figures.wall <= 0) return nullptr;
  const auto shares = analysis::time_shares(figures);
  Json out;
  for (std::size_t i = 0; i < shares.size(); ++i) out[kKeys[i]] = shares[i];
  const double ends = out["ends"], init = figures.times.ends > 0 ? figures.times.init / figures.times.ends : 0;
  out.erase("ends");
  out["init"] = ends * init;
  out["before_finalize"] = ends * (1 - init);
  return out;
}

Json ranks_json(const analysis::Analysis& analysis) {
  Json out = Json::array();
  for (const analysis::RankFigures& r : analysis.ranks()) {
    out.push_back({{"rank", r.first},
                   {"host", r.host},
                   {"times_last", r.last},
                   {"mean_lateness_ns", r.late ? Json(*r.late) : Json(nullptr)},
                   {"waited_ns", r.waited},
                   {"awaited_ns", r.awaited},
                   {"parts", parts_json(r)},
                   {"causes", causes_json(r.causes)},
                   {"blamed_ns", r.blamed},
                   {"blamed_causes", causes_json(r.blamed_causes)}});
    if (r.ranks > 1) out.back()["ranks"] = r.ranks;
    if (r.shares_causes()) out.back()["causes_of"] = r.causes_name();
    for (const auto& [rank, waited] : r.peers) out.back()["waits_for"].push_back({{"rank", rank}, {"wait_ns", waited}});
  }
  return out;
}

Json hosts_json(const analysis::Analysis& analysis) {
  Json out = Json::array();
  for (const analysis::HostFigures& h : analysis.hosts()) {
    Json host = {{"host", h.name}, {"ranks", h.ranks}, {"waited_ns", h.waited}, {"awaited_ns", h.awaited}};
    for (const auto& column : analysis::kTimeColumns) host[std::string(column.key)] = h.times.*column.value;
    host["efficiency"] = efficiency_json(h.efficiency);
    out.push_back(host);
  }
  return out;
}

}  // namespace latecomer::profiles
