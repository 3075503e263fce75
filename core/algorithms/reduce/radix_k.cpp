// SPDX-License-Identifier: BSD-3-Clause
// reduce/radix_k. Reduce-scatter in groups of k ranks, then a gather.
// Steps: P is factored into group sizes k, of at most 8 where possible. In each round the ranks form groups of k and
// cut the block that a group shares into k pieces. Every member collects its piece from all others. After the last
// round each rank holds N/P of the result and sends it to the root.
// Cost: (sum of (k - 1) over the rounds + P - 1) alpha + about 2 (P-1)/P N beta + (P-1)/P N gamma for P ranks and N
// bytes.
// Operands: rank order.
// Buffers: up to 2 N of scratch.
// Source: Peterka, Goodell, Ross, Shen, Thakur 2009 (SC); RXK in Proficz, Ocetkiewicz 2021 (J. Supercomputing 77),
// section 6.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::reduce {
namespace {

/// The group sizes: the largest factors of P that are at most kMostPerGroup. A larger prime factor is a group size of
/// its own.
std::vector<int> group_sizes(int ranks) {
  // The default of IceT, which contains Radix-k (ICET_MAGIC_K_DEFAULT). Modelled on 64 ranks, fdr, with balanced
  // arrivals for limits of 2, 4, 8, 16 and 32: 4 KiB take 10, 7, 6, 6 and 7 us. 4 MiB take 1.4, 2.1, 2.6, 2.9 and 5.2
  // ms.
  constexpr int kMostPerGroup = 8;
  std::vector<int> out;
  for (int k = kMostPerGroup; k >= 2; --k)
    for (; ranks % k == 0; ranks /= k) out.push_back(k);
  for (int k = kMostPerGroup + 1; ranks > 1; ++k)
    for (; ranks % k == 0; ranks /= k) out.push_back(k);
  return out;
}

}  // namespace

Schedule radix_k(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const bool root = me == call.root, lockstep = !instance.parameters.overlap;
  if (call.count == 0) co_return;
  if (call.ranks == 1) {
    if (!call.in_place) co_yield copy(output({0, call.count}), own(call, me, {0, call.count}));
    co_return;
  }
  const auto sizes = group_sizes(call.ranks);
  const auto cell = [&](int index) { return part_of(call.count, call.ranks, index).offset; };
  const auto cells = [&](int from, int to) { return Part{cell(from), cell(to) - cell(from)}; };

  // The value of a round is the own contribution or the result of the previous round. Results are contiguous in the
  // scratch.
  Slice value = own(call, me, {0, call.count});
  OpId ready = kNoOp;
  Elements scratch = 0;
  int stride = 1, low = 0, width = call.ranks, round = 0;
  PeerWindow sends;
  std::vector<OpId> reads;  // operations that read the own contribution
  for (const int k : sizes) {
    const int mine = me / stride % k;
    const Rank first = me - mine * stride;
    const int piece_width = width / k;
    const auto piece = [&](int i) { return cells(low + i * piece_width, low + (i + 1) * piece_width); };
    const auto within = [&](Part p) { return Slice{value.buffer, value.offset + p.offset - cell(low), p.count}; };
    for (int i = 1; i < k; ++i) {
      const int to = (mine + i) % k;
      if (piece(to).count == 0) continue;
      const OpId sent =
          co_yield send(first + to * stride, within(piece(to)), round).after(ready, sends.oldest()).in_round(round);
      sends.push(sent);
      if (round == 0) reads.push_back(sent);
    }
    const Part kept = piece(mine);
    const Slice own_piece = within(kept);
    OpId done = kNoOp;
    Slice sum{Buffer::scratch, scratch, kept.count};
    if (kept.count > 0) {
      // Combines from the last member down, so that every further operand is the left one.
      OpId previous = lockstep ? ready : kNoOp;
      std::vector<OpId> landed(static_cast<std::size_t>(k), kNoOp);
      std::vector<Slice> at(static_cast<std::size_t>(k));
      PeerWindow landings;
      for (int i = k - 1; i >= 0; --i) {
        if (i == mine) {
          at[static_cast<std::size_t>(i)] = own_piece;
          continue;
        }
        at[static_cast<std::size_t>(i)] = {Buffer::scratch, scratch, kept.count};
        scratch += kept.count;
        co_yield ScratchNeed{scratch};
        const OpId got = co_yield recv(first + i * stride, at[static_cast<std::size_t>(i)], round)
                             .after(previous, landings.oldest())
                             .in_round(round);
        landings.push(got);
        landed[static_cast<std::size_t>(i)] = got;
      }
      if (mine == k - 1) {  // the own piece is the right operand, and its buffer must not be written
        sum = {Buffer::scratch, scratch, kept.count};
        scratch += kept.count;
        co_yield ScratchNeed{scratch};
        done = co_yield copy(sum, own_piece).after(ready);
        if (round == 0) reads.push_back(done);
      } else {
        sum = at[static_cast<std::size_t>(k - 1)];
        done = landed[static_cast<std::size_t>(k - 1)];
      }
      for (int from = k - 2; from >= 0; --from) {
        done = co_yield core::reduce(sum, at[static_cast<std::size_t>(from)])
                   .after(done, landed[static_cast<std::size_t>(from)], from == mine ? ready : kNoOp)
                   .in_round(round);
        if (from == mine && round == 0) reads.push_back(done);
      }
    }
    value = sum;
    ready = done;
    low += mine * piece_width;
    width = piece_width;
    stride *= k;
    ++round;
  }

  // The cell of a rank: the digits of the rank in the mixed radix of the rounds, first round first.
  const auto cell_of = [&](Rank r) {
    int index = 0, span = call.ranks, digit_stride = 1;
    for (const int k : sizes) {
      span /= k;
      index += r / digit_stride % k * span;
      digit_stride *= k;
    }
    return index;
  };
  const Part mine = cells(low, low + 1);
  if (!root) {
    if (mine.count > 0) co_yield send(call.root, value, round).after(ready).in_round(round);
    co_return;
  }
  // In place, the result overwrites the own contribution, so all reads of it must be complete.
  PeerWindow gathered;
  OpId gate = kNoOp;
  if (call.in_place) {
    for (const OpId read : reads) {
      if (gate == kNoOp) {
        gate = read;
        continue;
      }
      // An empty copy joins dependencies.
      gate = co_yield copy({Buffer::scratch, 0, 0}, {Buffer::scratch, 0, 0}).after(gate, read);
    }
  }
  if (mine.count > 0) co_yield copy(output(mine), value).after(ready, gate);
  for (int i = 1; i < call.ranks; ++i) {
    const Rank from = (me + i) % call.ranks;
    const int c = cell_of(from);
    const Part theirs = cells(c, c + 1);
    if (theirs.count == 0) continue;
    gathered.push(co_yield recv(from, output(theirs), round)
                      .after(gathered.oldest(), gate, lockstep ? ready : kNoOp)
                      .in_round(round));
  }
}

}  // namespace latecomer::core::algorithms::reduce
