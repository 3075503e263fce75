// SPDX-License-Identifier: BSD-3-Clause
// Where the data of one call lie on this rank, and how calls that only move data are brought down to bytes.
#pragma once

#include <vector>

#include "core/algorithms/algorithm.hpp"
#include "shim/dispatch/runner/running.hpp"

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

/// The local side of a call: where its data lie. What is not significant on this rank means nothing.
struct Operands {
  const void* send;  ///< MPI_IN_PLACE allowed
  void* recv;        ///< the same for a scatter's root; a bcast's only buffer
  MPI_Count count;   ///< of `recv`, and of the operation
  MPI_Datatype datatype;
  MPI_Op op;
  MPI_Count send_count;
  MPI_Datatype send_type;
  BlockArray blocks;  ///< of `recv` or `send`, whichever is all blocks
};

/// What a collective that only moves data works on: bytes one after the other, so that ranks may use different
/// datatypes of one signature. Types with gaps go through a buffer of ours.
class Bytewise {
 public:
  /// `comm`: what MPI is told when it packs. `memory`: for types with gaps; kept until finish() has returned.
  Bytewise(const core::Call& call, Rank me, MPI_Comm comm, const Operands& operands, std::vector<char>& memory);
  char* input() const { return input_.plain; }
  char* output() const { return output_.plain; }
  /// After the schedule has run. Returns an MPI error code.
  int finish();
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
  void move(bool pack, Side& side, core::Elements from, core::Elements to);

  core::Call call_;
  Rank me_;
  MPI_Comm comm_;
  Side input_, output_;
  int rc_ = MPI_SUCCESS;
};

}  // namespace latecomer::shim
