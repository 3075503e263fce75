// SPDX-License-Identifier: BSD-3-Clause
// `latecomer relay`: copies the live state of a job's ranks on this host to the folder of the job's snapshots, again
// and again. So `who` and `top` can read it on other hosts. The command ends with the job.
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "profiles/base/progress.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/files/claim.hpp"
#include "profiles/files/shared_folder.hpp"
#include "profiles/watch/live_copies.hpp"
#include "profiles/watch/live_ranks.hpp"
#include "profiles/watch/watch.hpp"

namespace latecomer::profiles::cli {
namespace {

struct RelayOptions {
  std::string job;
  double seconds = 1, wait = 60;
};

/// The processes of the job on this host. Files that a killed process of an earlier job left are not among them, unless
/// no process lives.
std::vector<LiveRank> ranks_of(const std::string& output) {
  std::vector<LiveRank> out = live_ranks_here();
  std::erase_if(out, [&](const LiveRank& r) { return r.output != output; });
  const auto alive = std::ranges::find_if(out, [](const LiveRank& r) { return r.state != 'X'; });
  if (alive != out.end()) std::erase_if(out, [job = alive->job](const LiveRank& r) { return r.job != job; });
  return out;
}

/// Ends the command in any state, also while a file system does not answer. Removes this host's copy, or keeps it for
/// `latecomer recover` if the job stands still.
class EndOnSignal {
 public:
  EndOnSignal() {
    sigemptyset(&signals_);
    struct sigaction now {
    }, end{};
    end.sa_handler = [](int) {
      remove();
      _exit(0);
    };
    for (const int signal : {SIGTERM, SIGINT, SIGHUP})
      if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {  // nohup ignores some
        sigaddset(&signals_, signal);
        sigaction(signal, &end, nullptr);
      }
  }
  /// Keeps signals back while `work` runs, so that a copy is complete or absent.
  template <typename Work>
  void not_during(Work work) const {
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
    work();
    sigprocmask(SIG_UNBLOCK, &signals_, nullptr);
  }
  static void remove() {
    if (stands_still_) return void(rename(copy_.c_str(), kept_.c_str()));
    unlink(copy_.c_str());
    rmdir(folder_.c_str());  // fails unless it is empty
  }
  void copy_is(const std::string& folder, const std::string& host) const {
    not_during([&] {
      folder_ = folder;
      copy_ = folder + "/" + live_copy_name(host);
      kept_ = folder + "/" + last_state_name(host);
    });
  }
  const std::string& copy() const { return copy_; }
  static void stands_still(bool does) { stands_still_ = does; }

 private:
  sigset_t signals_;
  inline static std::string folder_, copy_, kept_;  // of the only object, for the handler
  inline static bool stands_still_ = false;
};

int relay(const RelayOptions& o) {
  const std::string output = live_job(o.job), folder = output + ".parts";
  const EndOnSignal ending;
  constexpr double kBetweenTries = 0.2;
  const auto pause = [](double seconds) {
    const double whole = std::floor(seconds);
    const timespec time = {static_cast<time_t>(whole), static_cast<long>(1e9 * (seconds - whole))};
    nanosleep(&time, nullptr);
  };
  std::vector<LiveRank> ranks = ranks_of(output);
  const auto lives = [&] { return std::ranges::any_of(ranks, [](auto& r) { return r.state != 'X'; }); };
  for (double waited = 0; !lives(); waited += kBetweenTries, ranks = ranks_of(output)) {
    if (waited >= o.wait)
      throw BadUsage("relay: no process of '" + output + "' lives on this host, or the policy key `live` is false");
    pause(kBetweenTries);
  }
  ending.copy_is(folder, ranks.front().host);
  RanksOfJob here(ranks.front().job);
  Watch watch;
  std::string problem;
  for (bool opened = false;;) {
    if (!opened) {
      const auto checked = open_snapshot_folder(folder, {ranks.front().job, "", "", ranks.front().host});
      if (!checked) throw BadUsage("relay: " + checked.error());
      close(*checked);
      opened = true;
    }
    std::string failed;
    ending.not_during([&] {
      watch.look(ranks);
      EndOnSignal::stands_still(watch.stands_still(analysis::kStandsStill_ns));
      if (const auto written = write_live_copy(ending.copy(), watch.ranks()); !written) failed = written.error();
    });
    if (!failed.empty() && failed != problem) {
      problem = failed;
      opened = false;
      std::fprintf(stderr, "latecomer: relay: %s\n", problem.c_str());
    }
    if (!watch.lives()) return 0;  // killed: the last copy stays
    pause(o.seconds);
    ranks = here.look();
    if (ranks.empty()) break;
  }
  EndOnSignal::stands_still(false);  // it ended well
  EndOnSignal::remove();
  return 0;
}

}  // namespace

void add_relay(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("relay", "Show this host's ranks to `who` and `top` on other hosts");
  auto o = std::make_shared<RelayOptions>();
  command->add_option("PROFILE", o->job, "The job, by the path of the profile that it will write.")->required();
  command->add_option("--seconds", o->seconds, "Time between two copies.")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->add_option("--wait", o->wait, "Seconds to wait for the first process of the job on this host.")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->footer(
      R"(The state of a process is in shared memory of its host. The command copies it to the folder PROFILE.parts, which all hosts
of the job must share. Run it once per host, beside the job. It ends with the last process of the job on its host, or on
SIGTERM. If the processes were killed, or if they stood still at SIGTERM, their last state stays in the folder, and `latecomer
recover` puts it into the profile.

Examples: on this host, under Slurm, and with MPICH's launcher
  $ latecomer relay job.json
  $ srun --overlap -N $SLURM_NNODES --ntasks-per-node=1 latecomer relay job.json
  $ mpiexec -ppn 1 -hosts host0,host1 -n 2 latecomer relay job.json)");
  command->callback([o, &action] { action = [o] { return relay(*o); }; });
}

}  // namespace latecomer::profiles::cli
