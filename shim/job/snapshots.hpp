// SPDX-License-Identifier: BSD-3-Clause
// Snapshots of the contribution on the disk.
#pragma once

#include "shim/state/job.hpp"

namespace latecomer::shim {

/// When the job has started: from now on, MPI calls write snapshots.
void begin_snapshots(Job& j);

/// Writes a snapshot with live logs. The caller holds the lock.
bool write_snapshot(Job& j, bool finished);

/// Before MPI_Abort, which may come from a signal handler that interrupted anything: malloc, this library, or another
/// thread's snapshot. Ends observation, and says in the last snapshot that the process aborted. The calls since then
/// are lost. Async-signal-safe, without memory and locks (Spool::note_abort).
void before_abort() noexcept;

}  // namespace latecomer::shim
