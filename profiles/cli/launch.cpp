// SPDX-License-Identifier: BSD-3-Clause
// Starting MPI programs.
#include "profiles/cli/launch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "profiles/cli/commands.hpp"

namespace latecomer::cli {
namespace {

namespace fs = std::filesystem;

// Options that take the next word as their value, by launcher.
const std::set<std::string> kMpiexecValues = {"-n", "-np", "-host", "-hosts", "-f", "-ppn", "-wdir", "-hostfile", "-machinefile", "-bind-to", "-map-by", "-membind",
                                              "-envlist", "-genvlist", "-launcher", "-launcher-exec", "-iface", "-rmk", "-configfile", "-usize", "-prepend-pattern",
                                              "-outfile-pattern", "-errfile-pattern", "-path", "-order-nodes", "-ranks-per-proc", "-umask", "-localhost", "-timeout"};
const std::set<std::string> kSrunValues = {
    "-n", "--ntasks", "-N", "--nodes", "-c", "--cpus-per-task", "-p", "--partition", "-t", "--time", "-A", "--account", "-J", "--job-name", "-w", "--nodelist", "-x", "--exclude",
    "-o", "--output", "-e", "--error", "-i", "--input", "-D", "--chdir", "-m", "--distribution", "-q", "--qos", "-C", "--constraint", "-d", "--dependency", "-G", "--gpus",
    "-K", "-r", "--relative", "-W", "--wait", "--mem", "--mem-per-cpu", "--ntasks-per-node", "--gres", "--mpi", "--reservation", "--export", "--cpu-bind", "--jobid", "-M", "--clusters"};
// Options whose next two words belong to them.
const std::set<std::string> kMpiexecTwo = {"-env", "-genv"};

bool is_srun(const std::string& path) { return fs::path(path).filename() == "srun"; }
bool is_launcher(const std::string& word) {
  const std::string name = fs::path(word).filename().string();
  return name == "srun" || name == "mpirun" || name.starts_with("mpirun.") || name == "mpiexec" || name.starts_with("mpiexec.");
}

std::string program_in(const std::vector<std::string>& arguments, bool slurm) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string word = arguments[i];
    if (!word.starts_with("-")) return arguments[i];
    if (slurm) {
      if (kSrunValues.count(word)) ++i;
      continue;
    }
    if (word.starts_with("--")) word.erase(0, 1);
    if (kMpiexecTwo.count(word)) i += 2;
    else if (kMpiexecValues.count(word)) ++i;
  }
  return "";
}

}  // namespace

std::string find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const auto colon = std::min(rest.find(':'), rest.size());
    const std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) return candidate;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return "";
}

std::string find_beside(const std::vector<std::string>& relative) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const std::string& name : relative) {
    const fs::path candidate = self.parent_path() / name;
    if (fs::exists(candidate)) return fs::canonical(candidate).string();
  }
  return "";
}

Launch plan_launch(const std::string& verb, std::vector<std::string> command, const std::string& wanted) {
  Launch out;
  std::vector<std::string> names = {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"};
  if (!wanted.empty()) {
    names = {wanted};
  } else if (!command.empty() && is_launcher(command.front())) {
    names = {command.front()};
    command.erase(command.begin());
  }
  for (const std::string& name : names)
    if (out.launcher.empty()) out.launcher = find_in_path(name);
  if (out.launcher.empty()) {
    std::string tried;
    for (const std::string& name : names) tried += (tried.empty() ? "" : ", ") + name;
    throw BadUsage(verb + ": no launcher found (" + tried + ")");
  }
  out.slurm = is_srun(out.launcher);
  out.program = program_in(command, out.slurm);
  out.arguments = std::move(command);
  return out;
}

void preload(Launch& launch, const std::string& library) {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string value = before && *before ? library + ":" + before : library;
  // The launcher and its proxies are not MPI programs.
  unsetenv("LD_PRELOAD");
  std::vector<std::string> words;
  if (launch.slurm) {
    // srun takes one --export; what the user exports stays.
    std::string exported = "ALL";
    for (auto at = launch.arguments.begin(); at != launch.arguments.end() && *at != launch.program; ++at) {
      if (at->starts_with("--export=")) exported = at->substr(9), at = launch.arguments.erase(at);
      else if (*at == "--export" && at + 1 != launch.arguments.end()) exported = *(at + 1), at = launch.arguments.erase(at, at + 2);
      else continue;
      break;
    }
    words = {"--export=" + exported + ",LD_PRELOAD=" + value};
    for (const char* name : {"LATECOMER_POLICY", "LATECOMER_OUTPUT", "LATECOMER_VERBOSE"})
      if (const char* set = std::getenv(name); set && exported != "ALL") words.back() += std::string(",") + name + "=" + set;
  } else {
    words = {"-genv", "LD_PRELOAD", value};
  }
  launch.arguments.insert(launch.arguments.begin(), words.begin(), words.end());
}

int start(const Launch& launch) {
  std::vector<std::string> words = {launch.launcher};
  words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  execv(launch.launcher.c_str(), argv.data());
  std::cerr << "latecomer: cannot start " << launch.launcher << ": " << std::strerror(errno) << "\n";
  return 2;
}

}  // namespace latecomer::cli
