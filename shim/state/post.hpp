// SPDX-License-Identifier: BSD-3-Clause
// Messages over the private communicator whose sender does not wait. This file owns their buffers until MPI has sent
// them. It must not know the contents of a message.
#pragma once

#include <cstddef>

#include "core/base/types.hpp"

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;

/// Sends `head` and `data` as one message, without waiting. Returns false if MPI fails or, with `may_refuse`, if too
/// many messages are under way already. Thread-safe.
bool post(Rank world, int tag, const void* head, std::size_t head_size, const void* data, std::size_t size,
          bool may_refuse);

/// Sends a few plain bytes without waiting. Returns false if too many messages are under way already.
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
