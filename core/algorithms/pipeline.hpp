// SPDX-License-Identifier: BSD-3-Clause
// Parts that pipelined reductions share: the window of posted operations, the combination of a received partial result
// with the rank's own contribution, and the walks around a ring and along a chain.
#pragma once

#include <array>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

/// The number of operations in flight with one neighbour and in one direction. Two keep a port busy. More of them queue
/// at the neighbour of a late rank, then share its port, and all end together. Measured over 100 Mbit/s: an allreduce
/// of 256 KiB on 8 ranks, one late, ends 48 ms after the last arrival with 2, and 187 ms with 8 (ring, 60 calls).
inline constexpr int kWindow = 2;
/// The number of operations in flight with many peers, some of which may be late. Chosen, not measured.
inline constexpr int kPeerWindow = 8;

/// The last kSize operations of one kind. The next operation depends on the oldest.
template <int kSize>
class LastOperations {
 public:
  LastOperations() { ids_.fill(kNoOp); }
  OpId oldest() const { return ids_[at_]; }
  int slot() const { return at_; }
  void push(OpId id) {
    ids_[at_] = id;
    at_ = (at_ + 1) % kSize;
  }

 private:
  std::array<OpId, kSize> ids_;
  int at_ = 0;
};
using Window = LastOperations<kWindow>;
using PeerWindow = LastOperations<kPeerWindow>;

/// A pipeline takes the least number of segments whose modelled time is at most this factor of the shortest. Measured
/// on the wire (docs/results/wire.md): the model errs by 9%. A chain of 8 ranks takes 23.8 ms for 256 KiB with 64
/// segments, and 33.3 ms with 512, which the model prefers by 5%.
inline constexpr double kModelError = 1.09;

/// Combines a received partial result with this rank's contribution to the same part.
/// Commutative and not in place: the output receives the partial result, and the input is combined from the left. This
/// needs no scratch and no copy. Otherwise a scratch slot receives the partial result. It is combined from the left
/// with the contribution in the output, which keeps rank order if the sender has lower ranks' contributions.
class Accumulate {
 public:
  Accumulate(const Call& call, Elements slot_elements)
      : into_output_(!call.in_place && call.commutative), slot_elements_(slot_elements) {}
  Elements scratch() const { return into_output_ ? 0 : kWindow * slot_elements_; }
  /// Whether the contribution must be copied to the output before combine().
  bool wants_copy(const Call& call) const { return !into_output_ && !call.in_place; }
  Slice landing(Part p, int slot) const {
    return into_output_ ? output(p) : Slice{Buffer::scratch, slot * slot_elements_, p.count};
  }
  Operation combine(Part p, int slot) const {
    return into_output_ ? reduce(output(p), {Buffer::input, p.offset, p.count}) : reduce(output(p), landing(p, slot));
  }

 private:
  bool into_output_;
  Elements slot_elements_;
};

/// The order of arrival, but with the ranks of a host next to each other. Hosts follow by their last arrivals. The
/// vector then leaves each host at most twice along a chain.
std::vector<Rank> order_by_host(const Instance& instance);

/// The allreduce ring over `order`, in which segment q starts ahead[q] positions and steps earlier. An empty `ahead` is
/// the plain ring. Source: Proficz 2018 (J. Supercomputing 74), section 4.2.
Schedule ring_walk(const Instance& instance, Rank me, std::span<const int> ahead, std::span<const Rank> order);

/// The least number of segments for which the model cannot tell a better one, for a vector that enters a pipeline of
/// P - 1 hops. P in lockstep, as in the paper, and on a network without figures.
int chain_segments(const Call& call, const Network& network, bool lockstep);

/// The pipelined linear tree over `order`. S segments are reduced along positions 0, ..., P-1. Each finished segment
/// returns at once, on one of two ways:
/// - One port for all links of a rank: around the ring, from P-1 to 0, 1, ..., P-2. No rank then sends in two
///   directions at the same time.
/// - One port per link: through the chain, to P-2, ..., 0. No link then carries two flows.
/// Source: Proficz 2018 (J. Supercomputing 74), section 4.1.
Schedule chain_walk(const Instance& instance, Rank me, std::span<const Rank> order);

}  // namespace latecomer::core
