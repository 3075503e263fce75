// SPDX-License-Identifier: BSD-3-Clause
// One collective call and its buffers: the part of the call that is the same on every rank.
#pragma once

#include <algorithm>

#include "core/collective/collective.hpp"

namespace latecomer::core {

/// The buffers of a rank during a call. Scratch belongs to the algorithm.
enum class Buffer : std::uint8_t { input, output, scratch };

struct Call {
  Collective op = Collective::allreduce;
  int ranks = 1;
  Rank root = 0;
  /// Elements of the vector or, where a buffer holds blocks, of one block. For irregular collectives an element is a
  /// block, and count is 1.
  Elements count = 0;
  Bytes element_bytes = 1;  ///< size of one element, for the model; 0: blocks of different sizes
  bool in_place = false;    ///< MPI_IN_PLACE at this rank; see InPlace
  bool commutative = true;  ///< false: operands must stay in rank order
  /// The payload as policies and profiles count it: the largest buffer of a rank.
  Bytes bytes() const { return count * element_bytes * (has_blocks(op) ? ranks : 1); }
};

/// Elements of a rank's input or output. The one buffer of a bcast counts as output on every rank.
inline Elements buffer_elements(const Call& call, Rank me, Buffer buffer) {
  const CollectiveTraits& t = traits(call.op);
  const bool root = !t.rooted || me == call.root;
  const auto elements = [&](Extents e) -> Elements {
    switch (root ? e.root : e.others) {
      case Extent::none:
        return 0;
      case Extent::vector:
        return call.count;
      case Extent::blocks:
        return call.ranks * call.count;
    }
    return 0;
  };
  const InPlace in_place = call.in_place && root ? t.in_place : InPlace::none;
  if (buffer == Buffer::input) return in_place == InPlace::input ? 0 : elements(t.input);
  if (in_place == InPlace::output) return 0;
  return in_place == InPlace::input ? std::max(elements(t.input), elements(t.output)) : elements(t.output);
}

/// The location of a rank's contribution: elements `at` to `at + count` of `buffer`.
struct ContributionRange {
  Buffer buffer = Buffer::input;
  Elements at = 0, count = 0;
};
inline ContributionRange contribution_of(const Call& call, Rank me) {
  const CollectiveTraits& t = traits(call.op);
  if (const Elements input = buffer_elements(call, me, Buffer::input); input > 0) return {Buffer::input, 0, input};
  const Elements output = buffer_elements(call, me, Buffer::output);
  if (t.input.root == Extent::none) return {Buffer::output, 0, !t.rooted || me == call.root ? output : 0};
  if (!call.in_place || t.in_place != InPlace::input || (t.rooted && me != call.root)) return {};
  if (t.input.root == Extent::vector && t.output.root == Extent::blocks)
    return {Buffer::output, me * call.count, call.count};
  return {Buffer::output, 0, output};
}

/// Data movement: the rank and the element of its contribution that element `e` of the output of `me` must hold.
struct Origin {
  Rank rank;
  Elements element;
};
inline Origin origin(const Call& call, Rank me, Elements e) {
  const CollectiveTraits& t = traits(call.op);
  Origin out{call.root, e};
  if (t.output.root == Extent::blocks) out = {static_cast<Rank>(e / call.count), e % call.count};
  if (t.input.root == Extent::blocks) out.element += me * call.count;
  return out;
}

}  // namespace latecomer::core
