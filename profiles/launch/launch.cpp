// SPDX-License-Identifier: BSD-3-Clause
// Finds and starts MPI launchers.
#include "profiles/launch/launch.hpp"

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
#include <sstream>
#include <string_view>

#include "core/base/text.hpp"
#include "profiles/base/errors.hpp"
#include "profiles/base/mpi_version.hpp"
#include "profiles/base/text.hpp"
#include "profiles/launch/roll_call.hpp"
#include "profiles/watch/watch.hpp"

namespace latecomer::profiles {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

/// Whether the name says that this is a launcher.
bool is_launcher(const std::string& word) {
  const std::string name = core::base_name(word);
  const bool shared = has_word(kSharedNames, name.substr(0, name.find('.')));
  return shared || std::ranges::any_of(kLaunchers, [&](const Launcher& one) { return has_word(one.names, name); });
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

/// The launcher behind a command, by its name, the name behind links, or its libraries. nullptr: not known.
const Launcher* launcher_at(const std::string& word) {
  std::error_code error;
  const std::string path = find_in_path(word);
  for (const std::string& name : {core::base_name(word), core::base_name(fs::canonical(path, error).string())})
    for (const Launcher& one : kLaunchers)
      if (has_word(one.names, name) && !has_word(kSharedNames, name)) return &one;
  for (const std::string& needed : needed_libraries(path))
    for (const Launcher& one : kLaunchers)
      if (has_word(one.libraries, needed.substr(0, needed.find('.')))) return &one;
  return nullptr;
}

/// The words for another launcher, if the only option is the number of ranks: "-n 4 ./program", else "-n RANKS
/// PROGRAM".
std::string in_common_words(const Launch& launch, const Launcher& other) {
  std::string out;
  for (std::size_t at = launch.options; at < launch.words.size(); ++at) out += " " + shell_word(launch.words[at]);
  const std::size_t program = behind_options(launch.words, launch.options, *launch.launcher);
  const bool ranks_alone = program == launch.options + 2 && has_word(other.ranks, launch.words[launch.options]);
  return ranks_alone ? out : " -n RANKS PROGRAM";
}

/// The first word that is a program of MPI, or "". Another program may start it: "env NAME=VALUE ./program", "numactl
/// -N 0 ./program". Values of the launcher's options are no programs of MPI.
std::string program_of_mpi(const Words& words) {
  const auto found = std::ranges::find_if(words, [](const std::string& word) { return !needs_of(word).mpi.empty(); });
  return found == words.end() ? "" : *found;
}

/// The first word of a command, behind commands that only start the next one.
struct Beginning {
  enum class Is { options, launcher, program, other } is = Is::other;
  std::size_t at = 0;
};
Beginning beginning_of(const Words& words) {
  using Is = Beginning::Is;
  if (words.empty() || words[0].starts_with("-")) return {Is::options, 0};
  for (std::size_t i = 0; i < words.size() && !words[i].starts_with("PATH="); ++i) {
    const bool runs = !find_in_path(words[i]).empty();
    if (is_launcher(words[i]) && (runs || i == 0)) return {Is::launcher, i};
    if (runs ? has_word(kStarters, core::base_name(words[i])) : i > 0) continue;
    return {needs_of(words[i]).mpi.empty() ? Is::other : Is::program, i};
  }
  return {};
}

}  // namespace

Needs needs_of(const std::string& program) {
  Needs out;
  bool open_mpi_beneath = false;
  for (const std::string& line : loaded_libraries(find_in_path(program))) {
    const std::string name = line.substr(0, line.find_first_of(" \n"));
    const bool abi = name.starts_with("libmpi_abi"), open_mpi = name.starts_with("libmpi.so.40"),
               mpich = name.starts_with("libmpich.so") || name == "libmpi.so.12" ||
                       (name.starts_with("libmpi_") && name.ends_with(".so.12"));  // of Cray
    open_mpi_beneath = open_mpi_beneath || name.starts_with("libopen-pal") || name.starts_with("libopen_mpi");
    if (abi || (!out.abi && (open_mpi || mpich))) {
      out.abi = abi;
      out.library = name;
      out.mpi = open_mpi ? "openmpi" : "mpich";
      if (const auto at = line.find("=> "); at != std::string::npos)
        out.path = line.substr(at + 3, line.find(" (", at) - at - 3);
    } else if (name.starts_with("libmpi_") || name.starts_with("libmpifort") || name.starts_with("libmpichfort") ||
               name.starts_with("libmpichcxx")) {
      out.bindings.push_back(name);
    }
  }
  if (out.abi && open_mpi_beneath) out.mpi = "openmpi";
  return out;
}

std::size_t behind_option(const Words& words, std::size_t at, const Launcher& launcher) {
  const std::string_view option = launcher.option_in(words[at]);
  std::size_t values = 0;
  if (has_word(launcher.pairs, option)) {
    const bool assigns = at + 1 < words.size() && words[at + 1].find('=') != std::string::npos;
    values = assigns && has_word(launcher.variable, option) ? 1 : 2;
  } else if (option == words[at] || option == std::string_view(words[at]).substr(1)) {  // not "-n=4"
    values = has_word(launcher.ranks, option) || has_word(launcher.values, option) ? 1 : 0;
  }
  return std::min(words.size(), at + 1 + values);
}

std::size_t behind_options(const Words& words, std::size_t at, const Launcher& launcher) {
  while (at < words.size() && words[at].starts_with("-")) at = behind_option(words, at, launcher);
  return at;
}

std::string find_launcher(std::string_view mpi) {
  const Launcher* wanted = launcher_of(mpi);
  std::string name;
  for (std::istringstream names(std::string(wanted ? wanted->names : "")); names >> name;)
    if (!find_in_path(name).empty() && launcher_at(name) == wanted) return name;
  return "";
}

std::string title(std::string_view mpi) {
  const Launcher* launcher = launcher_of(mpi);
  return std::string(launcher ? launcher->title : mpi);
}

std::string family_library(std::string_view mpi) {
  const std::string name = "liblatecomer-" + std::string(mpi) + ".so";
  return find_beside({"../lib/" + name, "../lib64/" + name, LATECOMER_LIBRARY_FROM_BIN "/" + name});
}

void check_family(const std::string& verb, std::string_view mpi) {
  if (mpi.empty() || !family_library(mpi).empty()) return;
  throw BadUsage(verb + ": --mpi " + std::string(mpi) + ": this installation of latecomer has no library for " +
                 (mpi == kAbi.name ? std::string(kAbi.title) : title(mpi)));
}

bool is_launcher_option(const std::string& word) {
  return std::ranges::any_of(kLaunchers, [&](const Launcher& one) {
    const std::string_view option = one.option_in(word);
    return has_word(one.ranks, option) || has_word(one.values, option) || has_word(one.pairs, option);
  });
}

std::string find_in_path(const std::string& name) {
  const auto runs = [](const std::string& file) { return access(file.c_str(), X_OK) == 0 && !fs::is_directory(file); };
  if (name.find('/') != std::string::npos) return runs(name) ? name : "";
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const auto colon = std::min(rest.find(':'), rest.size());
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (runs(candidate)) return candidate;
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

Launch plan_launch(const std::string& verb, Words command, const std::string& wanted, std::string_view mpi) {
  using Is = Beginning::Is;
  Launch out;
  Beginning found{Is::launcher, 0};
  if (wanted.empty()) found = beginning_of(command);
  else command.insert(command.begin(), wanted);
  if (found.is == Is::options || found.is == Is::program) {
    const std::string_view needed = launcher_of(mpi) ? mpi : needs_of(program_of_mpi(command)).mpi;
    std::string name = find_launcher(needed);
    for (const Launcher& one : kLaunchers)
      if (name.empty() && needed.empty()) name = find_launcher(one.mpi);
    if (name.empty()) {
      const Launcher* expected = launcher_of(needed.empty() ? kLaunchers[0].mpi : needed);
      throw BadUsage(verb + ": no launcher of " + std::string(expected->title) + " in PATH: expected one of " +
                     std::string(expected->names));
    }
    command.insert(command.begin(), name);
    found.at = 0;
  } else if (found.is == Is::launcher && find_in_path(command[found.at]).empty()) {
    throw BadUsage(verb + ": launcher '" + command[found.at] + "' not found");
  }
  if (found.is != Is::other) out.launcher = launcher_at(command[found.at]);
  if (found.is == Is::launcher && !out.launcher) out.launcher = launcher_of(mpi);
  out.options = std::min(command.size(), found.at + 1);
  out.words = std::move(command);
  if (!out.launcher) {
    out.program = program_of_mpi(out.words);
    if (out.program.empty()) out.program = out.words[0];
    return out;
  }
  const std::size_t at = behind_options(out.words, out.options, *out.launcher);
  if (at < out.words.size()) out.program = out.words[at];
  const Needs needs = needs_of(out.program);
  if (mpi.empty() && !needs.mpi.empty() && !out.launcher->mpi.empty() && needs.mpi != out.launcher->mpi) {
    const std::string right = find_launcher(needs.mpi);
    throw BadUsage(verb + ": '" + out.words[out.options - 1] + "' is " + title(out.launcher->mpi) +
                   "'s launcher, and " + out.program + " is linked against " + title(needs.mpi) + " (" + needs.library +
                   "); its launcher " +
                   (right.empty() ? "is not in PATH"
                                  : "is " + right + ": write latecomer " + verb + " -- " + right +
                                        in_common_words(out, *launcher_of(needs.mpi))));
  }
  return out;
}

int ranks_in(const Launch& launch) {
  const std::string_view options = launch.launcher ? launch.launcher->ranks : "-n -np --ntasks";
  for (std::size_t at = launch.options; at < launch.words.size() && launch.words[at].starts_with("-");) {
    const std::string& word = launch.words[at];
    const auto equals = word.find('=');
    if (has_word(options, (launch.launcher ? *launch.launcher : kLaunchers[0]).option_in(word)))
      return std::atoi(equals != word.npos            ? word.c_str() + equals + 1
                       : at + 1 < launch.words.size() ? launch.words[at + 1].c_str()
                                                      : "");
    at = launch.launcher ? behind_option(launch.words, at, *launch.launcher) : at + 1;
  }
  return 0;
}

int start_launcher(const Launch& launch) {
  Words words = launch.words;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::cerr << "latecomer: cannot start " << words[0] << ": " << std::strerror(errno) << "\n";
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
    _exit(start_launcher(launch));
  }
  Ended out;
  if (child < 0) {
    std::cerr << "latecomer: cannot start " << launch.words[0] << ": " << std::strerror(errno) << "\n";
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

}  // namespace latecomer::profiles
