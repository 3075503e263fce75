// SPDX-License-Identifier: BSD-3-Clause
// Finds and starts MPI launchers.
#include "profiles/cli/launch.hpp"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <span>
#include <sstream>
#include <string_view>

#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/roll_call.hpp"
#include "profiles/cli/watch.hpp"

namespace latecomer::cli {
namespace {

namespace fs = std::filesystem;

// Options of each launcher that take the next word as their value.
const std::set<std::string> kMpiexecValues = {"-n",
                                              "-np",
                                              "-host",
                                              "-hosts",
                                              "-f",
                                              "-ppn",
                                              "-wdir",
                                              "-hostfile",
                                              "-machinefile",
                                              "-bind-to",
                                              "-map-by",
                                              "-membind",
                                              "-envlist",
                                              "-genvlist",
                                              "-launcher",
                                              "-launcher-exec",
                                              "-iface",
                                              "-rmk",
                                              "-configfile",
                                              "-usize",
                                              "-prepend-pattern",
                                              "-outfile-pattern",
                                              "-errfile-pattern",
                                              "-path",
                                              "-order-nodes",
                                              "-ranks-per-proc",
                                              "-umask",
                                              "-localhost",
                                              "-timeout"};
const std::set<std::string> kSrunValues = {"-n",
                                           "--ntasks",
                                           "-N",
                                           "--nodes",
                                           "-c",
                                           "--cpus-per-task",
                                           "-p",
                                           "--partition",
                                           "-t",
                                           "--time",
                                           "-A",
                                           "--account",
                                           "-J",
                                           "--job-name",
                                           "-w",
                                           "--nodelist",
                                           "-x",
                                           "--exclude",
                                           "-o",
                                           "--output",
                                           "-e",
                                           "--error",
                                           "-i",
                                           "--input",
                                           "-D",
                                           "--chdir",
                                           "-m",
                                           "--distribution",
                                           "-q",
                                           "--qos",
                                           "-C",
                                           "--constraint",
                                           "-d",
                                           "--dependency",
                                           "-G",
                                           "--gpus",
                                           "-K",
                                           "-r",
                                           "--relative",
                                           "-W",
                                           "--wait",
                                           "--mem",
                                           "--mem-per-cpu",
                                           "--ntasks-per-node",
                                           "--gres",
                                           "--mpi",
                                           "--reservation",
                                           "--export",
                                           "--cpu-bind",
                                           "--jobid",
                                           "-M",
                                           "--clusters"};
// Options that take the next two words as their value.
const std::set<std::string> kMpiexecTwo = {"-env", "-genv"};
// Of Open MPI, which takes one or two dashes.
const std::set<std::string> kOpenMpiValues = {"-n",
                                              "-np",
                                              "-c",
                                              "-H",
                                              "-host",
                                              "-hostfile",
                                              "-machinefile",
                                              "-default-hostfile",
                                              "-x",
                                              "-N",
                                              "-npernode",
                                              "-npersocket",
                                              "-map-by",
                                              "-bind-to",
                                              "-rank-by",
                                              "-rankfile",
                                              "-rf",
                                              "-cpu-set",
                                              "-cpu-list",
                                              "-slot-list",
                                              "-cpus-per-proc",
                                              "-cpus-per-rank",
                                              "-wd",
                                              "-wdir",
                                              "-path",
                                              "-prefix",
                                              "-am",
                                              "-tune",
                                              "-output-filename",
                                              "-xterm",
                                              "-stdin",
                                              "-max-restarts",
                                              "-timeout",
                                              "-launch-agent",
                                              "-report-uri",
                                              "-report-pid",
                                              "-ompi-server",
                                              "-server-wait-time",
                                              "-personality",
                                              "-ppr",
                                              "-app"};
const std::set<std::string> kOpenMpiTwo = {"-mca", "-gmca"};

bool is_srun(const std::string& path) { return fs::path(path).filename() == "srun"; }
bool is_launcher(const std::string& word) {
  const std::string name = fs::path(word).filename().string();
  return name == "srun" || name == "mpirun" || name.starts_with("mpirun.") || name == "mpiexec" ||
         name.starts_with("mpiexec.");
}

std::string program_in(const std::vector<std::string>& arguments, Launch::Kind kind) {
  const bool open_mpi = kind == Launch::Kind::open_mpi;
  const auto& values = kind == Launch::Kind::slurm ? kSrunValues : open_mpi ? kOpenMpiValues : kMpiexecValues;
  const auto& two = open_mpi ? kOpenMpiTwo : kMpiexecTwo;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string word = arguments[i];
    if (!word.starts_with("-")) return arguments[i];
    if (kind != Launch::Kind::slurm && word.starts_with("--")) word.erase(0, 1);
    if (kind != Launch::Kind::slurm && two.count(word)) i += 2;
    else if (values.count(word)) ++i;
  }
  return "";
}

/// The needed libraries of an ELF file; empty for any other file.
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

/// The output of a command, "" if it cannot run. No shell is between: not every shell takes every name of a file.
std::string output_of(std::vector<std::string> words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const bool runs = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string out;
  char some[4096];
  for (ssize_t got = 0; runs && ((got = read(ends[0], some, sizeof some)) > 0 || (got < 0 && errno == EINTR));)
    if (got > 0) out.append(some, static_cast<std::size_t>(got));
  close(ends[0]);
  while (runs && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return out;
}

/// The lines in which the program's dynamic linker lists all libraries that it would load, also those that others need.
/// The program does not run. Empty for a file that is no dynamic program.
std::vector<std::string> loaded_libraries(const std::string& program) {
  std::string linker;
  const int fd = open(program.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {};
  elf_version(EV_CURRENT);
  if (Elf* elf = elf_begin(fd, ELF_C_READ, nullptr)) {
    std::size_t size = 0;
    const char* bytes = elf_rawfile(elf, &size);
    GElf_Phdr header;
    for (int i = 0; bytes && gelf_getphdr(elf, i, &header); ++i)
      if (header.p_type == PT_INTERP && header.p_offset < size)
        linker.assign(bytes + header.p_offset, strnlen(bytes + header.p_offset, size - header.p_offset));
    elf_end(elf);
  }
  close(fd);
  std::vector<std::string> out;
  if (linker.empty()) return out;
  std::istringstream listed(output_of({linker, "--list", program}));
  for (std::string line; std::getline(listed, line);)
    out.push_back(line.substr(std::min(line.size(), line.find_first_not_of(" \t"))));
  return out;
}

/// The words for another launcher, if they are options of both: "-n 4 ./program", else "-n RANKS PROGRAM".
std::string in_common_words(const std::vector<std::string>& command, const std::string& program) {
  std::string out;
  bool known = true, before = true;
  for (const std::string& word : command) {
    before = before && word != program;
    known = known && (!before || !word.starts_with("-") || (kMpiexecValues.count(word) && kOpenMpiValues.count(word)));
    out += " " + shell_word(word);
  }
  return known ? out : " -n RANKS PROGRAM";
}

/// What the first word that is a program of MPI needs. Another program may start it: "env NAME=VALUE ./program",
/// "numactl -N 0 ./program". Values of the launcher's options are no programs of MPI.
Needs needs_in(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (Needs needs = needs_of(word); !needs.library.empty()) return needs;
  return {};
}

}  // namespace

bool is_open_mpi(const std::string& path) {
  std::error_code error;
  const std::string real = fs::canonical(path, error).filename().string();
  if (real == "orterun" || real == "prterun" || real == "prun" || real.ends_with(".openmpi")) return true;
  for (const std::string& needed : needed_libraries(path))
    if (needed.starts_with("libopen-rte") || needed.starts_with("libopen-pal") || needed.starts_with("libprrte"))
      return true;
  return false;
}

Needs needs_of(const std::string& program) {
  Needs out;
  for (const std::string& line : loaded_libraries(find_in_path(program))) {
    const std::string name = line.substr(0, line.find_first_of(" \n"));
    const bool open_mpi = name.starts_with("libmpi.so.40"),
               mpich = name.starts_with("libmpich.so") || name == "libmpi.so.12";
    if (open_mpi || mpich) {
      out.library = name, out.open_mpi = open_mpi;
      if (const auto at = line.find("=> "); at != std::string::npos)
        out.path = line.substr(at + 3, line.find(" (", at) - at - 3);
    } else if (name.starts_with("libmpi_") || name.starts_with("libmpichfort") || name.starts_with("libmpichcxx")) {
      out.bindings.push_back(name);
    }
  }
  return out;
}

std::string find_launcher(bool open_mpi) {
  static constexpr const char* kMpich[] = {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"};
  static constexpr const char* kOpenMpi[] = {"mpiexec.openmpi", "mpirun.openmpi", "mpirun", "mpiexec"};
  for (const char* name : open_mpi ? std::span<const char* const>(kOpenMpi) : std::span<const char* const>(kMpich))
    if (std::string found = find_in_path(name); !found.empty() && is_open_mpi(found) == open_mpi) return found;
  return "";
}

const char* title(bool open_mpi) { return open_mpi ? "Open MPI" : "MPICH"; }

bool is_launcher_option(const std::string& word) {
  const std::string one = word.starts_with("--") ? word.substr(1) : word;
  return kMpiexecValues.count(one) || kMpiexecTwo.count(one) || kOpenMpiValues.count(one) || kOpenMpiTwo.count(one) ||
         kSrunValues.count(word.substr(0, word.find('=')));
}

std::string find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const auto colon = std::min(rest.find(':'), rest.size());
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
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
  std::string named = wanted;
  if (wanted.empty() && !command.empty() && is_launcher(command.front())) {
    named = command.front();
    command.erase(command.begin());
  }
  using Kind = Launch::Kind;
  if (named.empty()) {
    const Needs needs = needs_in(command);
    out.launcher = find_launcher(needs.open_mpi);
    if (out.launcher.empty() && needs.library.empty()) out.launcher = find_launcher(true);
    if (out.launcher.empty())
      throw BadUsage(verb + ": no launcher in PATH: expected " +
                     (needs.open_mpi ? "Open MPI's mpiexec.openmpi, mpirun or mpiexec"
                                     : "MPICH's mpiexec.mpich, mpiexec.hydra or mpiexec"));
  } else {
    out.launcher = find_in_path(named);
    if (out.launcher.empty()) throw BadUsage(verb + ": launcher '" + named + "' not found");
  }
  out.kind = is_srun(out.launcher) ? Kind::slurm : is_open_mpi(out.launcher) ? Kind::open_mpi : Kind::mpich;
  out.program = program_in(command, out.kind);
  const Needs needs = needs_of(out.program);
  if (!needs.library.empty() && out.kind != Kind::slurm && needs.open_mpi != (out.kind == Kind::open_mpi)) {
    const std::string right = find_launcher(needs.open_mpi);
    throw BadUsage(verb + ": '" + (named.empty() ? out.launcher : named) + "' is " + title(!needs.open_mpi) +
                   "'s launcher, and " + out.program + " is linked against " + title(needs.open_mpi) + " (" +
                   needs.library + "); its launcher " +
                   (right.empty() ? "is not in PATH"
                                  : "is " + right + ": write latecomer " + verb + " -- " +
                                        fs::path(right).filename().string() + in_common_words(command, out.program)));
  }
  out.arguments = std::move(command);
  return out;
}

void preload(Launch& launch, const std::string& library) {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string value = before && *before ? library + ":" + before : library;
  // The launcher and its proxies are not MPI programs: do not preload them.
  unsetenv("LD_PRELOAD");
  std::vector<std::string> words;
  if (launch.kind == Launch::Kind::slurm) {
    // srun accepts one --export, so extend the user's.
    std::string exported = "ALL";
    for (auto at = launch.arguments.begin(); at != launch.arguments.end() && *at != launch.program; ++at) {
      if (at->starts_with("--export=")) exported = at->substr(9), at = launch.arguments.erase(at);
      else if (*at == "--export" && at + 1 != launch.arguments.end())
        exported = *(at + 1), at = launch.arguments.erase(at, at + 2);
      else continue;
      break;
    }
    words = {"--export=" + exported + ",LD_PRELOAD=" + value};
    for (const char* name : {"LATECOMER_POLICY", "LATECOMER_OUTPUT", "LATECOMER_VERBOSE", "LATECOMER_CLAIM",
                             "LATECOMER_CONFIG", "LATECOMER_ROLL_CALL"})
      if (std::getenv(name) && exported != "ALL") words.back() += std::string(",") + name;  // with srun's own value
  } else if (launch.kind == Launch::Kind::open_mpi) {
    // Ranks on other hosts get the variables that -x names.
    words = {"-x", "LD_PRELOAD=" + value};
    for (char** entry = environ; *entry; ++entry)
      if (const std::string_view text = *entry; text.starts_with("LATECOMER_"))
        words.insert(words.end(), {"-x", std::string(text.substr(0, text.find('=')))});
    // It counts for one program of several only: -n 2 ./a : -n 2 ./b.
    for (std::size_t i = 0; i < launch.arguments.size(); ++i)
      if (launch.arguments[i] == ":")
        launch.arguments.insert(launch.arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.begin(),
                                words.end());
  } else {
    words = {"-genv", "LD_PRELOAD", value};
  }
  launch.arguments.insert(launch.arguments.begin(), words.begin(), words.end());
}

int start(const Launch& launch) {
  std::vector<std::string> words = {launch.launcher};
  words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  execv(launch.launcher.c_str(), argv.data());
  std::cerr << "latecomer: cannot start " << launch.launcher << ": " << std::strerror(errno) << "\n";
  return 2;
}

Ended run_and_wait(const Launch& launch, JobWatch* watch, RollCall* roll_call) {
  // The terminal sends Ctrl-C to the whole foreground group, so the launcher gets it directly.
  sigset_t ours, before;
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
      sigaddset(&ours, signal);  // keep signals that nohup ignores
  }
  struct sigaction standard {
  }, for_children{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &for_children);
  sigaddset(&ours, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ours, &before);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) {
    // End the launcher if `latecomer run` is killed.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(2);
    sigaction(SIGCHLD, &for_children, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    _exit(start(launch));
  }
  Ended out;
  if (child < 0) {
    std::cerr << "latecomer: cannot start " << launch.launcher << ": " << std::strerror(errno) << "\n";
    out.status = 2;
  }
  if (child > 0 && roll_call) roll_call->start();
  if (child > 0 && watch) watch->start();
  while (child > 0) {
    siginfo_t came{};
    const int signal = sigwaitinfo(&ours, &came);
    if (signal == SIGCHLD) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) != child) continue;
      if (WIFSIGNALED(status)) out.signal = WTERMSIG(status);
      out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + out.signal;
      break;
    }
    if (signal <= 0) continue;
    if (signal != SIGCONT) out.passed_on = signal;
    if (came.si_code != SI_KERNEL) kill(child, signal);
    const bool ends = signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
    if (ends && watch) watch->told_to_end();
  }
  sigaction(SIGCHLD, &for_children, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return out;
}

}  // namespace latecomer::cli
