// SPDX-License-Identifier: BSD-3-Clause
// Generator `rows`, the one of production. One bit per (process, segment) by columns says what a process holds; one by
// rows says which processes hold a segment. FIND-PEER takes the receiver's bits from the lowest on and looks in each
// segment's row for another process that may still send. A look fails for one of two reasons. The row has no sender for
// the rest of the round: then the round does not look at it again. Or its only sender is the receiver itself: that
// happens once per segment and round. So a round takes O(P + N) looks of O(P/64), where the segment tree takes
// O(P log P) of O(N/64). Hand-written AVX-512 for whole sets takes 10 ms where this takes 16 ms, once per pattern at
// P = N = 512: no user notices.
#include <bit>

#include "core/algorithms/clairvoyant/rounds.hpp"
#include "core/algorithms/clairvoyant/tables.hpp"

namespace latecomer::core::clairvoyant {

LATECOMER_WIDEST void plan_rows(const Problem& problem, const Emit& emit) {
  Rows table(problem);
  run_reduce(problem, table, emit);
}

}  // namespace latecomer::core::clairvoyant
