// SPDX-License-Identifier: BSD-3-Clause
// Call sites: the first frame outside the MPI libraries, keyed by build-id and offset, so that a site has
// the same key on every rank and in every run under address randomisation. Names are resolved offline.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "profiles/record.hpp"

namespace latecomer::shim {

/// Learns where the MPI libraries and latecomer itself are mapped. Called once, from MPI_Init.
void sites_start();

/// How many frames make a site (1 to 16), and whether Python's own frames stand for those of its binding.
/// Before the first call that is observed.
void sites_depth(int depth, bool python);

/// A call site as the table of sites knows it, with the counters that calls from it used last.
struct alignas(32) SiteSlot {
  std::atomic<std::uint64_t> key{0};
  std::atomic<std::uint64_t> site{0};    ///< 0: the address lies in an MPI library, its caller is the site
  profiles::LocalSite* local = nullptr;  ///< of (op, comm_size); under the job's lock
  std::int32_t comm_size = 0;
  core::Collective op = core::Collective::barrier;
};

/// Open addressing by return address or by hash of several (top bit set: no address has it); entries are only
/// ever added, so readers need no lock. 512 KiB, touched as used.
inline constexpr int kSiteBits = 14;
extern SiteSlot site_slots[std::size_t{1} << kSiteBits] __attribute__((visibility("hidden")));
extern bool one_frame;  ///< is a site: the table is worth a look by address
/// Where a key is looked for first in a table of 2^bits.
constexpr std::size_t address_place(std::uint64_t key, int bits) {
  return (key >> 1) * 0x9e3779b97f4a7c15ull >> (64 - bits);
}

/// The call site, given the handler's return address and frame address (that of its saved rbp, whose neighbour
/// is the return address). Allocates only when a site, or the way to it, is new. Thread-safe.
SiteSlot& rarer_site(std::uintptr_t address, std::uintptr_t frame);
inline SiteSlot& site_of(void* return_address, void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (!one_frame) return rarer_site(address, reinterpret_cast<std::uintptr_t>(frame));
  SiteSlot& first = site_slots[address_place(address, kSiteBits)];
  // Found at once (the bindings of MPI have no site).
  if (first.key.load(std::memory_order_acquire) == address && first.site.load(std::memory_order_relaxed) != 0)
      [[likely]]
    return first;
  return rarer_site(address, reinterpret_cast<std::uintptr_t>(frame));
}

/// The build-id of this library: what the roll call compares.
const char* own_build_id();

/// Forgets addresses if a library was unloaded since: another may lie there now.
void sites_refresh();

/// Frames of all sites seen so far.
std::size_t site_count();
std::vector<profiles::Frame> site_frames();

}  // namespace latecomer::shim
