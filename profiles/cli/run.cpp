// SPDX-License-Identifier: BSD-3-Clause
// `latecomer run`: starts an MPI program with the library preloaded on the ranks only.
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>

#include "profiles/cli/commands.hpp"
#include "profiles/cli/launch.hpp"

namespace latecomer::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string policy, output, launcher;
  int verbose = -1;
  bool automatic = false;
  std::vector<std::string> command;
};

/// The preload: build/bin/latecomer -> build/lib/liblatecomer.so, installed likewise.
std::string find_library() {
  const std::string found = find_beside({"../lib/liblatecomer.so", "../lib64/liblatecomer.so", LATECOMER_LIBRARY_FROM_BIN "/liblatecomer.so"});
  if (found.empty()) throw BadUsage("run: liblatecomer.so is not beside this command (it was built with LATECOMER_BUILD_SHIM=OFF?)");
  // The dynamic linker reads LD_PRELOAD as a list.
  if (found.find_first_of(" :") != std::string::npos)
    throw BadUsage("run: LD_PRELOAD cannot name '" + found + "': a space or a colon ends a name there; install it elsewhere, or run it through a link");
  return found;
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

int run(const Options& o) {
  if (o.command.empty()) throw BadUsage("run: nothing to run; write: latecomer run -- -n 8 ./program");
  if (o.automatic && !o.policy.empty()) throw BadUsage("run: --auto takes no policy; write \"use\": \"auto\" in a rule of it");
  Launch launch = plan_launch("run", o.command, o.launcher);
  const std::string& program = launch.program;
  if (program.empty()) throw BadUsage("run: no program among the launcher's arguments");
  const std::string library = find_library();
  for (const std::string& needed : needed_libraries(find_in_path(program)))
    if (needed.starts_with("libmpi.so.40") || needed.starts_with("libmpi_mpifh") || needed.starts_with("libmpi_usempi"))
      throw BadUsage("run: " + program + " is linked against Open MPI (" + needed + "); latecomer works with MPICH");
  const std::string& policy = o.policy;
  if (!policy.empty() && access(policy.c_str(), R_OK) != 0) throw BadUsage("run: cannot read the policy '" + policy + "'");

  if (o.automatic) setenv("LATECOMER_POLICY", "{\"version\": 1, \"mode\": \"apply\", \"network\": \"measure\", \"rules\": [{\"match\": {}, \"use\": \"auto\"}]}", 1);
  if (!policy.empty()) setenv("LATECOMER_POLICY", fs::absolute(policy).c_str(), 1);
  if (!o.output.empty()) setenv("LATECOMER_OUTPUT", fs::absolute(o.output).c_str(), 1);
  if (o.verbose >= 0) setenv("LATECOMER_VERBOSE", std::to_string(o.verbose).c_str(), 1);
  preload(launch, library);
  return start(launch);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Run an MPI program under latecomer: latecomer run [options] -- -n 8 ./program args");
  auto o = std::make_shared<Options>();
  command->add_option("--policy", o->policy, "policy file; without one, observe only");
  command->add_option("--output", o->output, "profile file (%j job, %p process, %h host)");
  command->add_option("--launcher", o->launcher, "launcher to use instead of MPICH's mpiexec; srun is known. COMMAND may begin with one, too");
  command->add_option("--verbose", o->verbose, "0 to 3")->check(CLI::Range(0, 3));
  command->add_flag("--auto", o->automatic, "apply, and choose by itself: the network is measured at start, every call is `auto`");
  command->add_option("COMMAND", o->command, "the launcher's arguments, after --")->expected(-1);
  command->positionals_at_end();
  command->footer(R"(Examples:
  $ latecomer run -- -n 8 ./program arguments
  $ latecomer run --policy policy.json --output job.json -- srun -n 512 ./program)");
  command->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace latecomer::cli
