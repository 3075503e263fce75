// SPDX-License-Identifier: BSD-3-Clause
// Removes packing copies around messages. The root of a sorted tree copies scattered blocks into one message before it
// sends, and apart after it receives. An indexed datatype moves the same blocks without the copies.
// Source: Proficz 2020 (Cluster Computing 23), section 4 (permutation of the blocks).
#pragma once

#include "core/schedule/program.hpp"

namespace latecomer::core {

/// The places of one message's data, in the order of the message. All places are in one buffer of the program.
struct Pieces {
  OpId message = kNoOp;
  std::vector<Slice> where;
};

/// Finds messages of at least `least` elements that copies pack from the input, or unpack to the output, through
/// scratch that no other operation touches. Empties these copies, keeps their dependencies, and shrinks the scratch to
/// the part still in use. Returns the places of each message.
///
/// The result of the program stays the same. The input never changes, so a later read gives the same data. The output
/// range of an emptied copy is touched by no other operation, so the message may write it directly.
/// Only foreground messages qualify, because background messages can run before the program's buffers exist.
/// Work: at most O(operations) per message and piece.
std::vector<Pieces> skip_packing(RankProgram& program, Elements least);

}  // namespace latecomer::core
