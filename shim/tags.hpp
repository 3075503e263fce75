// SPDX-License-Identifier: BSD-3-Clause
// Tags on the private communicator.
#pragma once

namespace latecomer::shim {

/// A context per communicator of the program, and in it a channel per
/// message of a schedule. 4000..4095 are ours.
inline constexpr int kTagsPerContext = 4096;
inline constexpr int kContexts = 2048;  // as many as MPICH has communicators
enum ReservedChannel {
  kLogChannel = 4001,
  kPlanChannel = 4002,
  kSelfChannel = 4003,
  kFinalChannel = 4004,
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
