// SPDX-License-Identifier: BSD-3-Clause
// Forks, and reads the child's text from a pipe.
#include "profiles/launch/helper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace latecomer::profiles {
namespace {

using Clock = std::chrono::steady_clock;

/// The life of the child. Returns its exit status.
int do_work(const Helper::Work& work, int to) {
  try {
    work([&](std::string_view text) {
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

}  // namespace

BlockedSignals::BlockedSignals() {
  sigemptyset(&ours_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&ours_, signal);
  }
  sigprocmask(SIG_BLOCK, &ours_, &before_);
  signal(SIGCHLD, SIG_DFL);  // where it is ignored, the child leaves no status
}

BlockedSignals::~BlockedSignals() {
  const timespec none{};
  while (sigtimedwait(&ours_, nullptr, &none) > 0) {
  }
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Helper::Helper(const Work& work, std::chrono::milliseconds longest)
    : signals_(signalfd(-1, &blocked_.ours(), SFD_CLOEXEC)), until_(Clock::now() + longest), buffer_(1 << 16) {
  int ends[2];
  if (signals_.get() < 0 || pipe2(ends, O_CLOEXEC) != 0) throw Abandoned{""};
  const Descriptor to(ends[1]);
  from_ = ends[0];
  const pid_t self = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(getppid() == self ? do_work(work, ends[1]) : 1);
  }
}

Helper::~Helper() {
  close(from_);
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string_view Helper::next() {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now()).count();
    pollfd both[] = {{from_, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    const int got = left > 0 ? poll(both, 2, static_cast<int>(left)) : 0;
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) throw Abandoned{"that takes too long"};
    if (got < 0 || both[1].revents != 0) throw Abandoned{"a signal came"};
    const ssize_t n = read(from_, buffer_.data(), buffer_.size());
    if (n > 0) return {buffer_.data(), static_cast<std::size_t>(n)};
    if (n == 0) {
      check();
      return std::string_view{};
    }
  }
}

/// The text is complete only if the child says so.
void Helper::check() {
  int status = 0;
  const pid_t ended = waitpid(std::exchange(pid_, 0), &status, 0);
  if (ended < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Abandoned{""};
}

}  // namespace latecomer::profiles
