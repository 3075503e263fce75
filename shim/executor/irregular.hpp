// SPDX-License-Identifier: BSD-3-Clause
// Runs the schedules of gatherv and scatterv on MPI. They move whole blocks (core/algorithms/irregular). Each call has
// its own block sizes. The root knows all sizes. Another rank knows its own size, and learns others from the messages:
//
// - A message of a gather contains the blocks of a subtree in the order of their places. A probe gives its length. Only
// the root separates the blocks.
// - A message of a scatter to a rank with children begins with the sizes of its blocks, 8 bytes each. A leaf receives
//   its block only.
//
// The root sends from and receives into the program's memory, with any datatype, displacements and gaps. The other
// ranks forward packed data.
#pragma once

#include <vector>

#include "core/algorithms/irregular.hpp"
#include "shim/executor/executor.hpp"
#include "shim/runner/running.hpp"
#include "shim/state/communicator.hpp"

namespace latecomer::shim {

/// The blocks of one call on one rank. The next call uses the object and its memory for forwarded blocks again.
class Irregular final : public Blockwise {
 public:
  /// `in_place`: the root's own block is already in its place. Returns an MPI error code.
  int begin_call(const Compiled& program, core::Collective op, Rank me, bool root, bool in_place,
                 const Operands& operands);

  int send_blocks(const core::Operation& op, core::OpId id, Rank to, int tag, MPI_Comm comm,
                  MPI_Request* request) override;
  int receive_blocks(const core::Operation& op, core::OpId id, Rank from, int tag, MPI_Comm comm, MPI_Request* request,
                     bool& there) override;
  int copy_blocks(const core::Operation& op, int self, int tag, MPI_Comm comm) override;
  int accept_blocks(const core::Operation& op, core::OpId id, MPI_Count bytes) override;

 private:
  /// The blocks of places [first, first + count), packed. In a scatter, their sizes come first.
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
  char* take_memory(MPI_Count bytes);
  /// The address of a block in the root's memory.
  char* block_at(Rank r) const { return all_ + operands_.blocks.displacement(r) * all_layout_.extent; }
  /// Calls visit(rank) for the blocks of a message at the root, in the order of the message.
  template <typename Visit>
  int each_block(core::OpId message, Visit visit) const;
  /// At the root: the bytes of a message's blocks.
  int bytes_of(core::OpId message, MPI_Count& bytes) const;
  /// Calls use(buffer, count, type) with one datatype for all parts.
  template <typename Use>
  static int as_one(const std::vector<Part>& parts, Use use);
  /// Finds the sizes and the data of places [first, first + count) in the received message of a scatter.
  int find_blocks(int first, int count, const std::int64_t*& sizes, char*& data, MPI_Count& bytes) const;

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
