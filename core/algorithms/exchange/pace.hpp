// SPDX-License-Identifier: BSD-3-Clause
// The pace of a plan: the length of a slot, the time of a message in slots, sends under way, and the number of segments
// that follows from them.
#pragma once

#include "core/algorithms/algorithm.hpp"
#include "core/network/network.hpp"

namespace latecomer::core::exchange {

/// Sends of a rank that may be under way at a time.
inline constexpr int kMostSends = 4;

/// A landing counts from the slot that has begun at most so many slots before. Waiting for the next slot cost more: hdr
/// with overhead, 1 MiB, one late: 48 ranks 1.40 against 1.34 of the bound, 200 ranks 1.48 against 1.43.
inline constexpr double kLate = 0.25;

/// Every rank begins at most one message each way per slot.
struct Pace {
  Nanoseconds slot;
  double hop;  ///< slots from the beginning of a message until its receiver can pass it on
  int sends;   ///< messages under way at a time that keep a port busy
};
Pace pace_of(Bytes segment, const Network& network);

/// Copies of a segment from which on a rank that gets it has no time to pass it on before every rank has it.
double leaves_from(double hop, int ranks);

/// The number of segments of a vector. Many, so that a final segment spreads while others are on their way. Not so many
/// that the costs of messages, or of planning, outweigh this. At least `owners` if `most` and `count` allow it.
int segments_for(Elements count, Bytes element_bytes, int ranks, int owners, const Network& network,
                 int most = kChannels);
/// The same for a call: every rank owns segments of a reduction, the root alone those of a broadcast.
int segments_for(const Call& call, const Network& network, int most = kChannels);

}  // namespace latecomer::core::exchange
