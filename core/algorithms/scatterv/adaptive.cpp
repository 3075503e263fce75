// SPDX-License-Identifier: BSD-3-Clause
// scatterv/adaptive. Steps: as binomial, but of two ranges the one that is cheaper to send does. Here it is walked
// backwards, from the root on. Cost: ceil(log2 P) alpha + S beta, root free, S the sum of the blocks. Buffers: what a
// node passes on; none at leaves and at the root. Operands: none. Source: paper 003, Proposition 1; Traeff 2018.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule adaptive(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::adaptive); }

}  // namespace latecomer::core::algorithms::scatterv
