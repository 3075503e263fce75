// SPDX-License-Identifier: BSD-3-Clause
// bcast/binomial. The binomial tree.
// Steps: Every rank sends the vector to its children, the largest subtree first.
// Cost: ceil(log2 P) (alpha + N beta) for P ranks and N bytes. Best for short vectors.
// Operands: none.
// Buffers: none.
// Source: Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.2.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule binomial(const Instance& instance, Rank me) {
  return bcast_tree(instance, me, Placing::rotated, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::bcast
