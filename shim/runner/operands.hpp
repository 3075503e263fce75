// SPDX-License-Identifier: BSD-3-Clause
// The buffers of one call on this rank, and their form as plain bytes for calls that only move data.
#pragma once

#include <vector>

#include "core/algorithms/algorithm.hpp"
#include "shim/runner/running.hpp"

namespace latecomer::shim {

/// Sizes and places of all blocks at the root of a gatherv or scatterv, in items of their datatype.
struct BlockArray {
  const void *counts, *displacements;
  bool large;  ///< of MPI_Count and MPI_Aint, else of int
  MPI_Count count(Rank r) const {
    return large ? static_cast<const MPI_Count*>(counts)[r] : static_cast<const int*>(counts)[r];
  }
  MPI_Count displacement(Rank r) const {
    return large ? static_cast<const MPI_Aint*>(displacements)[r] : static_cast<const int*>(displacements)[r];
  }
};

/// The buffers of a call on this rank. An argument that is not significant on this rank has no meaning here.
struct Operands {
  const void* send;  ///< MPI_IN_PLACE allowed
  void* recv;        ///< the same for a scatter's root; a bcast's only buffer
  MPI_Count count;   ///< of `recv`, and of the operation
  MPI_Datatype datatype;
  MPI_Op op;
  MPI_Count send_count;
  MPI_Datatype send_type;
  BlockArray blocks;  ///< of the buffer with all blocks: `recv` of a gatherv, `send` of a scatterv
};

/// The operands of a collective that only moves data, as contiguous bytes. So ranks may use different datatypes of one
/// signature. Datatypes with gaps go through a staging buffer.
class Bytewise {
 public:
  /// `comm`: for MPI_Pack. `memory`: the staging buffer for types with gaps; stays until finish_copies() has returned.
  Bytewise(const core::Call& call, Rank me, MPI_Comm comm, const Operands& operands, std::vector<char>& memory);
  char* input() const { return input_.plain; }
  char* output() const { return output_.plain; }
  /// After the schedule has run. Returns an MPI error code.
  int finish_copies();
  int rc() const { return rc_; }

 private:
  struct Side {
    void* user = nullptr;
    MPI_Count count = 0;  // of type, in all of the buffer
    MPI_Datatype type = MPI_DATATYPE_NULL;
    core::Elements bytes = 0;
    Layout layout = {};
    bool staged = false;
    char* plain = nullptr;
  };
  /// Bytes [from, to), which are whole blocks.
  void move_items(bool pack, Side& side, core::Elements from, core::Elements to);

  core::Call call_;
  Rank me_;
  MPI_Comm comm_;
  Side input_, output_;
  int rc_ = MPI_SUCCESS;
};

}  // namespace latecomer::shim
