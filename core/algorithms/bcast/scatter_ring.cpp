// SPDX-License-Identifier: BSD-3-Clause
// bcast/scatter_ring. A binomial scatter, then an allgather around a ring.
// Steps: The vector is cut into P parts, which a binomial tree scatters. The parts then travel around a ring. A rank
// skips the parts that its neighbor has from the scatter.
// Cost: (log2 P + P - 1) alpha + 2 (P-1)/P N beta for P ranks and N bytes. Best for long vectors.
// Operands: none.
// Buffers: none.
// Source: Barnett et al. 1994 (SHPCC; van de Geijn's algorithm); Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section
// 4.2.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule scatter_ring(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const int ranks = call.ranks;
  if (call.count == 0) co_return;
  const bool lockstep = !instance.parameters.overlap;
  const Tree tree(instance, Placing::rotated);
  const int v = tree.id_of(me);
  const auto parts = [&](int from, int n) {
    const Elements begin = part_of(call.count, ranks, from).offset;
    return output({begin, part_of(call.count, ranks, from + n).offset - begin});
  };
  enum { kScatter = kChannels - 1 };  // channel; the ring uses those below
  OpId landed = kNoOp, sent = kNoOp;
  if (const Slice mine = parts(v, tree.size(v)); v != 0 && mine.count > 0)
    landed = co_yield recv(tree.parent_of(v), mine, kScatter);
  int round = 0;
  for (int mask = tree.reach(v) / 2; mask > 0; mask /= 2, ++round) {
    const int child = v + mask;
    if (child >= ranks) continue;
    const Slice theirs = parts(child, tree.size(child));
    const OpId previous = lockstep ? sent : kNoOp;
    if (theirs.count > 0)
      sent = co_yield send(tree.rank_at(child), theirs, kScatter).after(landed, previous).in_round(round);
  }
  // The ring of virtual ranks: in step t, virtual rank v sends part v - t.
  const int right = (v + 1) % ranks, left = (v + ranks - 1) % ranks;
  const auto has = [&](int node, int part) { return part >= node && part < node + tree.size(node); };
  Window sends, recvs;
  OpId before = kNoOp;  // the receive of the part to send in this step, unless the scatter brought it
  for (int t = 0; t < ranks - 1; ++t) {
    const int out = (v - t + ranks) % ranks, in = (left - t + ranks) % ranks;
    const int channel = t % kScatter;
    const OpId have = has(v, out) ? landed : before;
    const OpId step_sent = lockstep ? sent : kNoOp, step_received = lockstep ? before : kNoOp;
    OpId now = kNoOp, got = kNoOp;
    if (!has(right, out) && parts(out, 1).count > 0) {
      now = co_yield send(tree.rank_at(right), parts(out, 1), channel)
                .after(have, sends.oldest(), step_sent, step_received)
                .in_round(round + t);
      sends.push(now);
    }
    if (!has(v, in) && parts(in, 1).count > 0) {
      got = co_yield recv(tree.rank_at(left), parts(in, 1), channel)
                .after(recvs.oldest(), step_sent, step_received)
                .in_round(round + t);
      recvs.push(got);
    }
    if (now != kNoOp) sent = now;
    before = got != kNoOp || !lockstep ? got : before;
  }
}

}  // namespace latecomer::core::algorithms::bcast
