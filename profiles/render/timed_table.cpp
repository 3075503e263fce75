// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per call site of calls that are no collectives.
#include "profiles/render/timed_table.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include "profiles/base/text.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles {
namespace {

/// The rank with the most of `time`, whose share of it may be too large by `error`.
std::string longest(const std::map<long, double>& by_rank, double time, double error) {
  const auto most = std::ranges::max_element(by_rank, {}, [](const auto& one) { return one.second; });
  if (most == by_rank.end() || most->second <= error * time) return "-";
  return std::to_string(most->first) + " (" + (error > 0 ? ">" : "") +
         percent(std::min(1.0, most->second / time - error), 1) + ")";
}

std::string longest_kind(const analysis::KindFigures& kinds) {
  std::pair<double, const char*> most{0, nullptr};
  for (const auto& one : {std::pair{kinds.late_sender, "late sender"}, std::pair{kinds.late_receiver, "late receiver"},
                          std::pair{kinds.transfer, "transfer"}, std::pair{kinds.not_known, "not known"}})
    if (one.first > most.first) most = one;
  return most.second ? std::string(most.second) + " " + percent(kinds.share(most.first), "-") : "-";
}

TimedRow row_of(const analysis::TimedCalls& site, double rank_time) {
  TimedRow out{site.call,
               site.calls,
               site.time,
               Share::of(site.time, rank_time),
               "-",
               "-",
               longest_kind(site.kinds),
               analysis::place_of(site.frames)};
  if (site.time <= 0) return out;
  std::map<long, double> spent, awaited;
  bool all_peers = true;
  for (const analysis::TimedCalls::Row& row : site.rows) {
    spent[row.rank] += row.time;
    for (const auto& peer : row.peers) awaited[peer.rank] += peer.waited;
    all_peers = all_peers && row.peers.size() < 8;
  }
  out.most_on = longest(spent, site.time, 0);
  // A profile names eight ranks for which a rank waited. With more, each wait may be too long, by an eighth of the sum.
  out.waits_for = site.together > 0.1 * site.time ? "several" : longest(awaited, site.time, all_peers ? 0 : 0.125);
  return out;
}

}  // namespace

std::vector<TimedRow> timed_rows(const Profile& profile) {
  std::vector<TimedRow> out;
  out.reserve(profile.timed_sites.size());
  for (const analysis::TimedCalls& site : profile.timed_sites) out.push_back(row_of(site, profile.job.rank_time()));
  return out;
}

void print_timed_sites(const Profile& profile, std::size_t most, double least, bool wide) {
  std::vector<TimedRow> rows = timed_rows(profile);
  const std::size_t all = rows.size();
  std::erase_if(rows, [&](const TimedRow& row) { return !(row.share.value() >= least); });
  if (rows.empty()) return;
  rows.resize(std::min(most, rows.size()));
  std::printf("\nother MPI calls that may wait, longest time first\n");
  std::vector<TextTable::Column> columns;
  for (std::size_t i = 0; i < kTimedTitles.size(); ++i) columns.push_back({kTimedTitles[i], i == 0 || i >= 4});
  TextTable table(columns);
  for (TimedRow& row : rows)
    table.add({row.call, std::to_string(static_cast<long>(row.calls)), human_time(row.time), percent(row.share, "-"),
               row.most_on, row.waits_for, row.kind, row.place});
  table.print(wide ? 0 : kLineWidth);
  if (all > rows.size()) std::printf("... and %zu more call sites.\n", all - rows.size());
  if (wide)
    std::printf(
        "\ntime, sum: of all ranks in these calls; share: of the ranks' time; most on: the rank with the most of it; "
        "waits for: the rank\nwhose messages the calls awaited longest, or `several` if calls waited for several ranks "
        "at once; kind: what most of the\ntime was for, of a sample of messages whose other end is known (--tsv-calls "
        "has all kinds).\n");
}

}  // namespace latecomer::profiles
