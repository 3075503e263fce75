// SPDX-License-Identifier: BSD-3-Clause
// Keeps the present state of this process in shared memory, for `latecomer who` (profiles/record/live.hpp).
#pragma once

#include <string>

#include "profiles/record/live.hpp"
#include "profiles/record/record.hpp"

namespace latecomer::shim {

/// The state of this process: in shared memory, or without that in a line that no command reads.
extern constinit profiles::LiveLine* live;
extern constinit profiles::LiveMessage* live_message;

/// The process is inside a collective on the communicator that the line names. `since`: 0 if unknown.
inline void live_enter(std::uint64_t n, std::uint64_t site, core::Bytes bytes, core::Rank root, core::Collective op,
                       core::Nanoseconds since) {
  constexpr auto plain = std::memory_order_relaxed;
  live->n.store(n, plain);
  live->site.store(site, plain);
  live->bytes.store(bytes, plain);
  live->root.store(root, plain);
  live->op.store(static_cast<std::uint8_t>(op), plain);
  live->since.store(since, plain);
  live->inside.store(1, std::memory_order_release);
}
/// The process enters a blocking call that is no collective. LiveLine::message says since when.
inline void live_enter_message(const profiles::TimedKey& at) {
  constexpr auto plain = std::memory_order_relaxed;
  live_message->site.store(at.site, plain);
  live_message->call.store(at.call, plain);
  live_message->peer.store(-1, plain);
  live_message->tag.store(-1, plain);
}
/// It waits for a message of that rank of MPI_COMM_WORLD.
inline void live_await(core::Rank peer, int tag = -1) {
  live_message->peer.store(peer, std::memory_order_relaxed);
  live_message->tag.store(tag, std::memory_order_relaxed);
}
inline void live_leave() { live->inside.store(0, std::memory_order_relaxed); }

/// Makes the file of this process. `sweeps`: removes those of processes that ended more than a day ago. Without shared
/// memory nothing happens.
void live_start(int rank, int ranks, std::uint64_t job, const std::string& host, const std::string& output,
                bool sweeps);
/// Adds the frames of new sites.
void live_frames(const profiles::Frame& frame);
/// Removes the file.
void live_stop();

}  // namespace latecomer::shim
