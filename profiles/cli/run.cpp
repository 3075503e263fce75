// SPDX-License-Identifier: BSD-3-Clause
// `latecomer run`: starts an MPI program with the library preloaded on the ranks only.
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/file.hpp"
#include "core/policy/policy.hpp"
#include "profiles/base/json.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/policy_text.hpp"
#include "profiles/launch/ending.hpp"
#include "profiles/launch/launch.hpp"
#include "profiles/launch/output.hpp"
#include "profiles/launch/roll_call.hpp"
#include "profiles/watch/watch.hpp"

namespace latecomer::profiles::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string policy, output, launcher, mpi, learn;
  int verbose = -1;
  double still = 10;
  bool automatic = false, record = false, force = false, overwrite = false, strict = false, quiet = false;
  std::vector<std::string> command;
};

/// The preload: build/bin/latecomer -> build/lib/liblatecomer.so, installed likewise.
std::string find_library() {
  std::string found = find_beside(
      {"../lib/liblatecomer.so", "../lib64/liblatecomer.so", LATECOMER_LIBRARY_FROM_BIN "/liblatecomer.so"});
  if (found.empty())
    throw BadUsage("run: liblatecomer.so is not beside this command (it was built with LATECOMER_BUILD_SHIM=OFF?)");
  // The dynamic linker reads LD_PRELOAD as a list.
  if (found.find_first_of(" :") != std::string::npos)
    throw BadUsage("run: LD_PRELOAD cannot name '" + found +
                   "': a space or a colon ends a name there; install it elsewhere, or run it through a link");
  return found;
}

/// Hands the policy to the ranks.
void give_to_ranks(const PolicyText& policy) {
  // Derived: Linux takes 128 KiB for a variable and its name, and launchers add to it.
  constexpr std::size_t kMostInVariable = 100'000;
  if (policy.for_ranks.size() > kMostInVariable)
    throw BadUsage("run: the policy has " + std::to_string(policy.for_ranks.size()) +
                   " bytes, and only 100,000 fit unless it is a file: write it to a file");
  setenv("LATECOMER_POLICY", policy.for_ranks.c_str(), 1);
}

/// Reads the configuration of the site. Rank 0 reads its own.
core::PolicyReport configuration(const std::string& path) {
  if (path.empty()) return {};
  if (std::getenv("LATECOMER_CONFIG")) setenv("LATECOMER_CONFIG", fs::absolute(path).c_str(), 1);  // of other folders
  const auto text = core::read_file(path);
  return text ? core::parse_policy(*text) : core::PolicyReport{};  // rank 0 reports the error
}

/// Refuses options of latecomer run among those of the launcher.
void check_places(const Launch& launch) {
  if (!launch.launcher) return;
  for (std::size_t at = launch.options; at < launch.words.size() && launch.words[at] != launch.program; ++at) {
    const std::string& word = launch.words[at];
    const std::string name = word.substr(0, word.find('='));
    const std::string_view option = launch.launcher->option_in(word);
    if (has_word(launch.launcher->flags, option) || has_word(launch.launcher->values, option)) continue;
    if (has_word("--policy --output --launcher --mpi --verbose --auto --learn --record --force --overwrite --strict "
                 "--still --quiet",
                 name))
      throw BadUsage("run: " + word + " is an option of latecomer run and goes before --: latecomer run " + name +
                     " ... -- -n 8 ./program");
  }
}

int run_program(const RunOptions& o) {
  if (o.command.empty()) throw BadUsage("run: nothing to run; write: latecomer run -- -n 8 ./program");
  if (o.automatic && !o.policy.empty())
    throw BadUsage("run: --auto takes no policy; write \"use\": \"auto\" in a rule of it");
  if (!o.learn.empty() && !o.automatic)
    throw BadUsage("run: --learn goes with --auto; a policy names the file by its key \"learn\"");
  if (o.record && !o.policy.empty())
    throw BadUsage("run: --record takes no policy; write \"record\": \"arrivals\" in it");
  if (o.automatic || o.record)
    setenv("LATECOMER_POLICY",
           (std::string("{\"version\": 1") + (o.record ? ", \"record\": \"arrivals\"" : "") +
            (o.automatic ? R"(, "mode": "apply", "network": "measure", "rules": [{"match": {}, "use": "auto"}])" : "") +
            (o.learn.empty() ? "" : ", \"learn\": " + json_text(fs::absolute(o.learn).string())) + "}")
               .c_str(),
           1);
  if (o.verbose >= 0) setenv("LATECOMER_VERBOSE", std::to_string(o.verbose).c_str(), 1);
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const std::string policy = o.policy.empty() ? set("LATECOMER_POLICY") : o.policy;
  std::string policy_name = configuration_path();
  const core::PolicyReport site = configuration(policy_name);
  core::PolicyReport report = site;
  if (!policy.empty()) {
    const PolicyText text = policy_text("run", policy);
    report = core::parse_policy(text.text);
    policy_name = text.name;
    give_to_ranks(text);
  }
  check_family("run", o.mpi);
  std::string mpi = o.mpi;
  for (const std::string& next : {set("LATECOMER_MPI"), report.policy.mpi, site.policy.mpi})
    if (mpi.empty()) mpi = next;
  if (!mpi.empty()) setenv("LATECOMER_MPI", mpi.c_str(), 1);
  Launch launch = plan_launch("run", o.command, o.launcher, mpi);
  const std::string program = launch.program;
  if (program.empty()) throw BadUsage("run: no program among the launcher's arguments");
  check_places(launch);
  // The ranks of a job that only observes lose no call: rank 0 says that it does not use the policy. Nor does a mistake
  // of the site stop a job.
  if (!report.ok() && !o.force && (o.strict || (report.asks_to_apply && !policy.empty()))) {
    for (const auto& p : report.problems)  // as `latecomer check` prints them
      std::cerr << policy_name << ":" << p.line << ": " << p.path << (p.path.empty() ? "" : ": ") << p.message << "\n";
    std::cerr
        << "latecomer: run: the policy has mistakes and was not used; --force runs the program anyway, observed only\n";
    return 2;
  }
  const std::string library = find_library();
  if (set("LATECOMER_DISABLE") == "1") {
    preload(launch, library);
    return start_launcher(launch);
  }
  const Ended ended = [&] {
    std::string name = o.output;
    for (const std::string& next : {set("LATECOMER_OUTPUT"), report.policy.output, site.policy.output})
      if (name.empty()) name = next;
    Output output(name);
    const bool writes = !report.ok() || report.policy.mode != core::Mode::off;
    if (writes) output.claim(o.overwrite, o.strict, o.quiet);
    else if (policy.empty())
      std::cerr << "latecomer: " << shown_path(policy_name)
                << " turns observation off; with LATECOMER_CONFIG= in the environment it has no effect\n";
    std::optional<RollCall> roll_call;
    if (writes) roll_call.emplace();
    preload(launch, library);
    // Without snapshots, nothing is to be left.
    std::optional<JobWatch> watch;
    if (writes && report.policy.spool && report.policy.live) watch.emplace(output.key(), o.still);
    const Ended how = run_and_wait(launch, watch ? &*watch : nullptr, roll_call ? &*roll_call : nullptr);
    roll_call.reset();
    if (watch) watch->ended(!output.written().empty(), !output.left().empty());
    if (writes) say_end(output, how, program, o.quiet);
    return how;
  }();
  if (ended.signal) {
    // As if the launcher had been started in the place of this process.
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(ended.signal, SIG_DFL);
    raise(ended.signal);
  }
  return ended.status;
}

}  // namespace

void add_mpi_option(CLI::App& command, std::string& mpi) {
  command
      .add_option(
          "--mpi", mpi,
          "Family of the program's MPI library: mpich, openmpi or abi (MPI's standard ABI). For a library, or a "
          "launcher, that latecomer does not recognise; such a launcher gets the options of that family's.")
      ->check(CLI::IsMember({"mpich", "openmpi", "abi"}));
}

std::vector<std::string> separate_command(CLI::App& app, std::vector<std::string> words) {
  if (words.empty() || words.front() != "run") return words;
  const CLI::App* command = app.get_subcommand("run");
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const std::string word = words[i].substr(0, words[i].find('='));
    const CLI::Option* own = word.starts_with("-") ? command->get_option_no_throw(word) : nullptr;
    if (own) {
      if (own->get_items_expected_max() > 0 && word == words[i]) ++i;
    } else if (!word.starts_with("-") || is_launcher_option(word)) {
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), "--");
      break;
    } else {
      break;  // the parser says that it is unknown
    }
  }
  return words;
}

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Run an MPI program with the library preloaded on its ranks");
  auto o = std::make_shared<RunOptions>();
  command->add_option(
      "--policy", o->policy,
      "Policy file, or the policy itself if the word begins with {. Without one, the job is observed only.");
  command->add_option(
      "--output", o->output,
      "Profile file to write. %j stands for the job id, %u for the user, %p for the process id of rank 0, %h for its "
      "host. Folders whose names hold one of these are made. Default: "
      "latecomer.%j.json. If it exists, or if another job uses it, the name gets a number: job.json, job-2.json, "
      "job-3.json.");
  command->add_option("--launcher", o->launcher,
                      "Launcher to use instead of that of the program's MPI library, such as srun. COMMAND may also "
                      "begin with the launcher. It is started by the name that you write.");
  add_mpi_option(*command, o->mpi);
  command
      ->add_option("--verbose", o->verbose,
                   "0: print warnings only. 1: also the configuration and a summary. 2 and 3: also the plans.")
      ->check(CLI::Range(0, 3));
  command
      ->add_option(
          "--still", o->still,
          "Seconds without progress after which the state of the ranks on this host is kept on disk, beside the "
          "snapshots. If the job is killed then, the report says where it stood.")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6));
  command->add_flag("--overwrite", o->overwrite,
                    "Replace an existing profile, and discard the snapshots that an earlier job left beside it. Files "
                    "of a job that may be running stay.");
  auto* force = command->add_flag("--force", o->force,
                                  "Run even if a policy that replaces calls has mistakes. It is not used then.");
  command
      ->add_flag("--strict", o->strict,
                 "Do not run if the profile cannot be written or if any policy has mistakes. Otherwise a line says "
                 "what is lost, and the program runs.")
      ->excludes(force);
  command->add_flag("--auto", o->automatic,
                    "Measure the network at start and let latecomer choose an algorithm for each call.");
  command->add_option("--learn", o->learn,
                      "With --auto: the file that passes what is learned from run to run. Read if it exists, and "
                      "written at the end. The next run starts with the algorithms that won.");
  command->add_flag("--record", o->record,
                    "Record the arrivals of all calls, for latecomer whatif, instead of a sample.");
  command->add_flag(
      "--quiet", o->quiet,
      "Print nothing at the end. Otherwise the job is followed by the first sentences of the verdict, the "
      "name of the profile and the next command, on stderr.");
  command
      ->add_option(
          "COMMAND", o->command,
          "Arguments of the launcher, after --: -n 8 ./program arguments. Or the launcher and its arguments, also "
          "behind commands such as env and nice. Or any other command that starts a launcher: the ranks get "
          "the preload through its environment.")
      ->expected(-1);
  command->positionals_at_end();
  command->footer(R"(Examples:
  $ latecomer run -- -n 8 ./program arguments
  $ latecomer run --policy policy.json --output job.json -- srun -n 512 ./program
  $ latecomer run -- env OMP_NUM_THREADS=1 mpirun -n 8 ./program
  $ latecomer run -- ./job.sh)");
  command->callback([o, &action] { action = [o] { return run_program(*o); }; });
}

}  // namespace latecomer::profiles::cli
