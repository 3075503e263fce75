// SPDX-License-Identifier: BSD-3-Clause
// bcast/binomial. Steps: everybody sends all to its children, the largest subtree first. Cost: ceil(log2 P) (alpha + N
// beta). Best for short vectors. Buffers: none. Operands: none. Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005,
// section 4.2.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule binomial(const Instance& instance, Rank me) {
  return bcast_tree(instance, me, Placing::rotated, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::bcast
