// SPDX-License-Identifier: BSD-3-Clause
// Tags on the private communicator.
#pragma once

namespace latecomer::shim {

/// A context belongs to a communicator of the program, and a channel of it to a message of a schedule. Derived: 4,000
/// channels for schedules (core::kChannels), and 96 for latecomer's other messages.
inline constexpr int kTagsPerContext = 4096;
/// Derived: MPICH 4.0.2 has 2,048 communicators per process. Beyond, a communicator stays native. The largest tag is
/// 8,388,607; MPICH over UCX allows 268,435,455.
inline constexpr int kContexts = 2048;
enum ReservedChannel {
  kMailChannel = 4001,
  kSelfChannel = 4003,
  kNeighbourChannel = 4004,
  kClockChannel = 4005,
  kPongChannel = 4006,
  kUpdateChannel = 4007,
  kCheckChannel = 4008,
  kNoticeChannel = 4009,
  kTreeChannel = 4010,
  kEdgeChannel = 4011
};
constexpr int tag_of(int context, int channel) { return context * kTagsPerContext + channel; }

}  // namespace latecomer::shim
