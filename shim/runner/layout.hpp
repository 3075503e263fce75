// SPDX-License-Identifier: BSD-3-Clause
// The geometry of datatypes: size, extent and gaps of their items in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/schedule/schedule.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// Datatype geometry in bytes. Slices are element ranges: element i of the program's buffers lies at base + i * extent,
/// element i of scratch memory at base + i * pitch.
struct Layout {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  /// The extent, unless items lie in each other's gaps (columns of a matrix by rows). In the program's buffer these
  /// items are of one operand. In scratch memory, items of several operands are neighbours, so each gets bytes of its
  /// own: then the pitch is the true extent, rounded up to the alignment of every type.
  MPI_Count pitch = 0;
  /// Items in memory are byte for byte the items packed: no gap, first byte at the item's address, and every entry of
  /// the typemap right behind the entry before. Sizes and bounds alone do not say that: an item may be reversed, or
  /// have entries that overlap and a gap of the same size.
  bool gapless = false;
  /// Local; allocates nothing. Returns an MPI error code.
  int read_type(MPI_Datatype type);
  /// The layout of MPI_BYTE.
  static constexpr Layout bytes() { return {1, 0, 1, 0, 1, 1, true}; }
  /// The layout of an element of `n` items. Needs gapless items.
  constexpr Layout times(MPI_Count n) const {
    return {size * n, lower, extent * n, true_lower, true_extent * n, pitch * n, gapless};
  }
  /// Of `n` elements in scratch memory.
  std::size_t bytes_for(core::Elements n) const {
    return n == 0 ? 0 : static_cast<std::size_t>((n - 1) * pitch + true_extent);
  }
};

/// Whether items of the datatype hold data. Those whose size is a multiple of 2^64 have size 0 in MPI.
bool holds_data(MPI_Datatype type);

}  // namespace latecomer::shim
