// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per call site of calls that are no collectives.
#include "profiles/render/timed_table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "core/base/text.hpp"
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
  if (!most.second) return "-";
  return std::string(most.second) + " " + percent(kinds.share(most.first), "-") + " of " +
         core::grouped(static_cast<std::int64_t>(kinds.matched));
}

TimedRow row_of(const analysis::TimedCalls& site, double rank_time) {
  TimedRow out{site.call,
               site.calls,
               site.messages,
               site.bytes,
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

std::vector<TimedRow> timed_rows(const Profile& profile, const std::vector<const analysis::TimedCalls*>& sites) {
  std::vector<TimedRow> out;
  out.reserve(sites.size());
  for (const analysis::TimedCalls* site : sites) out.push_back(row_of(*site, profile.job.rank_time()));
  return out;
}

namespace {

void print_rows(std::vector<TimedRow>& rows, bool wide) {
  std::vector<TextTable::Column> columns;
  for (std::size_t i = 0; i < kTimedTitles.size(); ++i) columns.push_back({kTimedTitles[i], i == 0 || i >= 5});
  TextTable table(columns);
  for (TimedRow& row : rows)
    table.add({row.call, std::to_string(static_cast<long>(row.calls)),
               row.messages > 0 ? human_bytes(row.bytes) : std::string("-"), human_time(row.time),
               percent(row.share, "-"), row.most_on, row.waits_for, row.kind, row.place});
  table.print(wide ? 0 : kLineWidth);
}

}  // namespace

void print_timed_sites(const Profile& profile, const std::vector<const analysis::TimedCalls*>& sites, std::size_t most,
                       double least, bool wide) {
  std::vector<TimedRow> rows = timed_rows(profile, sites);
  const std::size_t all = rows.size();
  std::erase_if(rows, [&](const TimedRow& row) { return !(row.share.value() >= least); });
  if (rows.empty()) return;
  rows.resize(std::min(most, rows.size()));
  std::printf("\nother MPI calls that may wait, longest time first\n");
  print_rows(rows, wide);
  if (all > rows.size()) std::printf("... and %zu more call sites.\n", all - rows.size());
  if (!wide && std::ranges::any_of(rows, [](const TimedRow& row) { return row.kind != "-"; }))
    std::printf("kind: what most of the time was for, of so many messages whose times are known on both sides.\n");
  if (wide)
    std::printf(
        "\nbytes: in the messages that the calls sent, or received before they returned; time, sum: of all ranks in these "
        "calls;\nshare: of the ranks' time; most on: the rank with the most of it; waits for: the rank whose messages the "
        "calls awaited\nlongest, or `several` if calls waited for several ranks at once; kind: what most of the time was "
        "for, of so many\nmessages of a sample: those whose times are known on both sides (--tsv-calls has all "
        "kinds).\n");
}

void print_threads(const Profile& profile, const std::vector<const analysis::TimedCalls*>& sites, std::size_t most) {
  const auto times_of = [](const analysis::ProcessFigures::Threads& row) {
    return std::array{row.times.collectives, row.times.messages, row.times.io, row.times.other_mpi};
  };
  std::vector<std::pair<double, const analysis::ProcessFigures*>> ranks;
  for (const analysis::ProcessFigures& process : profile.processes) {
    double all = 0;
    for (const auto& row : process.threads)
      for (const double time : times_of(row)) all += time;
    if (!process.threads.empty()) ranks.emplace_back(all, &process);
  }
  if (ranks.empty()) return;
  std::ranges::stable_sort(ranks, [](const auto& a, const auto& b) { return a.first > b.first; });
  ranks.resize(std::min(most, ranks.size()));
  std::printf("\nthreads that did not start MPI: their time in its calls, as shares of the rank's own time\n");
  TextTable table({{"rank", false},
                   {"threads", false},
                   {"calls", false},
                   {"in coll.", false},
                   {"messages", false},
                   {"files", false},
                   {"other MPI", false},
                   {"all in MPI", false}});
  for (const auto& [sum, process] : ranks)
    for (const auto& row : process->threads) {
      std::vector<std::string> cells{std::to_string(process->rank), std::to_string(static_cast<long>(row.threads)),
                                     std::to_string(static_cast<long>(row.calls))};
      // Several threads of a row may have run at a time.
      for (const double time : times_of(row))
        cells.push_back(row.shared ? human_time(time) : percent(Share::of(time, process->between()), "-"));
      const bool first = &row == process->threads.data();
      cells.push_back(first ? percent(Share::of(process->all_threads_inside, process->between()), "-") : "");
      table.add(cells);
    }
  table.print(0);
  std::printf(
      "\nthreads: that have had the row, one at a time; all in MPI: all threads that call MPI were inside at once.\n");
  std::vector<TimedRow> rows = timed_rows(profile, sites);
  if (rows.empty()) return;
  std::printf("\nMPI calls of these threads that may wait and are no collectives, longest time first\n");
  print_rows(rows, true);
}

}  // namespace latecomer::profiles
