// SPDX-License-Identifier: BSD-3-Clause
// Call sites: the first frame outside the MPI libraries, keyed by build-id and offset, so that a site has
// the same key on every rank and in every run under address randomisation. Names are resolved offline.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/record.hpp"

namespace latecomer::shim {

/// Learns where the MPI libraries and latecomer itself are mapped. Called once, from MPI_Init.
void sites_start();

/// The key of the call site, given the wrapper's return address. Allocates only when a site is new.
/// Thread-safe.
std::uint64_t site_of(void* return_address);

/// The build-id of this library: what the roll call compares.
const char* own_build_id();

/// All sites seen so far.
std::vector<profiles::Frame> site_frames();

}  // namespace latecomer::shim
