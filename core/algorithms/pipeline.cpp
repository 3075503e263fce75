// SPDX-License-Identifier: BSD-3-Clause
// Implements the walks around a ring and along a chain, which four allreduce algorithms use.
#include "core/algorithms/pipeline.hpp"

#include <algorithm>

#include "core/algorithms/segments.hpp"

namespace latecomer::core {

namespace {
/// The operations of one step. In lockstep, all of them complete before the next step begins.
struct PipelineStep {
  OpId ids[4] = {kNoOp, kNoOp, kNoOp, kNoOp};
  int count = 0;
  void add(OpId id) {
    if (id != kNoOp) ids[count++] = id;
  }
  Operation before(const Operation& op) const { return op.after(ids[0], ids[1], ids[2], ids[3]); }
};
/// In lockstep, makes `now` the previous step unless it has no operations.
void finish_step(PipelineStep& previous, const PipelineStep& now, bool lockstep) {
  if (lockstep && now.count > 0) previous = now;
}
}  // namespace

std::vector<Rank> order_by_host(const Instance& in) {
  std::vector<int> last(static_cast<std::size_t>(in.hosts()));
  const auto host = [&](Rank r) { return static_cast<std::size_t>(in.host(r)); };
  for (std::size_t k = 0; k < in.order.size(); ++k) last[host(in.order[k])] = static_cast<int>(k);
  std::vector<Rank> out = in.order;
  std::stable_sort(out.begin(), out.end(), [&](Rank a, Rank b) { return last[host(a)] < last[host(b)]; });
  return out;
}

Schedule ring_walk(const Instance& instance, Rank me, std::span<const int> ahead, std::span<const Rank> order) {
  const Call& call = instance.call;
  const int ranks = call.ranks;
  if (ranks == 1) {
    if (!call.in_place && call.count > 0) co_yield copy(output({0, call.count}), own(call, {0, call.count}));
    co_return;
  }
  int p = 0;
  while (order[static_cast<std::size_t>(p)] != me) ++p;
  const Rank right = order[static_cast<std::size_t>((p + 1) % ranks)];
  const Rank left = order[static_cast<std::size_t>((p + ranks - 1) % ranks)];
  const auto head_start = [&](int q) { return ahead.empty() ? 0 : ahead[static_cast<std::size_t>(q)]; };
  const int first = ahead.empty() ? 0 : -*std::max_element(ahead.begin(), ahead.end());
  const auto modulo = [ranks](int x) { return ((x % ranks) + ranks) % ranks; };

  const Accumulate accumulate(call, largest_part(call.count, ranks));
  co_yield ScratchNeed{accumulate.scratch()};
  const bool lockstep = !instance.parameters.overlap;
  std::vector<OpId> first_send(static_cast<std::size_t>(ranks), kNoOp);  // [segment], the send of the reduce phase
  Window sends, recvs, slots;
  PipelineStep previous;
  OpId have = kNoOp;  // the operation that produced the segment to send in this step
  for (int t = first; t < 2 * ranks - 2; ++t) {
    const int channel = (t - first) % kChannels;
    const int out = modulo(p - t), in = modulo(p - 1 - t);
    const int out_step = t + head_start(out), in_step = t + head_start(in);
    const Part out_part = part_of(call.count, ranks, out), in_part = part_of(call.count, ranks, in);
    PipelineStep now;
    OpId got = kNoOp;
    if (in_step >= 0 && in_step < 2 * ranks - 2 && in_part.count > 0) {
      if (in_step < ranks - 1) {
        const int slot = slots.slot();
        const OpId landed = co_yield previous.before(recv(left, accumulate.landing(in_part, slot), channel))
                                .after(recvs.oldest(), slots.oldest())
                                .in_round(t - first);
        recvs.push(landed);
        got = co_yield accumulate.combine(in_part, slot).after(landed);
        slots.push(got);
      } else {
        got = co_yield previous.before(recv(left, output(in_part), channel))
                  .after(recvs.oldest(), first_send[static_cast<std::size_t>(in)])
                  .in_round(t - first);
        recvs.push(got);
      }
      now.add(got);
    }
    if (out_step >= 0 && out_step < 2 * ranks - 2 && out_part.count > 0) {
      const Slice what = out_step == 0 ? own(call, out_part) : output(out_part);
      const OpId sent =
          co_yield previous.before(send(right, what, channel)).after(have, sends.oldest()).in_round(t - first);
      sends.push(sent);
      now.add(sent);
      if (out_step < ranks - 1) first_send[static_cast<std::size_t>(out)] = sent;
    }
    have = got;
    finish_step(previous, now, lockstep);
  }
}

int chain_segments(const Call& call, const Network& network, bool lockstep) {
  if (lockstep || network.beta_ns_per_byte <= 0 || call.count == 0) return call.ranks;
  return least_segments(static_cast<int>(std::min<Elements>(kChainSegments, call.count)), kModelError, [&](int s) {
    const Bytes m = largest_part(call.count, s) * call.element_bytes;
    return s * network.pace_ns(m) + (call.ranks - 2) * static_cast<double>(network.step_ns(m));
  });
}

Schedule chain_walk(const Instance& instance, Rank me, std::span<const Rank> order) {
  const Call& call = instance.call;
  const int ranks = call.ranks;
  if (ranks == 1) {
    if (!call.in_place && call.count > 0) co_yield copy(output({0, call.count}), own(call, {0, call.count}));
    co_return;
  }
  const bool lockstep = !instance.parameters.overlap;
  const int segments = instance.parameters.segments > 0 ? instance.parameters.segments
                                                        : chain_segments(call, instance.parameters.network, lockstep);
  int p = 0;
  while (order[static_cast<std::size_t>(p)] != me) ++p;
  const bool head = p == 0, tail = p == ranks - 1;
  const bool ring = instance.parameters.network.ports != 0;
  const bool forwards = tail || (ring ? p <= ranks - 3 : p >= 1);  // sends finished segments
  // The steps in which this rank receives and sends finished segment 0.
  const int final_in = ring ? ranks - 1 + p : 2 * ranks - 3 - p;
  const int final_out = tail ? ranks - 1 : final_in + 1;
  const Rank next = order[static_cast<std::size_t>((p + 1) % ranks)];
  const Rank prev = order[static_cast<std::size_t>((p + ranks - 1) % ranks)];
  const Rank final_from = ring ? prev : next, final_to = ring ? next : prev;
  const auto part = [&](int i) { return part_of(call.count, segments, i); };
  const auto valid = [&](int i) { return i >= 0 && i < segments && part(i).count > 0; };

  const Accumulate accumulate(call, largest_part(call.count, segments));
  if (!head) co_yield ScratchNeed{accumulate.scratch()};
  // [segment]: the operation that produced the value to send, and the send of the partial result.
  std::vector<OpId> partial(static_cast<std::size_t>(segments), kNoOp), partial_sent(partial), finished(partial);
  Window sends, recvs, slots, final_sends, final_recvs;
  PipelineStep previous, previous_final;  // in lockstep, the reduction and the way back are independent loops
  for (int t = 0; t < segments + 2 * ranks; ++t) {
    PipelineStep now, now_final;
    OpId got = kNoOp, got_final = kNoOp;
    if (const int i = t - (p - 1); !head && valid(i)) {
      const Part seg = part(i);
      OpId copied = kNoOp;
      if (accumulate.wants_copy(call)) copied = co_yield copy(output(seg), own(call, seg));
      const int slot = slots.slot();
      const OpId landed = co_yield previous.before(recv(prev, accumulate.landing(seg, slot), (2 * i) % kChannels))
                              .after(recvs.oldest(), slots.oldest())
                              .in_round(t);
      recvs.push(landed);
      got = co_yield accumulate.combine(seg, slot).after(landed, copied);
      slots.push(got);
      now.add(got);
    }
    if (const int i = t - final_in; !tail && valid(i)) {
      got_final = co_yield previous_final.before(recv(final_from, output(part(i)), (2 * i + 1) % kChannels))
                      .after(final_recvs.oldest(), partial_sent[static_cast<std::size_t>(i)])
                      .in_round(t);
      final_recvs.push(got_final);
      now_final.add(got_final);
    }
    if (const int i = t - p; !tail && valid(i)) {
      const Slice what = head ? own(call, part(i)) : output(part(i));
      const OpId sent = co_yield previous.before(send(next, what, (2 * i) % kChannels))
                            .after(partial[static_cast<std::size_t>(i)], sends.oldest())
                            .in_round(t);
      sends.push(sent);
      partial_sent[static_cast<std::size_t>(i)] = sent;
      now.add(sent);
    }
    if (const int i = t - final_out; forwards && valid(i)) {
      const OpId ready = tail ? partial[static_cast<std::size_t>(i)] : finished[static_cast<std::size_t>(i)];
      const OpId sent = co_yield previous_final.before(send(final_to, output(part(i)), (2 * i + 1) % kChannels))
                            .after(ready, final_sends.oldest())
                            .in_round(t);
      final_sends.push(sent);
      now_final.add(sent);
    }
    if (got != kNoOp) partial[static_cast<std::size_t>(t - (p - 1))] = got;
    if (got_final != kNoOp) finished[static_cast<std::size_t>(t - final_in)] = got_final;
    finish_step(previous, now, lockstep);
    finish_step(previous_final, now_final, lockstep);
  }
}

}  // namespace latecomer::core
