// SPDX-License-Identifier: BSD-3-Clause
// Messages whose data lie in several places: what a sorted tree's root copies together before it sends, or apart after
// it has received, an indexed datatype takes from where it is. Source: paper 001, section 4 (the permutation of
// blocks).
#pragma once

#include "core/schedule/program.hpp"

namespace latecomer::core {

/// Where the data of one message are, in the order of the message; all in one buffer of the program's.
struct Pieces {
  OpId message = kNoOp;
  std::vector<Slice> where;
};

/// Finds the messages of at least `least` elements whose data copies take from the input, or to the output, through
/// scratch that nothing else touches. Their copies become empty (dependencies stay as they are) and the scratch shrinks
/// to what is still used. The program does the same as before: the input never changes, what is read of it later is the
/// same; and an output range that one copy alone touches may be written as early as its message comes. Foreground
/// messages only: others run before the program's buffers are there. At most O(operations) work per message and piece.
std::vector<Pieces> skip_packing(RankProgram& program, Elements least);

}  // namespace latecomer::core
