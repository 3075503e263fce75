// SPDX-License-Identifier: BSD-3-Clause
// `latecomer top`: the report of a running job, again and again. Reads the snapshots that the job's processes write.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "profiles/cli/commands.hpp"
#include "profiles/cli/profile_file.hpp"
#include "profiles/cli/prometheus.hpp"
#include "profiles/cli/rank_table.hpp"
#include "profiles/cli/site_table.hpp"
#include "profiles/cli/verdict.hpp"
#include "profiles/profile.hpp"
#include "profiles/redact.hpp"
#include "profiles/spool.hpp"

namespace latecomer::cli {
namespace {

struct Options {
  std::string job, prometheus;
  double seconds = 2;
  int looks = 0, sites = 10, ranks = 10;
  bool redact = false;
};

/// Reads the snapshots once. Returns false if they are gone, because the job has ended.
bool look(const Options& o, const std::string& folder) {
  auto read = profiles::read_spool(folder);
  if (!read) {
    if (!std::filesystem::is_directory(folder)) return false;
    std::printf("No snapshot is complete yet: %s\n", read.error().c_str());
    return true;
  }
  Json profile = Json::parse(profiles::write_profile(std::move(read->parts)));
  resolve_names(profile, Progress::Patience{});
  if (o.redact) profiles::redact(profile);
  auto& sites = profile["sites"].get_ref<Json::array_t&>();
  std::stable_sort(sites.begin(), sites.end(),
                   [](const Json& a, const Json& b) { return total_wait(a) > total_wait(b); });
  if (!o.prometheus.empty()) {
    const auto written =
        profiles::write_file(o.prometheus, profiles::prometheus_text(metrics_of(profile, o.sites, o.ranks)));
    if (!written) throw std::runtime_error(written.error());
    return true;
  }
  std::printf("%s\n%.1f s of the job are in its snapshots\n\n",
              profile["job"]["command_line"].get<std::string>().c_str(), profile["job"]["wall_time_s"].get<double>());
  for (const std::string& sentence : verdict(profile)) std::printf("%s\n", sentence.c_str());
  std::printf("\n");
  print_sites(profile, o.sites);
  print_ranks(profile, o.ranks);
  return true;
}

int ended(const Options& o) {
  std::printf("The job has ended; read its report with: latecomer report %s\n", o.job.c_str());
  return 0;
}

int top(const Options& o) {
  if (std::filesystem::is_regular_file(o.job) && !std::filesystem::is_directory(o.job + ".parts")) return ended(o);
  const std::string folder = snapshots_of(o.job);
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  for (int i = 0; o.looks == 0 || i < o.looks; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(o.seconds));
    if (terminal && o.prometheus.empty()) std::printf("\033[H\033[2J");  // clears the screen
    else if (i > 0 && o.prometheus.empty()) std::printf("\n");
    if (!look(o, folder)) return ended(o);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

void add_top(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("top", "Show where a running job waits, again and again");
  auto o = std::make_shared<Options>();
  command->add_option("PROFILE", o->job, "The profile that the job will write, or its folder PROFILE.parts.")
      ->required();
  command->add_option("--seconds", o->seconds, "Time between two looks.")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->add_option("--looks", o->looks, "Number of looks. 0: until the job ends.")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--sites", o->sites, "Number of call sites to show.")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--ranks", o->ranks, "Number of ranks to show.")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--prometheus", o->prometheus,
                      "Write the figures to this file in the text format of Prometheus, and print nothing.");
  command->add_flag("--redact", o->redact, "Leave out command lines, names of hosts and directories.");
  command->footer(
      R"(The figures come from the snapshots that each process writes at most every few seconds (policy key `spool`). A job on
several hosts needs a shared folder for its profile. `latecomer who` shows the state of this moment.

Example:
  $ latecomer top job.json
  $ latecomer top --seconds 15 --prometheus /var/lib/node_exporter/job.prom job.json)");
  command->callback([o, &action] { action = [o] { return top(*o); }; });
}

}  // namespace latecomer::cli
