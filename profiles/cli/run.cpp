// SPDX-License-Identifier: BSD-3-Clause
// `latecomer run`: starts an MPI program with the library preloaded on the ranks only.
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "profiles/cli/commands.hpp"

namespace latecomer::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string policy, output, launcher;
  int verbose = -1;
  bool automatic = false;
  std::vector<std::string> command;
};

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

/// The preload beside this command: build/bin/latecomer -> build/lib/liblatecomer.so, installed likewise.
std::string find_library() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const char* relative : {"../lib/liblatecomer.so", "../lib64/liblatecomer.so", "../lib/x86_64-linux-gnu/liblatecomer.so"}) {
    const fs::path candidate = self.parent_path() / relative;
    if (fs::exists(candidate)) return fs::canonical(candidate).string();
  }
  throw BadUsage("run: liblatecomer.so is not beside this command (it was built with LATECOMER_BUILD_SHIM=OFF?)");
}

/// The libraries an ELF file names as needed.
std::set<std::string> needed_libraries(const std::string& path) {
  std::set<std::string> out;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  elf_version(EV_CURRENT);
  if (Elf* elf = elf_begin(fd, ELF_C_READ, nullptr)) {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section));) {
      GElf_Shdr header;
      if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC || header.sh_entsize == 0) continue;
      Elf_Data* data = elf_getdata(section, nullptr);
      for (int i = 0; data && i < static_cast<int>(header.sh_size / header.sh_entsize); ++i) {
        GElf_Dyn entry;
        if (!gelf_getdyn(data, i, &entry) || entry.d_tag != DT_NEEDED) continue;
        if (const char* name = elf_strptr(elf, header.sh_link, entry.d_un.d_val)) out.insert(name);
      }
    }
    elf_end(elf);
  }
  close(fd);
  return out;
}

/// The program among the launcher's arguments: the first word that is neither an option nor its value.
std::string program_in(const std::vector<std::string>& arguments) {
  static const std::set<std::string> kWithValue = {"-n", "-np", "-host", "-hosts", "-f", "-ppn", "-wdir", "-hostfile", "-machinefile", "-bind-to", "-map-by",
                                                   "-envlist", "-genvlist", "-launcher", "-iface", "-rmk", "-configfile", "-usize", "-prepend-pattern", "-outfile-pattern", "-errfile-pattern"};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string word = arguments[i];
    if (word.starts_with("--")) word.erase(0, 1);
    if (word == "-env" || word == "-genv") i += 2;
    else if (kWithValue.count(word)) ++i;
    else if (!word.starts_with("-")) return arguments[i];
  }
  return "";
}

int run(const Options& o) {
  if (o.command.empty()) throw BadUsage("run: nothing to run; write: latecomer run -- -n 8 ./program");
  if (o.automatic) throw BadUsage("run: --auto is not available in this version; give a policy");
  const std::string program = program_in(o.command);
  if (program.empty()) throw BadUsage("run: no program among the launcher's arguments");
  const std::string library = find_library();
  std::string launcher;
  for (const std::string& name : o.launcher.empty() ? std::vector<std::string>{"mpiexec.mpich", "mpiexec.hydra", "mpiexec"} : std::vector<std::string>{o.launcher})
    if (launcher.empty()) launcher = find_in_path(name);
  if (launcher.empty()) throw BadUsage("run: no launcher found" + (o.launcher.empty() ? " (mpiexec.mpich, mpiexec.hydra, mpiexec)" : ": " + o.launcher));
  for (const std::string& needed : needed_libraries(find_in_path(program)))
    if (needed.starts_with("libmpi.so.40") || needed.starts_with("libmpi_mpifh") || needed.starts_with("libmpi_usempi"))
      throw BadUsage("run: " + program + " is linked against Open MPI (" + needed + "); latecomer works with MPICH");
  const std::string& policy = o.policy;
  if (!policy.empty() && access(policy.c_str(), R_OK) != 0) throw BadUsage("run: cannot read the policy '" + policy + "'");

  // On the ranks only: the launcher and its proxies are not MPI programs. What the user preloads stays.
  const char* before = std::getenv("LD_PRELOAD");
  const std::string preload = before && *before ? library + ":" + before : library;
  std::vector<std::string> words = {launcher};
  const bool srun = fs::path(launcher).filename() == "srun";
  if (srun) words.push_back("--export=ALL,LD_PRELOAD=" + preload);
  else words.insert(words.end(), {"-genv", "LD_PRELOAD", preload});
  unsetenv("LD_PRELOAD");
  if (!policy.empty()) setenv("LATECOMER_POLICY", fs::absolute(policy).c_str(), 1);
  if (!o.output.empty()) setenv("LATECOMER_OUTPUT", fs::absolute(o.output).c_str(), 1);
  if (o.verbose >= 0) setenv("LATECOMER_VERBOSE", std::to_string(o.verbose).c_str(), 1);
  words.insert(words.end(), o.command.begin(), o.command.end());
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  execv(launcher.c_str(), argv.data());
  std::cerr << "latecomer: cannot start " << launcher << ": " << std::strerror(errno) << "\n";
  return 2;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Run an MPI program under latecomer: latecomer run [options] -- -n 8 ./program args");
  auto o = std::make_shared<Options>();
  command->add_option("--policy", o->policy, "policy file; without one, observe only");
  command->add_option("--output", o->output, "profile file (%j job, %p process, %h host)");
  command->add_option("--launcher", o->launcher, "launcher to use instead of MPICH's mpiexec; srun is known");
  command->add_option("--verbose", o->verbose, "0 to 3")->check(CLI::Range(0, 3));
  command->add_flag("--auto", o->automatic, "apply, and choose by itself");
  command->add_option("COMMAND", o->command, "the launcher's arguments, after --")->expected(-1);
  command->positionals_at_end();
  command->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace latecomer::cli
