// SPDX-License-Identifier: BSD-3-Clause
// The geometry of datatypes: size, extent and gaps of their items in memory.
#pragma once

#include <cstddef>

#include "core/schedule/schedule.hpp"
#include "shim/mpi.hpp"

namespace latecomer::shim {

/// Datatype geometry in bytes. Slices are element ranges: element i lies at base + i * extent.
struct Layout {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  /// Items in memory are byte for byte the items packed: no gap, first byte at the item's address, and every entry of
  /// the typemap right behind the entry before. Sizes and bounds alone do not say that: an item may be reversed, or
  /// have entries that overlap and a gap of the same size.
  bool gapless = false;
  /// Local; allocates nothing. Returns an MPI error code.
  int fill(MPI_Datatype type);
  /// Of MPI_BYTE.
  static constexpr Layout bytes() { return {1, 0, 1, 0, 1, true}; }
  std::size_t bytes_for(core::Elements n) const {
    return n == 0 ? 0 : static_cast<std::size_t>((n - 1) * extent + true_extent);
  }
};

}  // namespace latecomer::shim
