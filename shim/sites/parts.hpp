// SPDX-License-Identifier: BSD-3-Clause
// Declarations that the files of this folder share. Other folders include shim/sites/sites.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "shim/sites/sites.hpp"

namespace latecomer::shim {

using Slot = SiteSlot;
inline constexpr std::size_t kSlots = std::size_t{1} << kSiteBits;
/// This bit marks a key that is a hash instead of one return address.
inline constexpr std::uint64_t kSeveral = std::uint64_t{1} << 63;

// table.cpp

/// "The mutex" below. Guards changes of all data of this folder.
extern std::mutex sites_mutex;

/// The slot of a key, or nullptr. Inline, because every call uses it.
inline Slot* known(std::uint64_t key) {
  for (std::size_t slot = address_place(key, kSiteBits);; slot = (slot + 1) % kSlots) {
    const std::uint64_t there = site_slots[slot].key.load(std::memory_order_acquire);
    if (there == key) [[likely]]
      return &site_slots[slot];
    if (there == 0) return nullptr;
  }
}

/// Adds a slot for a new key. The caller holds the mutex.
Slot& remember(std::uint64_t key, std::uint64_t site, std::uint32_t callers = 0, std::uintptr_t address = 0);

/// Whether the table has no place for keys with callers.
bool callers_full();

/// Adds a site with these frames, innermost first: those of the site, then its callers. Several addresses may lead to
/// one site, because the table of addresses is cleared when a library is unloaded. `address`: SiteSlot::address.
/// `generated`: code without a module lies between MPI and the first frame.
Slot& insert(std::uint64_t key, std::vector<profiles::Frame> found, std::uintptr_t address = 0, bool generated = false);

/// The frame in a wrapper library that calls MPI for a site; nullptr if no frame was skipped. `keep_wrapper` notes it.
const profiles::Frame* wrapper_of(std::uint64_t site);
void keep_wrapper(const profiles::Frame& wrapper, std::uint64_t site);

/// Removes all keys. The caller holds the mutex.
void forget_keys();

// modules.cpp

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
struct Loaded {
  std::string path, build_id;
  std::uintptr_t base;
};
std::vector<Loaded> loaded_modules();

/// The frame of a return address, with the hash of that address alone.

/// Whether the address lies in the code that starts a program or a thread: the C library, or the program's entry.
bool starts_program(std::uintptr_t address, const profiles::Frame& frame);

// unwind.cpp

/// The number of frames per site, and with those of its callers.
extern int frames_per_site __attribute__((visibility("hidden")));
extern int frames_per_call __attribute__((visibility("hidden")));

/// Clears the rules of all return addresses. The caller holds the mutex.
void forget_rules();

// python.cpp

/// The site of the Python lines that lead here, or nullptr if Python does not run on this thread.
Slot* python_site();

}  // namespace latecomer::shim
