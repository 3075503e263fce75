// SPDX-License-Identifier: BSD-3-Clause
// Tags on the private communicator: all of them. A channel is a tag in the context of MPI_COMM_WORLD, which is 0.
#pragma once

#include "core/schedule/schedule.hpp"

namespace latecomer::shim {

/// A context belongs to a communicator of the program, and a channel of it to a message of a schedule. Derived: 4,000
/// channels for schedules (core::kChannels), and 96 for latecomer's other messages.
inline constexpr int kTagsPerContext = 4096;
/// Derived: MPICH 4.0.2 has 2,048 communicators per process. Beyond, a communicator stays native. The largest tag is
/// 8,388,607; MPICH over UCX allows 268,435,455.
inline constexpr int kContexts = 2048;

/// The channels of latecomer's other messages. An addition goes before kChannelsEnd.
enum Channel : int {
  kMailChannel = core::kChannels,
  kSelfChannel,       ///< of a schedule, from a rank to itself
  kNeighbourChannel,  ///< the survey of hosts
  kPingChannel,       ///< clocks: a request, its answer, and an offset for the ranks below
  kPongChannel,
  kOffsetChannel,
  kCheckChannel,
  kNoticeChannel,
  kTreeChannel,
  kEdgeChannel,
  kMeasureRequestChannel,  ///< the measurement of the network: round trips
  kMeasureAnswerChannel,
  kMeasureEagerChannel,
  kMeasureAgreedChannel,
  kMeasureTrainBeginChannel,
  kMeasureTrainChannel,
  kMeasureTrainEndChannel,
  kMeasureMeetingChannel,
  kMeasureExchangeChannel,
  kMeasureTurnChannel,
  kChannelsEnd
};
static_assert(kChannelsEnd <= kTagsPerContext);
constexpr int tag_of(int context, int channel) { return context * kTagsPerContext + channel; }

}  // namespace latecomer::shim
