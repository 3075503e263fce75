// SPDX-License-Identifier: BSD-3-Clause
// Watches ranks through process descriptors.
#include "shim/waiting/alive.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "shim/clock.hpp"

namespace latecomer::shim {
namespace {

using core::Nanoseconds;
using profiles::ProcessId;

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

struct WatchedRank {
  ProcessId process;
  int descriptor = -1;
  bool opened = false;
};
/// The processes that this one can watch.
std::vector<WatchedRank>& watched() {
  static auto& list = *new std::vector<WatchedRank>;  // never destroyed: callbacks may run after exit handlers
  return list;
}
/// Room for them: a wait at the end must not allocate.
std::vector<pollfd>& polled() {
  static auto& list = *new std::vector<pollfd>;
  return list;
}
bool died = false;

}  // namespace

void watch_ranks(const profiles::ProcessId& mine, const std::vector<profiles::ProcessId>& all) {
  for (const profiles::ProcessId& p : all)
    if (p.kernel == mine.kernel && p.pid_namespace == mine.pid_namespace && p.pid_namespace != 0 && p.pid != mine.pid)
      watched().push_back({p});
  polled().reserve(watched().size());
}

bool rank_died() {
  std::vector<pollfd>& open = polled();
  open.clear();
  for (WatchedRank& w : watched()) {
    if (died) return true;
    if (!w.opened) {
      w.opened = true;
      w.descriptor = static_cast<int>(syscall(SYS_pidfd_open, w.process.pid, 0));
      const std::uint64_t start = profiles::process_state(w.process.pid).started;
      // The process has ended, or its number belongs to another process. Without process descriptors the kernel gives
      // no answer.
      died =
          (w.descriptor < 0 && errno == ESRCH) || (w.process.started != 0 && start != 0 && start != w.process.started);
    }
    if (w.descriptor >= 0) open.push_back({w.descriptor, POLLIN, 0});
  }
  if (!open.empty() && poll(open.data(), static_cast<nfds_t>(open.size()), 0) > 0) died = true;
  return died;
}

bool RankWait::again() {
  const Nanoseconds here = now();
  if (began_ == 0) {
    began_ = here;
    next_look_ = here + kLookEvery;
  }
  if (give_up_ != 0 && here > give_up_) return false;
  if (give_up_ == 0 && here > next_look_) {
    next_look_ = here + kLookEvery;
    if (rank_died()) give_up_ = here + kAfterDeath;
  }
  if (between_ == Between::naps) patience_.wait();
  else if (between_ == Between::yields) sched_yield();
  return true;
}

bool RankWait::became_long() {
  if (long_ || began_ == 0 || now() - began_ < kLongWait) return false;
  return long_ = true;
}

}  // namespace latecomer::shim
