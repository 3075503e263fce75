// SPDX-License-Identifier: BSD-3-Clause
// `latecomer top`: the report of a running job, again and again. Reads the snapshots that the job's processes write.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "profiles/cli/answer_file.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/files/spool.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/render/finding_text.hpp"
#include "profiles/render/hang.hpp"
#include "profiles/render/prometheus.hpp"
#include "profiles/render/rank_table.hpp"
#include "profiles/render/site_table.hpp"
#include "profiles/render/text_table.hpp"
#include "profiles/watch/live_ranks.hpp"
#include "profiles/watch/screen.hpp"

namespace latecomer::profiles::cli {
namespace {

struct TopOptions {
  std::string job, prometheus;
  double seconds = 2;
  int looks = 0, sites = 10, ranks = 10;
  bool once = false, redact = false, force = false;
};

/// The age from which the copy of a host's state is worth a word: three times the relay's period.
constexpr double kOld_s = 3;

struct ScreenText {
  std::string head, rows;
};

/// Where the ranks are at this moment, by call; the largest groups first.
std::string present_text(const LiveState& state) {
  if (state.ranks.empty()) return "";
  const Hang present(state);
  std::map<std::string, std::vector<int>> places;
  std::map<std::string, double> copies;  // age by host
  for (const LiveRank& r : present.ranks()) {
    places[r.state == 'X'     ? "gone"
           : r.inside == 1    ? "in " + Hang::operation(r) + " at " + present.site(r)
           : r.message != 0   ? present.message(r)
           : r.comm_size == 0 ? "before their first collective"
                              : "outside collectives, after " + Hang::operation(r) + " at " + present.site(r)]
        .push_back(r.rank);
    if (r.copy != 0) copies[r.host] = r.copy_age_s;
  }
  std::vector<std::pair<std::string, std::vector<int>>> groups(places.begin(), places.end());
  std::ranges::stable_sort(groups, [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  constexpr std::size_t kMost = 4;
  std::string out = "Now: ";
  for (std::size_t i = 0; i < std::min(groups.size(), kMost); ++i)
    out += (i ? "; " : "") + ranks_named(groups[i].second) + " " + groups[i].first;
  if (groups.size() > kMost) out += "; and " + std::to_string(groups.size() - kMost) + " more groups";
  const int of = present.ranks().front().ranks;
  if (static_cast<int>(present.ranks().size()) < of)
    out += "; " + std::to_string(of - static_cast<int>(present.ranks().size())) +
           " ranks are not visible here (latecomer relay)";
  std::erase_if(copies, [](const auto& of_host) { return of_host.second <= kOld_s; });
  constexpr std::size_t kMostHosts = 3;  // derived: more clauses take a second line
  if (copies.size() > kMostHosts) {
    const auto oldest = std::ranges::max_element(copies, {}, [](const auto& of_host) { return of_host.second; });
    out += "; the states of " + std::to_string(copies.size()) + " hosts are old, that of " + oldest->first +
           " the oldest with " + human_time(1e9 * oldest->second);
  } else {
    for (const auto& [host, age] : copies) out += "; the state of " + host + " is " + human_time(1e9 * age) + " old";
  }
  return out + ".\n";
}

/// Where the ranks are now. `seen`: those of the look before, or none.
LiveState present(const TopOptions& o, const std::string& output, std::vector<LiveRank>& seen) {
  constexpr double kBetween_s = 0.5;
  std::vector<LiveRank> now = seen.empty() ? live_ranks_twice(output, kBetween_s) : live_ranks(output);
  if (!seen.empty()) compare_looks(seen, now);
  seen = now;
  if (o.redact)
    for (LiveRank& one : now) one.host.clear();
  return with_places(std::move(now));
}

/// Reads the snapshots once. nullopt: they are gone, because the job has ended.
std::optional<ScreenText> look(const TopOptions& o, const std::string& folder, const AnswerFile* metrics,
                               std::vector<LiveRank>& seen) {
  auto read = read_spool(folder);
  if (!read) {
    if (!std::filesystem::is_directory(folder)) return {};
    if (metrics) return ScreenText{};
    const LiveState now = present(o, live_job(folder), seen);
    std::string head = "No snapshot is complete yet: " + read.error() + "\n";
    if (const auto still = standstill(now)) head += still->text.back() + "\n";
    return ScreenText{head + present_text(now), ""};
  }
  const std::string text = write_profile(std::move(read->parts));
  WholeProfile whole(folder, text);
  Profile profile = read_profile(whole, {.names = true, .redacted = o.redact, .record = true});
  if (metrics) {
    metrics->write(prometheus_text(metrics_of(profile, o.sites, o.ranks)));
    return ScreenText{};
  }
  std::string head = profile.job.command_line + "\n" + reach_text(profile.job) + " of the job are in its snapshots\n\n";
  profile.last_state = present(o, live_job(folder), seen);
  for (const std::string& line : titles(judge(profile))) head += line + "\n";
  std::vector<const Site*> sites = ShownSites(profile).collectives;
  std::ranges::stable_sort(sites, std::greater(), &Site::waited);
  put_large_first(profile, sites);
  return ScreenText{head + present_text(profile.last_state) + "\n", captured([&] {
                      print_sites(profile, sites, static_cast<std::size_t>(o.sites), true);
                      print_ranks(profile.analysis, o.ranks);
                    })};
}

int top(const TopOptions& o) {
  std::optional<AnswerFile> metrics;
  if (!o.prometheus.empty()) metrics.emplace("--prometheus", o.prometheus, kMetricsFile, o.force);
  const auto ended = [&] {
    std::printf("The job has ended; read its report with: latecomer report %s\n", o.job.c_str());
    return 0;
  };
  if (std::filesystem::is_regular_file(o.job) && !std::filesystem::is_directory(o.job + ".parts")) return ended();
  const std::string folder = snapshots_of(o.job);
  const int looks = o.once ? 1 : o.looks;
  const bool draws = looks != 1 && o.prometheus.empty() && isatty(STDOUT_FILENO) == 1;
  if (draws) make_room();
  char status[64];
  std::snprintf(status, sizeof status, "every %g s; Ctrl-C ends it", o.seconds);
  std::vector<LiveRank> seen;
  for (int i = 0; looks == 0 || i < looks; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(o.seconds));
    const std::optional<ScreenText> text = look(o, folder, metrics ? &*metrics : nullptr, seen);
    if (!text) return ended();
    if (draws && i + 1 != looks) redraw(text->head, text->rows, status);
    else std::printf("%s%s%s", i > 0 && o.prometheus.empty() ? "\n" : "", text->head.c_str(), text->rows.c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

void add_top(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("top", "Show where a running job waits, again and again");
  auto o = std::make_shared<TopOptions>();
  command->add_option("PROFILE", o->job, "The profile that the job will write, or its folder PROFILE.parts.")
      ->required();
  command->add_option("--seconds", o->seconds, "Time between two looks.")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->add_option("--looks", o->looks, "Number of looks. 0: until the job ends.")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--once", o->once, "Print one look as text, as --looks 1 does.");
  command->add_option("--sites", o->sites, "Number of call sites to show.")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--ranks", o->ranks, "Number of ranks to show.")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--prometheus", o->prometheus,
                      "Write the figures to this file (- for stdout) in the text format of Prometheus, and no text.");
  AnswerFile::add_force(*command, o->force);
  command->add_flag("--redact", o->redact, "Leave out command lines, names of hosts and directories.");
  command->footer(
      R"(The figures come from the snapshots that each process writes each second to each minute (policy key `spool`). A job on
several hosts needs a shared folder for its profile. The line `Now` comes from shared memory, and on other hosts from
`latecomer relay`. Ctrl-C ends the command. `latecomer who` shows the state of each rank.

Example:
  $ latecomer top job.json
  $ latecomer top --seconds 15 --prometheus /var/lib/node_exporter/job.prom job.json)");
  command->callback([o, &action] { action = [o] { return top(*o); }; });
}

}  // namespace latecomer::profiles::cli
