// SPDX-License-Identifier: BSD-3-Clause
// Gatherv and scatterv on MPI. Their schedules move whole blocks (core/algorithms/irregular): here blocks have the
// sizes that this very call has. The root knows all of them; others know their own, and the rest from the messages
// themselves:
// - a gather's message is the blocks of a subtree, one after the other, in the order of their places; its length is
// found
//   by a matched probe, and only the root has to take it apart;
// - a scatter's message to a node with children begins with the sizes of its blocks, 8 bytes each; a leaf gets its
// block. At the root data go from and to the program's memory, of any datatype, places and gaps; what is passed on
// travels packed.
#pragma once

#include <vector>

#include "core/algorithms/irregular.hpp"
#include "shim/dispatch/executor/executor.hpp"
#include "shim/dispatch/runner/running.hpp"

namespace latecomer::shim {

/// The blocks of one call on one rank. Kept for the next call: so is the memory of what is passed on.
class Irregular final : public Blockwise {
 public:
  /// `in_place`: the root's own block is where it belongs. Returns an MPI error code.
  int begin(const Compiled& program, core::Collective op, Rank me, bool root, bool in_place, const Operands& operands);

  int send(const core::Operation& op, core::OpId id, Rank to, int tag, MPI_Comm comm, MPI_Request* request) override;
  int receive(const core::Operation& op, core::OpId id, Rank from, int tag, MPI_Comm comm, MPI_Request* request,
              bool& there) override;
  int copy(const core::Operation& op, int self, int tag, MPI_Comm comm) override;

 private:
  /// Places [first, first + count) in memory, packed; after their sizes, if a scatter brought them.
  struct Held {
    int first, count;
    char* data;
    MPI_Count bytes;
  };
  /// A part of a message.
  struct Part {
    const void* place;
    MPI_Count length;
    MPI_Datatype type;
  };
  char* take(MPI_Count bytes);
  /// Where a block lies in the root's memory.
  char* block_at(Rank r) const { return all_ + operands_.blocks.displacement(r) * all_layout_.extent; }
  /// The root's blocks that a message carries, in its order: visit(rank).
  template <typename Visit>
  int each_block(core::OpId message, Visit visit) const;
  /// All parts as one message: use(buffer, count, type).
  template <typename Use>
  static int as_one(const std::vector<Part>& parts, Use use);
  /// Places [first, first + count) of what a scatter brought: sizes and data.
  int find(int first, int count, const std::int64_t*& sizes, char*& data, MPI_Count& bytes) const;

  const Compiled* program_ = nullptr;
  Operands operands_{};
  bool scatters_ = false, root_ = false;
  Rank me_ = -1;
  char *all_ = nullptr, *own_ = nullptr;  // the root's blocks, and this rank's
  Layout all_layout_, own_layout_;
  MPI_Datatype all_type_ = MPI_DATATYPE_NULL, own_type_ = MPI_DATATYPE_NULL;
  MPI_Count own_count_ = 0;
  std::vector<Held> held_;
  std::vector<std::vector<char>> memory_;
  std::vector<std::vector<std::int64_t>> headers_;
  std::size_t taken_ = 0, headers_used_ = 0;
};

/// This rank's part of the adaptive tree, which the ranks build themselves, bottom up. The first ranks of two
/// neighbouring ranges exchange the times of their ranges. Both see which range has to send, and tell the roots of the
/// ranges. Each rank takes part in at most ceil(log2 P) exchanges, and a leaf waits for its neighbour only. Source:
/// Träff 2018, as in Träff 2019, section 3. `size`: bytes of the own block. Returns an MPI error code.
int build_adaptive(const CommState& state, const core::TreeProblem& costs, Rank root, core::Bytes size,
                   core::TreePart& part);

}  // namespace latecomer::shim
