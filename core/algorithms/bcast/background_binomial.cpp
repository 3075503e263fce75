// SPDX-License-Identifier: BSD-3-Clause
// bcast/background_binomial. Steps: as arrival_binomial; receives, and passing on what came, do not wait for the
// process. Cost: ceil(log2 P) (alpha + N beta); receivers late by up to D: max(D, that), then a copy. Buffers: N of
// scratch, except at the root. Operands: none. Source: paper 001, section 4.1 (BSBN), for a broadcast.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule background_binomial(const Instance& instance, Rank me) {
  return bcast_tree(instance, me, Placing::early_near, Lane::background);
}

}  // namespace latecomer::core::algorithms::bcast
