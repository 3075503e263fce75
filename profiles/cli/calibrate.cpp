// SPDX-License-Identifier: BSD-3-Clause
// `latecomer calibrate`: measures the network and prints the policy's `network` object.
#include <memory>
#include <thread>

#include "profiles/base/mpi_version.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/launch/launch.hpp"

namespace latecomer::profiles::cli {
namespace {

struct CalibrateOptions {
  int ranks = 2;
  std::string launcher, mpi;
  std::vector<std::string> more;
  bool json = false;
};

int calibrate(const CalibrateOptions& o, bool ranks_given) {
  check_family("calibrate", o.mpi);
  if (o.mpi == profiles::kAbi.name)
    throw BadUsage("calibrate: the network is that of the library beneath MPI's standard ABI: name mpich or openmpi");
  Launch launch = plan_launch("calibrate", o.more, o.launcher, o.mpi);
  // Each MPI library has a program of its own.
  const auto helper_of = [](std::string_view mpi) {
    const std::string name = "latecomer-calibrate" + (mpi == "mpich" ? "" : "-" + std::string(mpi));
    return find_beside({name, LATECOMER_HELPERS_FROM_BIN "/" + name});
  };
  std::string mpi = o.mpi, helper;
  if (mpi.empty() && launch.launcher) mpi = launch.launcher->mpi;
  for (const Launcher& one : kLaunchers)
    if (helper.empty() && !one.mpi.empty() && (mpi.empty() || mpi == one.mpi)) helper = helper_of(one.mpi);
  if (helper.empty())
    throw BadUsage("calibrate: the program that measures with " + title(mpi.empty() ? "mpich" : mpi) +
                   " is not installed with this command; build it where that library is, with LATECOMER_BUILD_SHIM=ON");
  int ranks = ranks_in(launch);
  if (ranks != 0 && ranks_given)
    throw BadUsage("calibrate: --ranks and an option of the launcher both give the number of ranks");
  if (ranks == 0) {
    ranks = o.ranks;
    launch.words.insert(launch.words.end(), {"-n", std::to_string(ranks)});
  }
  launch.words.push_back(helper);
  // With fewer cores than ranks on one machine, a waiting rank must yield its core.
  if (static_cast<unsigned>(ranks) > std::thread::hardware_concurrency()) launch.words.emplace_back("yield");
  return start_launcher(launch);
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("calibrate", "Measure the network and print the object for the policy key network");
  auto o = std::make_shared<CalibrateOptions>();
  auto* ranks =
      command->add_option("-n,--ranks", o->ranks, "Ranks to start. Rank 0 measures with up to eight of the others.")
          ->capture_default_str()
          ->check(CLI::Range(2, 1 << 20));
  command->add_option("--launcher", o->launcher,
                      "Launcher to use instead of MPICH's mpiexec, such as srun or mpiexec.openmpi.");
  add_mpi_option(*command, o->mpi);
  command->add_option("OPTIONS", o->more, "Further options of the launcher, after --, or the launcher and its options.")
      ->expected(-1);
  command->add_flag("--json", o->json, "Accepted as for other commands. The answer is always JSON.");
  command->positionals_at_end();
  command->footer(
      R"(The answer is the object for the policy's key `network`: alpha_us (start-up of a message, occupies the ports), latency_us
(time in flight), beta_ns_per_byte, gamma_ns_per_byte (reduction), copy_ns_per_byte, overhead_us (processor time per message),
eager (largest message in bytes that does not wait for its receiver), ports, duplex (half: large messages of two ranks to each other take turns). See latecomer-simulate(1) for their meaning in the model.
If the job has several hosts with equal numbers of consecutive ranks, these figures hold between hosts. The answer then has
ranks_per_host, and memory_beta_ns_per_byte and memory_latency_us for messages inside a host.

Example: between two hosts, one rank on each
  $ latecomer calibrate -n 2 -- -ppn 1 -hosts node1,node2)");
  command->callback([o, ranks, &action] { action = [o, ranks] { return calibrate(*o, ranks->count() > 0); }; });
}

}  // namespace latecomer::profiles::cli
