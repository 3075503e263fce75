// SPDX-License-Identifier: BSD-3-Clause
// The modules of this process, and the memory mappings of modules whose frames are never a call site.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "shim/sites/sites.hpp"

namespace latecomer::shim {

/// The memory mappings of MPI's libraries, of this library, and of libraries that wrap MPI.
struct Mapping {
  std::uintptr_t begin, end;
  bool wrapper;
};
/// Derived: each library of MPI and this library has one executable segment, of which MPICH needs four. 64 entries take
/// 1 KiB. Beyond, a frame of a library counts as one of the program.
inline constexpr int kMappings = 64;
extern Mapping skipped[kMappings] __attribute__((visibility("hidden")));
extern std::atomic<int> skipped_count __attribute__((visibility("hidden")));

/// Inline, because every call without a rule uses it.
inline bool in_mpi(std::uintptr_t address) {
  const int count = skipped_count.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i)
    if (address >= skipped[i].begin && address < skipped[i].end) return true;
  return false;
}

/// Whether the address lies in no module: in code that was generated at run time.
bool in_generated(std::uintptr_t address);

/// Whether the address lies in a library that wraps MPI.
bool in_wrapper(std::uintptr_t address);

/// Finds the wrappers among the libraries that were loaded since the last look. The caller holds the mutex.
void find_wrappers();
/// Sets the globs of their file names.
void name_wrappers(const std::vector<std::string>& globs);

/// The modules of this process, as frames name them. `base`: the address of the module's own address 0.
struct LoadedModule {
  std::string path, build_id;
  std::uintptr_t base;
};
std::vector<LoadedModule> loaded_modules();

/// Whether the address lies in the code that starts a program or a thread: the C library, or the program's entry.
bool starts_program(std::uintptr_t address, const profiles::Frame& frame);

}  // namespace latecomer::shim
