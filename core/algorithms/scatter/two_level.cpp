// SPDX-License-Identifier: BSD-3-Clause
// scatter/two_level. Inside hosts first, then between them.
// Steps: The rank of a host that arrives first receives the blocks of its host in one message, and forwards them. The
// ranks of the root's host receive from the root. The root sends in the order in which hosts are complete.
// Cost: (H-1) alpha + S beta between H hosts, for blocks of S bytes in all.
// Operands: none.
// Buffers: a leader has the blocks of its host in scratch, the root those of all ranks.
// Source: latecomer. MPICH and Open MPI stage collectives by nodes, too, with fixed leaders.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule two_level(const Instance& instance, Rank me) { return along_hosts(instance, me); }

}  // namespace latecomer::core::algorithms::scatter
