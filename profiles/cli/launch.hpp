// SPDX-License-Identifier: BSD-3-Clause
// Starting MPI programs: finding a launcher and what belongs to this installation, and telling the program
// apart from the launcher's own options. MPICH's mpiexec and Slurm's srun are known.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace latecomer::cli {

/// The executable of that name in PATH, or the path itself if it is one; "" if there is none.
std::string find_in_path(const std::string& name);

/// A file of this installation, beside the running command: build/bin or PREFIX/bin. `kinds`: paths relative
/// to the command's folder, the first that exists is taken. "" if none does.
std::string find_beside(const std::vector<std::string>& relative);

/// A launcher and the words for it.
struct Launch {
  std::string launcher;  ///< path
  bool slurm = false;
  std::vector<std::string> arguments;  ///< without the launcher
  std::string program;                 ///< among the arguments; "" if there is none
};

/// `command`: what follows `--`; it may begin with a launcher's name. `wanted`: --launcher, or "". BadUsage
/// (after `verb: `) if there is no launcher.
Launch plan_launch(const std::string& verb, std::vector<std::string> command, const std::string& wanted);

/// Sets LD_PRELOAD for the ranks only; what the user preloads stays.
void preload(Launch& launch, const std::string& library);

/// Replaces this process; returns 2 if that fails.
int start(const Launch& launch);

/// How the launcher ended.
struct Ended {
  int status = 0;     ///< its exit status; 128 + signal if one ended it
  int signal = 0;     ///< the signal that ended it, or 0
  int passed_on = 0;  ///< the last signal that came for this process and went on to the launcher, or 0
};

/// Runs the launcher and waits for its end. Signals that this process gets go on to it; if this process is killed, so
/// is the launcher.
Ended run_and_wait(const Launch& launch);

/// Whether `word` is an option of the launcher that an MPI user would write first: `-n`, `-np`, `-ppn`, ...
bool is_launcher_option(const std::string& word);

/// The libraries an ELF file names as needed; empty if it is none.
std::set<std::string> needed_libraries(const std::string& path);

}  // namespace latecomer::cli
