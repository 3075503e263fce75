// SPDX-License-Identifier: BSD-3-Clause
// Starts MPI programs: finds the launcher and the files of this installation, and separates the program from the
// launcher's options. The differences between launchers are in profiles/base/launchers.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/base/launchers.hpp"

namespace latecomer::profiles {

/// The path of an executable in PATH, or `name` itself if it contains a slash and is executable; "" otherwise.
std::string find_in_path(const std::string& name);

/// The first existing file of this installation, or "". `relative`: paths relative to the folder of the running
/// command, which is build/bin or PREFIX/bin.
std::string find_beside(const std::vector<std::string>& relative);

/// The MPI library that a program needs.
struct Needs {
  std::string library;                ///< its file name; "": none, as in a script or a program that loads MPI later
  std::string path;                   ///< as the dynamic linker finds it
  std::string_view mpi;               ///< its family; beneath the standard ABI, that of its launcher
  bool abi = false;                   ///< it has the standard ABI
  std::vector<std::string> bindings;  ///< names of the libraries of its other bindings
};
Needs needs_of(const std::string& program);

/// The name of the family's launcher in PATH, or "".
std::string find_launcher(std::string_view mpi);
/// "MPICH" or "Open MPI".
std::string title(std::string_view mpi);
/// The library of a family in this installation, or "".
std::string family_library(std::string_view mpi);

/// A command.
struct Launch {
  std::vector<std::string> words;
  /// nullptr: not known. The words may start any launcher, or the program itself.
  const Launcher* launcher = nullptr;
  std::size_t options = 0;  ///< of the launcher begin at this word
  std::string program;      ///< "" if the launcher gets none
};

/// `command`: the words after `--`, as `latecomer run --help` describes them. `wanted`: the value of --launcher, or "".
/// `mpi`: the family that the user names, or "". Throws BadUsage with the prefix `verb: ` if no launcher is found, or
/// if it is another library's than the program: each rank would be a job of its own.
Launch plan_launch(const std::string& verb, std::vector<std::string> command, const std::string& wanted,
                   std::string_view mpi);

/// Refuses the value of --mpi if this installation has no library for it.
void check_family(const std::string& verb, std::string_view mpi);

/// The number of ranks in the options of the first program; 0: none.
int ranks_in(const Launch& launch);

/// Where the words behind the launcher's option at `at` and its values begin, and behind all options from `at` on.
std::size_t behind_option(const std::vector<std::string>& words, std::size_t at, const Launcher& launcher);
std::size_t behind_options(const std::vector<std::string>& words, std::size_t at, const Launcher& launcher);

/// Hands LD_PRELOAD and the LATECOMER_* variables to the ranks, and keeps the libraries that the user preloads. A
/// launcher that is known gets options: it runs without the preload, as do its helpers. Any other command gets the
/// preload in its environment, which launchers pass on; it does nothing in a process without MPI.
void preload(Launch& launch, const std::string& library);

/// Replaces this process by the command, which PATH finds, by its name as the user wrote it. Returns 2 on failure.
int start_launcher(const Launch& launch);

/// The end of the command.
struct Ended {
  int status = 0;     ///< exit status, or 128 + signal
  int signal = 0;     ///< the signal that ended the launcher, or 0
  int passed_on = 0;  ///< the last signal that this process received and forwarded to the launcher, or 0
};

class JobWatch;
class RollCall;

/// Runs the launcher and waits for its end. Forwards signals to the launcher. The launcher dies if this process is
/// killed. Starts `watch` and `roll_call`, as far as they exist, and tells `watch` of signals that end the job.
Ended run_and_wait(const Launch& launch, JobWatch* watch, RollCall* roll_call);

/// Whether `word` is an option of a launcher that an MPI user may write first, such as `-n`, `-np` or `-ppn`.
bool is_launcher_option(const std::string& word);

}  // namespace latecomer::profiles
