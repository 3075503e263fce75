// SPDX-License-Identifier: BSD-3-Clause
// Call sites: the first frame outside the MPI libraries, identified by build-id and offset. So a site has the same key
// on every rank and in every run, despite address randomisation. The command resolves names after the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "profiles/record/record.hpp"

namespace latecomer::shim {

/// Finds the mappings of the MPI libraries and of latecomer. Called once, from MPI_Init.
void sites_start();

/// Sets the number of frames per site (1 to 16), and of further frames that tell its callers apart. `python`: Python's
/// frames replace those of its binding. `wrappers`: globs of libraries whose frames are skipped. Must precede the first
/// observed call.
void sites_depth(int depth, int callers, bool python, const std::vector<std::string>& wrappers);

/// A call site in the table of sites, with the counters of the last call from it.
struct alignas(64) SiteSlot {
  std::atomic<std::uint64_t> key{0};
  std::atomic<std::uint64_t> site{0};  ///< 0: the address lies in an MPI library, and its caller is the site
  /// The return address, if it alone identifies the site. 0: it does not.
  std::atomic<std::uintptr_t> address{0};
  std::atomic<std::uint32_t> callers{0};  ///< profiles::SiteKey::callers
  profiles::LocalSite* local = nullptr;   ///< for (op, comm_size); guarded by the job's lock
  std::int32_t comm_size = 0;
  core::Collective op = core::Collective::barrier;

  /// Whether `local` is that of these calls.
  bool serves(core::Collective of, int ranks) const { return local && op == of && comm_size == ranks; }
};

/// The table uses open addressing by return address, or by a hash with the top bit set, which no address has. Entries
/// are only added, so readers need no lock. Derived: 16,384 entries of 64 bytes take 1 MiB, mapped as used. Half are
/// filled by keys with callers; later callers are not told apart. Three quarters are filled: 12,288 keys. The sites
/// beyond share one slot, whose counters are searched at each call.
inline constexpr int kSiteBits = 14;
extern SiteSlot site_slots[std::size_t{1} << kSiteBits] __attribute__((visibility("hidden")));
extern bool one_frame;  ///< one frame is a site, and callers are not told apart: look up by address first
/// The first index to search for a key in a table of 2^bits.
constexpr std::size_t address_place(std::uint64_t key, int bits) {
  return (key >> 1) * 0x9e3779b97f4a7c15ull >> (64 - bits);
}

/// The call site, from the handler's return address and frame address (of its saved rbp, next to the return address).
/// Allocates only for a new site or a new way to it. Thread-safe.
SiteSlot& rarer_site(std::uintptr_t address, std::uintptr_t frame);
inline SiteSlot& site_of(void* return_address, void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (!one_frame) return rarer_site(address, reinterpret_cast<std::uintptr_t>(frame));
  SiteSlot& first = site_slots[address_place(address, kSiteBits)];
  // The fast case. Bindings of MPI have no site.
  if (first.key.load(std::memory_order_acquire) == address && first.site.load(std::memory_order_relaxed) != 0)
      [[likely]]
    return first;
  return rarer_site(address, reinterpret_cast<std::uintptr_t>(frame));
}

/// The frame of an address: its module, with build-id and offset.
profiles::Frame frame_at(std::uintptr_t address);

/// Forgets addresses if a library was unloaded, because another may occupy them now. Returns how often that was so.
unsigned sites_refresh();
/// The return address in the program, if it alone identifies the site of a call, or 0. The call may come through one
/// frame of a binding of MPI: then `through` is the distance from the handler's frame to the end of the binding's.
/// `slot`: of the call.
std::uintptr_t plain_address(const SiteSlot& slot, std::uintptr_t address, std::uintptr_t frame, std::int32_t& through);
/// The end of this thread's stack.
std::uintptr_t stack_end();

/// The number of sites so far, and the frames of all sites.
std::size_t site_count();
std::vector<profiles::Frame> site_frames();

}  // namespace latecomer::shim
