// SPDX-License-Identifier: BSD-3-Clause
// Messages over the private communicator that nobody waits for. This file owns their buffers until MPI has sent them.
// It must not know what a message says.
#pragma once

#include <cstddef>

#include "core/base/types.hpp"

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;

/// Sends `head` and `data` as one message, without waiting. False: MPI has failed or, with `may_refuse`, too many
/// messages are under way already. Thread-safe.
bool post(Rank world, int tag, const void* head, std::size_t head_size, const void* data, std::size_t size,
          bool may_refuse);

/// Sends a few plain bytes without waiting; false if too much is under way already.
bool post_raw(Rank world, int tag, const void* data, std::size_t size);
template <typename T>
bool post_bytes(Rank world, int tag, const T& value) {
  return post_raw(world, tag, &value, sizeof value);
}

/// Frees buffers whose messages have left. Bounded work.
void sweep_outgoing();

/// At teardown: true if everything sent has left by the deadline.
bool drain_outgoing(Nanoseconds deadline);

}  // namespace latecomer::shim
