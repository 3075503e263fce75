// SPDX-License-Identifier: BSD-3-Clause
// Generator `rows`: one bit per (process, segment) by columns, to see what a process holds, and again by rows, to see
// who holds a segment. FIND-PEER takes the receiver's bits from the lowest on and looks in each segment's row for
// somebody else who may still send. A look that fails either finds a row that is empty for the rest of the round, and
// is not taken again in it, or one whose only sender is the receiver itself, of which there is one per segment and
// round: so a round takes O(P + N) looks of O(P/64), where the segment tree takes O(P log P) of O(N/64). See
// docs/clairvoyant.md.
#include <bit>

#include "core/algorithms/clairvoyant/rounds.hpp"
#include "core/algorithms/clairvoyant/tables.hpp"

namespace latecomer::core::clairvoyant {

LATECOMER_WIDEST void plan_rows(const Problem& problem, const Emit& emit) {
  Rows table(problem);
  run_reduce(problem, table, emit);
}

}  // namespace latecomer::core::clairvoyant
