// SPDX-License-Identifier: BSD-3-Clause
// The plan of a late exchange: an allreduce, a reduce or a broadcast in segments, message by message, when arrival
// times are known beforehand. Owners, ranks that come early enough, take in everybody's contribution to their segments;
// what is final spreads by whatever ports are free, the segment that the fewest have first. Deterministic to the last
// tie. Source: ALGORITHMS 6; docs/late_exchange.md.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/algorithms/algorithm.hpp"
#include "core/network/network.hpp"

namespace latecomer::core::exchange {

/// What has landed by then, in slots, counts from the one that has begun: a rank is a little late in it. Waiting for
/// the next cost more (hdr with overhead, 1 MiB, one late: 48 ranks 1.40 and 1.34 of the bound, 200 ranks 1.48
/// and 1.43).
inline constexpr double kLate = 0.25;

struct Problem {
  int segments = 1;
  Elements count = 0;       ///< of the vector
  Bytes element_bytes = 1;  ///< of one
  Network network;
  std::span<const Nanoseconds> arrivals;  ///< [ranks], from 0 on
  Rank source = -1;                       ///< of a broadcast; -1: none, a reduction
  Rank sink = -1;                         ///< of a reduce; -1: an allreduce
  bool ordered = false;                   ///< contributions are added by OrderedNode's tree
  int collectors = 0;                     ///< of a segment; 0: as many as seem to suit
  int turn = 0;                           ///< whose turn it is first among the owners: changes nothing but ties
  double late = kLate;                    ///< in slots
  int ranks() const { return static_cast<int>(arrivals.size()); }
  /// About: every segment goes to its owner from everybody, unless it is a broadcast's, and comes to everybody, unless
  /// it is a reduce's.
  std::int64_t messages() const { return std::int64_t{source < 0 && sink < 0 ? 2 : 1} * ranks() * segments; }
  /// Of a segment, and of the largest.
  Bytes bytes(int j) const { return part_of(count, segments, j).count * element_bytes; }
  Bytes segment_bytes() const { return largest_part(count, segments) * element_bytes; }
  /// Time of the vector on a port.
  Nanoseconds vector_ns() const {
    return static_cast<Nanoseconds>(static_cast<double>(count * element_bytes) * network.beta_ns_per_byte);
  }
};

/// A message. Messages come in the order of their starts.
struct Transfer {
  Nanoseconds start = 0;
  Nanoseconds landed = 0;  ///< the receiver has it, and has added it
  Rank src = -1, dst = -1;
  int segment = -1;
  bool final = false;  ///< the segment's result, to be stored; otherwise a contribution, to be added (the sink's own is
                       ///< the last)
  bool held_back =
      false;  ///< its sender is ready long before: the receive waits for what has landed before `start`, as sends do
};
using Emit = std::function<void(const Transfer&)>;

/// The end of a plan that nobody waits for.
inline constexpr Nanoseconds kForever = INT64_MAX / 4;

struct Outcome {
  Nanoseconds end = 0;       ///< the last rank has all of the result; kForever if the plan was given up
  bool kept = true;          ///< messages keep to the plan; not where one could only go out of turn, but in a lull
  std::int64_t moments = 0;  ///< at which somebody was matched with somebody, or nobody was
};
/// Plans with these owners (of a broadcast: none; of a reduce: not the sink), of segment j the j-th, round and round:
/// ranks, each once, or more than there are ranks. Given up when it is clear that it ends after `until`.
Outcome plan(const Problem& problem, std::span<const Rank> owners, const Emit& emit, Nanoseconds until = kForever);

/// Messages that a rank sends at a time in a plan of this problem: as many as keep its port busy.
int in_flight(const Problem& problem);

/// How contributions to a segment come together.
struct Collecting {
  /// Ranks that take them in, the owner among them, each those of as many of the ranks; the others send the owner their
  /// sums. More than one where many come late together, but not all: with one, a segment of 1024 ranks, 256 of them
  /// late, would be final 256 messages after they came.
  int collectors = 1;
  /// Slots that are lost meanwhile: with all ranks late, or one, hardly any.
  double slots = 0;
  double idle() const { return slots * collectors; }
};
Collecting collecting(const Problem& problem, std::span<const Rank> owners);

/// Owners worth trying: everybody, and those who come a message, or half, all or twice the time of the vector on a
/// port, before the last; never the sink. Empty where there is nobody but the sink.
std::vector<std::vector<Rank>> owner_candidates(std::span<const Nanoseconds> arrivals, Nanoseconds vector_ns,
                                                Nanoseconds message_ns, Rank sink = -1);

/// Owners for ranks that come one by one within the time of the vector: each owns what it can take in from its arrival
/// on, until the end that this leads to, or `least_ns` after the last arrival. Empty where that is as much for nearly
/// all of them, or nothing.
std::vector<Rank> owners_by_time(std::span<const Nanoseconds> arrivals, Nanoseconds vector_ns, Nanoseconds least_ns);

/// Segments for a vector of so many elements: many, so that what is final spreads while the rest is still on its way;
/// not so many that a message's own costs, or the plan's, outweigh that; no fewer than `owners`, who take in
/// contributions to different ones, if there may be, and nearly a multiple, so that each has about as many. Never more
/// than `most`. `before`: slots that pass before the first segment is final.
int segments_for(Elements count, Bytes element_bytes, int ranks, int owners, const Network& network, double before = 0,
                 int most = kChannels);
/// That, and then others that should do nearly as well, the best first.
std::vector<int> segments_worth_trying(Elements count, Bytes element_bytes, int ranks, int owners,
                                       const Network& network, double before = 0, int most = kChannels);

}  // namespace latecomer::core::exchange
