// SPDX-License-Identifier: BSD-3-Clause
// The plan of a late exchange: an allreduce, a reduce or a broadcast in segments, message by message, for known arrival
// times. Owners, ranks that arrive early enough, add up the contributions to their segments. A final segment spreads
// through every free port, the segment with the fewest copies first. The same problem gives the same plan on every
// rank. Source: docs/results/late_exchange.md.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/algorithms/algorithm.hpp"
#include "core/network/network.hpp"

namespace latecomer::core::exchange {

struct Problem {
  int segments = 1;
  Elements count = 0;       ///< of the vector
  Bytes element_bytes = 1;  ///< of one element
  Network network;
  std::vector<Nanoseconds> arrivals;  ///< [ranks], the first is 0
  /// Ranks that own segments: segment j belongs to the j-th, round and round. Each once; empty for a broadcast; never
  /// the sink.
  std::vector<Rank> owners;
  Rank source = -1;      ///< root of a broadcast; -1: a reduction
  Rank sink = -1;        ///< root of a reduce; -1: an allreduce
  bool ordered = false;  ///< OrderedNode's tree adds the contributions
  int ranks() const { return static_cast<int>(arrivals.size()); }
  Bytes bytes(int j) const { return part_of(count, segments, j).count * element_bytes; }
  Bytes segment_bytes() const { return largest_part(count, segments) * element_bytes; }
  /// Time of the vector on a port.
  Nanoseconds vector_ns() const {
    return static_cast<Nanoseconds>(static_cast<double>(count * element_bytes) * network.beta_ns_per_byte);
  }
};

/// A message. Messages come in the order of their starts.
struct Transfer {
  Nanoseconds start = 0;   ///< in slots
  Nanoseconds landed = 0;  ///< in slots: the receiver has the segment, and has added it
  Rank src = -1, dst = -1;
  int segment = -1;
  bool final = false;      ///< the segment's result, to be stored; false: a contribution, to be added
  bool held_back = false;  ///< the receive waits for all that has landed before `start`, because the sender is early
};
using Emit = std::function<void(const Transfer&)>;

struct Outcome {
  Nanoseconds end = 0;  ///< the last rank has all of the result
  bool kept = true;     ///< messages keep to the plan; false: some could only leave out of turn
};
Outcome plan(const Problem& problem, const Emit& emit);

}  // namespace latecomer::core::exchange
