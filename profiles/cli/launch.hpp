// SPDX-License-Identifier: BSD-3-Clause
// Starts MPI programs: finds the launcher and the files of this installation, and separates the program from the
// launcher's options. Knows the launchers of MPICH and Open MPI, and Slurm's srun.
#pragma once

#include <string>
#include <vector>

namespace latecomer::cli {

/// The path of an executable in PATH, or `name` itself if it contains a slash and is executable; "" otherwise.
std::string find_in_path(const std::string& name);

/// The first existing file of this installation, or "". `relative`: paths relative to the folder of the running
/// command, which is build/bin or PREFIX/bin.
std::string find_beside(const std::vector<std::string>& relative);

/// The MPI library that a program needs.
struct Needs {
  std::string library;  ///< its file's name; "": none, as of a script or a program that loads MPI later
  std::string path;     ///< as the dynamic linker finds it
  bool open_mpi = false;
  std::vector<std::string> bindings;  ///< names of the libraries of its other bindings
};
Needs needs_of(const std::string& program);

/// Whether the launcher at `path` belongs to Open MPI, by the name behind all links or by its libraries.
bool is_open_mpi(const std::string& path);
/// The path of MPICH's or Open MPI's launcher in PATH, or "".
std::string find_launcher(bool open_mpi);
/// "MPICH" or "Open MPI".
const char* title(bool open_mpi);

/// A launcher and its arguments.
struct Launch {
  enum class Kind { mpich, open_mpi, slurm };
  std::string launcher;  ///< path
  Kind kind = Kind::mpich;
  std::vector<std::string> arguments;  ///< without the launcher
  std::string program;                 ///< one of the arguments; "" if they name no program
};

/// `command`: the words after `--`; the first may be a launcher. `wanted`: the value of --launcher, or "". Without
/// either, the launcher is that of the first word that is a program of MPI. Throws BadUsage with the prefix
/// `verb: ` if no launcher is found, or if it is another library's than the program: each rank would be a
/// job of its own.
Launch plan_launch(const std::string& verb, std::vector<std::string> command, const std::string& wanted);

/// Sets LD_PRELOAD for the ranks only, and keeps the libraries that the user preloads.
void preload(Launch& launch, const std::string& library);

/// Replaces this process. Returns 2 on failure.
int start(const Launch& launch);

/// The end of the launcher.
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

}  // namespace latecomer::cli
