// SPDX-License-Identifier: BSD-3-Clause
// The table of sites by keys. Other folders include sites.hpp, which reads it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "shim/sites/sites.hpp"

namespace latecomer::shim {

using Slot = SiteSlot;
inline constexpr std::size_t kSlots = std::size_t{1} << kSiteBits;
/// This bit marks a key that is a hash instead of one return address.
inline constexpr std::uint64_t kSeveral = std::uint64_t{1} << 63;

/// Guards changes of all data of this folder. Its comments call it the mutex.
extern std::mutex sites_mutex;

/// The slot of a key, or nullptr. Inline, because every call uses it.
inline Slot* find_slot(std::uint64_t key) {
  for (std::size_t slot = address_place(key, kSiteBits);; slot = (slot + 1) % kSlots) {
    const std::uint64_t there = site_slots[slot].key.load(std::memory_order_acquire);
    if (there == key) [[likely]]
      return &site_slots[slot];
    if (there == 0) return nullptr;
  }
}

/// Adds a slot for a new key. The caller holds the mutex.
Slot& add_key(std::uint64_t key, std::uint64_t site, std::uint32_t callers = 0, std::uintptr_t address = 0);

/// Whether the table has no place for keys with callers.
bool callers_full();

/// Adds a site with these frames, innermost first: those of the site, then its callers. Several addresses may lead to
/// one site, because the table of addresses is cleared when a library is unloaded. `address`: SiteSlot::address.
/// `generated`: code without a module lies between MPI and the first frame.
Slot& add_site(std::uint64_t key, std::vector<profiles::Frame> found, std::uintptr_t address = 0,
               bool generated = false);

/// The frame in a wrapper library that calls MPI for a site; nullptr if no frame was skipped. `keep_wrapper` notes it.
const profiles::Frame* wrapper_of(std::uint64_t site);
void keep_wrapper(const profiles::Frame& wrapper, std::uint64_t site);

/// Removes all keys. The caller holds the mutex.
void forget_keys();

}  // namespace latecomer::shim
