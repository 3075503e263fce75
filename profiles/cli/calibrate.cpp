// SPDX-License-Identifier: BSD-3-Clause
// `latecomer calibrate`: measures the network and prints the policy's `network` object.
#include <memory>
#include <thread>

#include "profiles/cli/commands.hpp"
#include "profiles/cli/launch.hpp"

namespace latecomer::cli {
namespace {

struct CalibrateOptions {
  int ranks = 2;
  std::string launcher;
  std::vector<std::string> more;
  bool json = false;
};

int calibrate(const CalibrateOptions& o) {
  // Each MPI library has a program of its own.
  const auto helper_of = [](bool open_mpi) {
    const std::string name = open_mpi ? "latecomer-calibrate-openmpi" : "latecomer-calibrate";
    return find_beside({name, LATECOMER_HELPERS_FROM_BIN "/" + name});
  };
  const bool open_mpi = o.launcher.empty() ? find_launcher(false).empty() && !find_launcher(true).empty()
                                           : is_open_mpi(find_in_path(o.launcher));
  const std::string helper = helper_of(open_mpi);
  if (helper.empty())
    throw BadUsage(std::string("calibrate: the program that measures with ") + title(open_mpi) +
                   " is not installed with this command; build it where that library is, with LATECOMER_BUILD_SHIM=ON");
  std::vector<std::string> words = o.more;
  words.insert(words.end(), {"-n", std::to_string(o.ranks), helper});
  // With fewer cores than ranks on one machine, a waiting rank must yield its core.
  if (static_cast<unsigned>(o.ranks) > std::thread::hardware_concurrency()) words.push_back("yield");
  return start(plan_launch("calibrate", words, o.launcher));
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("calibrate", "Measure the network and print the object for the policy key network");
  auto o = std::make_shared<CalibrateOptions>();
  command->add_option("-n,--ranks", o->ranks, "Ranks to start. Rank 0 measures with up to eight of the others.")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 20));
  command->add_option("--launcher", o->launcher,
                      "Launcher to use instead of MPICH's mpiexec, such as srun or mpiexec.openmpi.");
  command->add_option("OPTIONS", o->more, "Further options of the launcher, after --.")->expected(-1);
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
  command->callback([o, &action] { action = [o] { return calibrate(*o); }; });
}

}  // namespace latecomer::cli
