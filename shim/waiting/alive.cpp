// SPDX-License-Identifier: BSD-3-Clause
// Watches ranks through process descriptors.
#include "shim/waiting/alive.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shim/clock.hpp"

namespace latecomer::shim {
namespace {

using core::Nanoseconds;

// The pause between two looks at the other processes of this host. Derived: a look is one poll() call, which takes 1.7
// us for 63 processes (measured, one quiet core): below 0.001% of the time. A death is noticed half a second late at
// most.
constexpr Nanoseconds kLookEvery = 500'000'000;
// The other ranks have this long to end after a death. They need milliseconds for their last messages, and the launcher
// ends most jobs earlier. A shorter time could give up on a rank without a core, a longer one delays the end of the
// job.
constexpr Nanoseconds kAfterDeath = 3'000'000'000;
// A longer wait makes the rank write a snapshot. A shorter time costs a write where ranks end almost together. A longer
// time loses the profile if the launcher ends the job before.
constexpr Nanoseconds kLongWait = 200'000'000;

struct Watched {
  ProcessId process;
  int descriptor = -1;
  bool opened = false;
};
/// The processes that this one can watch.
std::vector<Watched>& watched() {
  static auto& list = *new std::vector<Watched>;  // never destroyed: callbacks may run after exit handlers
  return list;
}
/// Room for them: a wait at the end must not allocate.
std::vector<pollfd>& polled() {
  static auto& list = *new std::vector<pollfd>;
  return list;
}
bool died = false;

/// The start time of a process, field 22 of its stat file; 0 if the file cannot be read.
std::uint64_t start_of(std::int32_t pid) {
  char path[32], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "re");
  if (!file) return 0;
  const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');  // the name before it may contain any character
  for (int field = 2; at && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at ? std::strtoull(at, nullptr, 10) : 0;
}

}  // namespace

ProcessId this_process(std::uint64_t kernel) {
  struct stat info {};
  ProcessId out;
  out.kernel = kernel;
  out.pid_namespace = stat("/proc/self/ns/pid", &info) == 0 ? static_cast<std::uint64_t>(info.st_ino) : 0;
  out.pid = getpid();
  out.start = start_of(out.pid);
  return out;
}

void watch_ranks(const ProcessId& mine, const std::vector<ProcessId>& all) {
  for (const ProcessId& p : all)
    if (p.kernel == mine.kernel && p.pid_namespace == mine.pid_namespace && p.pid_namespace != 0 && p.pid != mine.pid)
      watched().push_back({p});
  polled().reserve(watched().size());
}

bool rank_died() {
  std::vector<pollfd>& open = polled();
  open.clear();
  for (Watched& w : watched()) {
    if (died) return true;
    if (!w.opened) {
      w.opened = true;
      w.descriptor = static_cast<int>(syscall(SYS_pidfd_open, w.process.pid, 0));
      const std::uint64_t start = start_of(w.process.pid);
      // The process has ended, or its number belongs to another process. Without process descriptors the kernel gives
      // no answer.
      died = (w.descriptor < 0 && errno == ESRCH) || (w.process.start != 0 && start != 0 && start != w.process.start);
    }
    if (w.descriptor >= 0) open.push_back({w.descriptor, POLLIN, 0});
  }
  if (!open.empty() && poll(open.data(), static_cast<nfds_t>(open.size()), 0) > 0) died = true;
  return died;
}

bool RankWait::again() {
  const Nanoseconds here = now();
  if (began_ == 0) began_ = here, next_look_ = here + kLookEvery;
  if (give_up_ != 0 && here > give_up_) return false;
  if (give_up_ == 0 && here > next_look_) {
    next_look_ = here + kLookEvery;
    if (rank_died()) give_up_ = here + kAfterDeath;
  }
  patience_.wait();
  return true;
}

bool RankWait::became_long() {
  if (long_ || began_ == 0 || now() - began_ < kLongWait) return false;
  return long_ = true;
}

}  // namespace latecomer::shim
