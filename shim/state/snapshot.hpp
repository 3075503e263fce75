// SPDX-License-Identifier: BSD-3-Clause
// When the process writes its next snapshot, for all MPI calls. shim/job/snapshots.cpp writes it.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/clock.hpp"

namespace latecomer::shim {

/// From this time on (now(), not the job's common clock), the next MPI call of any kind writes a snapshot. INT64_MAX:
/// nothing is to be written.
extern constinit std::atomic<Nanoseconds> snapshot_due;

/// Writes the snapshot, unless another thread has just written it.
void write_due_snapshot() noexcept;

/// Call this function after a call that read the clock.
inline void keep_on_disk(Nanoseconds at) {
  if (at >= snapshot_due.load(std::memory_order_relaxed)) [[unlikely]]
    write_due_snapshot();
}

/// At the end of an epoch. A steady program must not allocate at a later snapshot, so this takes new frames, and the
/// first epoch ends with the first snapshot.
void prepare_snapshot();

}  // namespace latecomer::shim
