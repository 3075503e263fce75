// SPDX-License-Identifier: BSD-3-Clause
// Pieces that pipelined reductions share: where a partial result lands and how it is combined with the
// rank's own contribution, and the window that bounds how far a rank posts ahead.
#pragma once

#include <array>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

/// Operations in flight per direction: enough to keep a port busy (two would do), few enough that
/// neither request arrays nor lazily generated lists grow with the number of ranks.
inline constexpr int kWindow = 8;

/// Remembers the last kWindow operations of one kind, so that the next can wait for the oldest.
class Window {
 public:
  Window() { ids_.fill(kNoOp); }
  OpId oldest() const { return ids_[at_]; }
  int slot() const { return at_; }
  void push(OpId id) {
    ids_[at_] = id;
    at_ = (at_ + 1) % kWindow;
  }

 private:
  std::array<OpId, kWindow> ids_;
  int at_ = 0;
};

/// How a received partial result is combined with this rank's contribution to the same part.
/// Not in place and commutative: it lands in the output and the input is applied from the left, which
/// needs neither scratch nor a copy. Otherwise it lands in a scratch slot and is applied from the left
/// to the contribution that lies in the output (received o own: rank order, if it came from lower ranks).
class Accumulate {
 public:
  Accumulate(const Call& call, Elements slot_elements)
      : into_output_(!call.in_place && call.commutative), slot_elements_(slot_elements) {}
  Elements scratch() const { return into_output_ ? 0 : kWindow * slot_elements_; }
  /// The contribution must have been copied to the output first.
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

/// The ring over instance.order in which segment q starts its way ahead[q] positions and steps earlier
/// (002, section 4.2; ALGORITHMS 1). ahead empty: the plain ring.
Schedule ring_walk(const Instance& instance, Rank me, std::span<const int> ahead, std::span<const Rank> order);

/// The pipelined linear tree over `order`: S segments are reduced along positions 0, ..., P-1, and each goes
/// back as soon as it is finished: around the ring, from P-1 to 0, 1, ..., P-2, where a rank has one port for
/// all links (no rank then sends two ways at once), and through the chain, to P-2, ..., 0, where every link
/// has its own (no link then carries two flows). 002, section 4.1; ALGORITHMS 1.
Schedule chain_walk(const Instance& instance, Rank me, std::span<const Rank> order);

}  // namespace latecomer::core
