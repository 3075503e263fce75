// SPDX-License-Identifier: BSD-3-Clause
// Reads the identity and the state of processes from /proc.
#include "profiles/base/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "core/base/text.hpp"
#include "profiles/base/descriptor.hpp"

namespace latecomer::profiles {
namespace {

/// The begin of a file of /proc; returns its length.
std::size_t read_begin(const char* path, char* text, std::size_t size) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t got = file.get() < 0 ? 0 : read(file.get(), text, size - 1);
  text[std::max<ssize_t>(got, 0)] = '\0';
  return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
}

ProcessId read_own_id() {
  ProcessId out;
  char boot[64];
  if (const std::size_t size = read_begin("/proc/sys/kernel/random/boot_id", boot, sizeof boot); size > 0)
    out.kernel = core::fnv1a(std::string_view(boot, size));
  struct stat info {};
  if (stat("/proc/self/ns/pid", &info) == 0) out.pid_namespace = static_cast<std::uint64_t>(info.st_ino);
  out.pid = getpid();
  out.started = process_state(out.pid).started;
  return out;
}

}  // namespace

ProcessState process_state(int pid) {
  ProcessState out;
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  // The name in brackets may hold spaces and brackets. The state follows the last bracket, the number of threads is
  // field 20, the start is field 22.
  const char* at = read_begin(path, text, sizeof text) > 0 ? std::strrchr(text, ')') : nullptr;
  if (!at || at[1] != ' ') return out;
  out.exists = true;
  out.state = at[2];
  at += 2;
  long threads = 0;
  for (int field = 3; field < 22 && at; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at && field == 19) threads = std::strtol(at, nullptr, 10);
  }
  if (at) out.started = std::strtoull(at, nullptr, 10);
  out.ended = (out.state == 'Z' || out.state == 'X') && threads <= 1;
  return out;
}

ProcessId this_process() {
  // Read once, and again in a forked child. Never freed: another thread may be reading the former.
  static constinit std::atomic<const ProcessId*> known{nullptr};
  const ProcessId* own = known.load(std::memory_order_acquire);
  if (own && own->pid == getpid()) return *own;
  const ProcessId read = read_own_id();
  if (const auto* kept = new (std::nothrow) ProcessId(read)) known.store(kept, std::memory_order_release);
  return read;
}

ProcessId process_id(int pid) {
  ProcessId out = this_process();
  if (pid == out.pid) return out;
  out.pid = pid;
  out.started = process_state(pid).started;
  return out;
}

Life life_of(const ProcessId& process) {
  const ProcessId mine = this_process();
  if (process.pid <= 0 || process.kernel == 0 || process.kernel != mine.kernel || process.pid_namespace == 0 ||
      process.pid_namespace != mine.pid_namespace)
    return Life::unknown;
  const ProcessState now = process_state(process.pid);
  if (now.exists)
    return now.ended || (process.started != 0 && now.started != process.started) ? Life::ended : Life::runs;
  // Another user's /proc may be hidden.
  return kill(process.pid, 0) != 0 && errno == ESRCH ? Life::ended : Life::unknown;
}

}  // namespace latecomer::profiles
