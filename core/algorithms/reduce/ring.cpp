// SPDX-License-Identifier: BSD-3-Clause
// reduce/ring. The parallel ring, or bucket algorithm.
// Steps: The vector is cut into P segments. Each segment is reduced on its way around the ring and ends at the rank of
// its number. The ranks then send their segments to the root.
// Cost: 2 (P-1) alpha + 2 (P-1)/P N beta + (P-1)/P N gamma for P ranks and N bytes.
// Operands: rotated rank order, so commutative operators only.
// Buffers: 8 segments of scratch.
// Source: Barnett et al. 1993 (JPDC, bucket algorithms); RING in Proficz, Ocetkiewicz 2021 (J. Supercomputing 77),
// section 6.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule ring(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const int ranks = call.ranks;
  const bool root = me == call.root, lockstep = !instance.parameters.overlap;
  if (ranks == 1) {
    if (!call.in_place && call.count > 0) co_yield copy(output({0, call.count}), own(call, me, {0, call.count}));
    co_return;
  }
  const auto part = [&](int q) { return part_of(call.count, ranks, q); };
  const Elements largest = largest_part(call.count, ranks);
  // A slot receives a partial result, takes this rank's contribution, and is sent to the right. The last one stays.
  const auto slot_at = [&](int slot) { return Slice{Buffer::scratch, slot * largest, 0}; };
  co_yield ScratchNeed{kWindow * largest};
  const Rank right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
  enum { kGather = kChannels - 1 };  // channel; the ring uses those below
  Window sends, recvs;
  OpId have = kNoOp, previous_sent = kNoOp;
  Slice holding{};
  OpId sent_slot[kWindow];
  std::fill(std::begin(sent_slot), std::end(sent_slot), kNoOp);
  std::vector<OpId> reader(root && call.in_place ? static_cast<std::size_t>(ranks) : 0,
                           kNoOp);  // [part], the operation that reads the root's own contribution in the output
  const auto note_reader = [&](int q, OpId id) {
    if (!reader.empty()) reader[static_cast<std::size_t>(q)] = id;
  };
  for (int t = 0; t < ranks - 1; ++t) {
    const int in_number = (me - 2 - t + 2 * ranks) % ranks, out_number = (in_number + 1) % ranks;
    const Part out = part(out_number), in = part(in_number);
    const int slot = recvs.slot(), channel = t % (kChannels - 1);
    OpId got = kNoOp, sent = kNoOp;
    Slice landing = slot_at(slot);
    landing.count = in.count;
    if (out.count > 0) {
      const Slice what = t == 0 ? own(call, me, out) : holding;
      sent =
          co_yield send(right, what, channel).after(have, sends.oldest(), lockstep ? previous_sent : kNoOp).in_round(t);
      if (t > 0) sent_slot[(slot + kWindow - 1) % kWindow] = sent;
      else note_reader(out_number, sent);
    }
    sends.push(sent);
    if (in.count > 0) {
      const OpId landed =
          co_yield recv(left, landing, channel)
              .after(recvs.oldest(), sent_slot[slot], lockstep ? have : kNoOp, lockstep ? previous_sent : kNoOp)
              .in_round(t);
      got = co_yield core::reduce(landing, own(call, me, in)).after(landed);
      note_reader(in_number, got);
      sent_slot[slot] = kNoOp;
    }
    // A skipped step leaves the slot as it was: the next receive into it waits for the last one.
    recvs.push(got != kNoOp ? got : recvs.oldest());
    have = got;
    holding = landing;
    previous_sent = sent;
  }
  const Part mine = part(me);
  if (!root) {
    if (mine.count > 0)
      co_yield send(call.root, holding, kGather).after(have, lockstep ? previous_sent : kNoOp).in_round(ranks - 1);
    co_return;
  }
  if (mine.count > 0) co_yield copy(output(mine), holding).after(have);
  PeerWindow gathered;
  for (int i = 1; i < ranks; ++i) {
    const int q = (me + i) % ranks;
    if (part(q).count == 0) continue;
    const OpId read = call.in_place ? reader[static_cast<std::size_t>(q)] : kNoOp;
    gathered.push(co_yield recv(q, output(part(q)), kGather)
                      .after(gathered.oldest(), read, lockstep ? have : kNoOp)
                      .in_round(ranks - 1));
  }
}

}  // namespace latecomer::core::algorithms::reduce
