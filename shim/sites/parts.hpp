// SPDX-License-Identifier: BSD-3-Clause
// What the files of this folder have from each other. Others include shim/sites/sites.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "shim/sites/sites.hpp"

namespace latecomer::shim {

using Slot = SiteSlot;
inline constexpr std::size_t kSlots = std::size_t{1} << kSiteBits;
/// Set in the key of a site that is not one return address.
inline constexpr std::uint64_t kSeveral = std::uint64_t{1} << 63;

// table.cpp

/// Held by whoever changes what the files of this folder keep: "the mutex" below.
extern std::mutex sites_mutex;

/// The slot of a key; nullptr if it has none. Part of every call's way, so it is inline.
inline Slot* known(std::uint64_t key) {
  for (std::size_t slot = address_place(key, kSiteBits);; slot = (slot + 1) % kSlots) {
    const std::uint64_t there = site_slots[slot].key.load(std::memory_order_acquire);
    if (there == key) [[likely]]
      return &site_slots[slot];
    if (there == 0) return nullptr;
  }
}

/// A slot for a key that has none. The caller holds the mutex.
Slot& remember(std::uint64_t key, std::uint64_t site);

/// A new site of these frames, innermost first. Several addresses may be one site: the table of addresses is
/// forgotten when a library goes away.
Slot& insert(std::uint64_t key, std::vector<profiles::Frame> found);

/// Forgets all keys. The caller holds the mutex.
void forget_keys();

// modules.cpp

/// Where MPI's own libraries and this one are mapped.
struct Mapping {
  std::uintptr_t begin, end;
};
inline constexpr int kMappings = 64;
extern Mapping skipped[kMappings] __attribute__((visibility("hidden")));
extern int skipped_count __attribute__((visibility("hidden")));

/// Part of every call's way where no rule could be found, so it is inline.
inline bool in_mpi(std::uintptr_t address) {
  for (int i = 0; i < skipped_count; ++i)
    if (address >= skipped[i].begin && address < skipped[i].end) return true;
  return false;
}

/// The frame that a return address belongs to, with that address's own hash.
profiles::Frame frame_at(std::uintptr_t address);

// unwind.cpp

/// How many frames make a site.
extern int frames_per_site __attribute__((visibility("hidden")));

/// Forgets the rules of all return addresses. The caller holds the mutex.
void forget_rules();

// python.cpp

/// The Python lines that lead here, or nullptr if Python is not running on this thread.
Slot* python_site();

}  // namespace latecomer::shim
