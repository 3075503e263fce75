// SPDX-License-Identifier: BSD-3-Clause
// A child process resolves the names, because debug information may be damaged or take minutes to read. This process
// writes the child's text beside the profile, and renames it at the end. It must not fail: the job's status counts.
#include "profiles/cli/name_profile.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/base/descriptor.hpp"
#include "profiles/base/text.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A user waits for the prompt. Longer work is left to the report, whose user waits for the names.
constexpr std::chrono::seconds kLongest{10};
/// Measured: 100 MB take 0.7 s on a busy machine, almost all of it for rows of ranks, which stay as they are.
constexpr std::uintmax_t kLargest = 500'000'000;

/// The work of the child. Writes nothing if no frame has changed. Returns its exit status.
int write_named(const std::string& path, int to) {
  try {
    unsetenv("DEBUGINFOD_URLS");  // a server may take minutes: the report may ask it
    WholeProfile whole(path);
    if (!resolve_names(whole.profile, Progress::Patience{})) return 0;
    whole.write([&](std::string_view text) {
      while (!text.empty()) {
        const ssize_t n = write(to, text.data(), text.size());
        if (n < 0 && errno != EINTR) _exit(1);
        if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
      }
    });
    return 0;
  } catch (...) {
    return 1;
  }
}

/// Blocks the signals that would end this process, so that it removes its files first.
class Signals {
 public:
  Signals() {
    sigemptyset(&ours_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      struct sigaction now {};
      if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&ours_, signal);
    }
    sigprocmask(SIG_BLOCK, &ours_, &before_);
    signal(SIGCHLD, SIG_DFL);  // where it is ignored, the child leaves no status
  }
  ~Signals() {
    const timespec none{};
    while (sigtimedwait(&ours_, nullptr, &none) > 0) {
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  const sigset_t& ours() const { return ours_; }

 private:
  sigset_t ours_, before_;
};

/// Thrown out of the writing of a file, which then removes it.
struct Abandoned {
  const char* why;  ///< "" if the user can do nothing about it
};

/// The child and its text.
class Child {
 public:
  Child(const std::string& path, const Signals& signals)
      : signals_(signalfd(-1, &signals.ours(), SFD_CLOEXEC)), until_(Clock::now() + kLongest), buffer_(1 << 16) {
    int ends[2];
    if (signals_.get() < 0 || pipe2(ends, O_CLOEXEC) != 0) throw Abandoned{""};
    const profiles::Descriptor to(ends[1]);
    from_ = ends[0];
    const pid_t self = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(getppid() == self ? write_named(path, ends[1]) : 1);
    }
  }
  ~Child() {
    close(from_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The next piece of the text, or "" at its end.
  std::string_view next() {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now()).count();
      pollfd both[] = {{from_, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      const int got = left > 0 ? poll(both, 2, static_cast<int>(left)) : 0;
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) throw Abandoned{"they take too long to resolve"};
      if (got < 0 || both[1].revents != 0) throw Abandoned{"a signal came"};
      const ssize_t n = read(from_, buffer_.data(), buffer_.size());
      if (n > 0) return {buffer_.data(), static_cast<std::size_t>(n)};
      if (n == 0) return check(), std::string_view{};
    }
  }

 private:
  /// The text is complete only if the child says so.
  void check() {
    int status = 0;
    const pid_t ended = waitpid(std::exchange(pid_, 0), &status, 0);
    if (ended < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Abandoned{""};
  }

  profiles::Descriptor signals_;
  Clock::time_point until_;
  std::vector<char> buffer_;
  int from_ = -1;
  pid_t pid_ = -1;
};

}  // namespace

void name_profile(const std::string& path) {
  const auto say = [&](const std::string& why) {
    std::cerr << "latecomer: names of functions and lines are not in the profile: " << why
              << "; latecomer report resolves them until the program is moved or rebuilt\n";
  };
  try {
    if (std::filesystem::file_size(path) > kLargest) return say("it is larger than 500 MB");
    const Signals signals;
    Child child(path, signals);
    std::string_view text = child.next();
    if (text.empty()) return;
    const auto written = profiles::write_profile_file(path, true, [&](const profiles::Sink& sink) {
      for (; !text.empty(); text = child.next()) sink(text);
    });
    if (!written) say(written.error());
  } catch (const Abandoned& why) {
    if (*why.why) say(why.why);
  } catch (const std::exception& error) {
    say(error.what());
  }
}

}  // namespace latecomer::cli
