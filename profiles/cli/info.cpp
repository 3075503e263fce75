// SPDX-License-Identifier: BSD-3-Clause
// `latecomer info`: the MPI libraries that this installation works with, and its support for one program.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "profiles/base/mpi_version.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/version.hpp"
#include "profiles/launch/launch.hpp"

namespace latecomer::profiles::cli {
namespace {

/// What an MPI library says of itself: its text, or "", and the major version of the standard ABI, or -1.
struct Told {
  std::string text;
  int abi = -1;
};
/// A child asks: the library may start threads when it is opened.
Told ask_library(const std::string& library) {
  int ends[2];
  if (library.empty() || pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    static char text[16384];
    int length = 0;
    void* opened = dlopen(library.c_str(), RTLD_NOW);
    const auto ask =
        opened ? reinterpret_cast<int (*)(char*, int*)>(dlsym(opened, "MPI_Get_library_version")) : nullptr;
    if (ask && ask(text, &length) == 0) [[maybe_unused]]
      const auto written = write(ends[1], text, std::strlen(text));
    const auto ask_abi = opened ? reinterpret_cast<int (*)(int*, int*)>(dlsym(opened, "MPI_Abi_get_version")) : nullptr;
    int major = -1, minor = -1;
    if (!ask_abi || ask_abi(&major, &minor) != 0) major = -1;
    _exit(major >= 0 && major < 255 ? major : 255);
  }
  close(ends[1]);
  Told out;
  char some[4096];
  for (ssize_t n; child > 0 && (n = read(ends[0], some, sizeof some)) > 0;)
    out.text.append(some, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) < 255)
    out.abi = WEXITSTATUS(status);
  return out;
}

void line(const char* what, const std::string& text) { std::printf("%-12s%s\n", what, text.c_str()); }

std::string first_line(std::string text) {
  std::ranges::replace(text, '\t', ' ');
  return text.substr(0, text.find('\n'));
}

int say_installation() {
  line("latecomer", kVersionText);
  const std::string front = find_beside(
      {"../lib/liblatecomer.so", "../lib64/liblatecomer.so", LATECOMER_LIBRARY_FROM_BIN "/liblatecomer.so"});
  line("preload", front.empty() ? "liblatecomer.so is not beside this command" : front);
  for (const Launcher& one : kLaunchers) {
    if (one.mpi.empty()) continue;
    const std::string library = family_library(one.mpi), launcher = find_launcher(one.mpi);
    line(one.title.data(),
         (library.empty() ? std::string("programs run unobserved: this installation was built without it") : library) +
             (launcher.empty() ? "; its launcher is not in PATH" : "; launcher " + find_in_path(launcher)));
  }
  const std::string abi = family_library(profiles::kAbi.name);
  line("MPI's ABI", abi.empty() ? std::string("programs run unobserved: this installation was built without it")
                                : abi + "; for programs of libmpi_abi on MPICH or Open MPI");
  return 0;
}

int say_program(const std::string& program) {
  if (find_in_path(program).empty()) throw BadUsage("info: cannot find an executable '" + program + "'");
  const Needs needs = needs_of(program);
  if (needs.library.empty()) {
    line("MPI",
         "the program needs no MPI library that latecomer knows. A script, or a program that loads MPI later, is "
         "recognised when it starts MPI; name its launcher: latecomer run -- mpiexec.openmpi -n 4 " +
             shell_word(program) + "; or its family: latecomer run --mpi openmpi -- -n 4 " + shell_word(program));
    return 1;
  }
  const auto [version, abi] = ask_library(needs.path);
  const auto* known = profiles::family_of(version);
  line("MPI", needs.path + (version.empty() ? "" : ": " + first_line(version)));
  std::string bindings = "C";
  for (const std::string& name : needs.bindings) bindings += ", " + name;
  line("bindings", bindings);
  const std::string launcher = find_launcher(needs.mpi),
                    family = family_library(needs.abi ? profiles::kAbi.name : needs.mpi);
  line("launcher", launcher.empty() ? title(needs.mpi) + "'s launcher is not in PATH; under srun none is needed"
                                    : find_in_path(launcher));
  std::string not_observed;
  if (needs.abi && abi != profiles::kAbiMajor)
    not_observed = "latecomer needs version " + std::to_string(profiles::kAbiMajor) + " of " +
                   profiles::kAbi.title.data() + ", and this library " +
                   (abi < 0 ? "tells none" : "has version " + std::to_string(abi));
  else if (!version.empty() && !known)
    not_observed = "latecomer needs " + std::string(kKnownVersions) +
                   "; latecomer run --mpi names the family whose binary interface this library has";
  else if (family.empty())
    not_observed =
        "this installation was built without " + (needs.abi ? std::string(profiles::kAbi.title) : title(needs.mpi));
  if (!not_observed.empty()) {
    line("observed", "no: " + not_observed);
    return 1;
  }
  line("observed", "yes, through " + family);
  line("served", !needs.abi && needs.mpi == "openmpi" ? "yes; calls of more than 2 GiB stay native" : "yes");
  line("next", "latecomer run -- -n 4 " + shell_word(program));
  return 0;
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("info", "Say what latecomer does with a program, by its MPI library");
  auto program = std::make_shared<std::string>();
  command->add_option("PROGRAM", *program,
                      "The program. Without one, the MPI libraries that this installation works with.");
  command->footer(R"(The exit status is 1 if the program would run unobserved.

Example:
  $ latecomer info ./program)");
  command->callback([&action, program] {
    action = [program] { return program->empty() ? say_installation() : say_program(*program); };
  });
}

}  // namespace latecomer::profiles::cli
