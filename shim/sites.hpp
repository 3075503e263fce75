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
struct SiteSlot {
  std::atomic<std::uint64_t> key{0};
  std::atomic<std::uint64_t> site{0};  ///< 0: the address lies in an MPI library, its caller is the site
  profiles::LocalSite* local = nullptr;  ///< of (op, comm_size); under the job's lock
  std::int32_t comm_size = 0;
  core::Collective op = core::Collective::barrier;
};

/// The call site, given the wrapper's return address. Allocates only when a site is new. Thread-safe.
SiteSlot& site_of(void* return_address);

/// The build-id of this library: what the roll call compares.
const char* own_build_id();

/// Forgets addresses if a library was unloaded since: another may lie there now.
void sites_refresh();

/// Frames of all sites seen so far.
std::size_t site_count();
std::vector<profiles::Frame> site_frames();

}  // namespace latecomer::shim
