// SPDX-License-Identifier: BSD-3-Clause
// Open MPI 4 polls non-blocking file operations in every call that waits or tests, in whatever thread, and takes no
// lock for their list. A program with one thread is safe natively. With the engine's thread it would crash. So the
// function that polls them does nothing in that thread. MPICH needs nothing of this: one lock guards all of its calls.
#include "shim/mpi/file_progress.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "shim/mpi/beneath.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/mpi/progress.hpp"

namespace latecomer::shim {
namespace {

constinit thread_local bool serves = false;
std::atomic<Poll> files{nullptr};

int poll_files() { return serves ? 0 : files.load(std::memory_order_acquire)(); }

/// Whether the function is that of the plugin, or of a library of Open MPI that holds the plugin.
bool is_of_files(Poll poll) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(poll), &info)) return false;
  const auto named = [](const char* name) { return name && std::strstr(name, "ompio"); };
  return named(info.dli_fname) || named(info.dli_sname);
}

}  // namespace

LATECOMER_ENTRY(int, opal_progress_register, (Poll poll)) {
  if (!is_of_files(poll)) return next::opal_progress_register(poll);
  files.store(poll, std::memory_order_release);
  return next::opal_progress_register(&poll_files);
}

LATECOMER_ENTRY(int, opal_progress_unregister, (Poll poll)) {
  return next::opal_progress_unregister(poll && poll == files.load(std::memory_order_acquire) ? &poll_files : poll);
}

void keep_files_to_program() {
  if (!beneath().polls_files) return;
  aim_entry("opal_progress_register", true);
  aim_entry("opal_progress_unregister", true);
}

void this_thread_serves() { serves = true; }

}  // namespace latecomer::shim
