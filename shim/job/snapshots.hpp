// SPDX-License-Identifier: BSD-3-Clause
// Snapshots of the contribution on the disk.
#pragma once

#include "shim/state/shared.hpp"

namespace latecomer::shim {

/// Call this function when the job has started. From then on, MPI calls write snapshots.
void begin_snapshots();

/// Writes a snapshot with live logs.
bool write_snapshot(const JobLock& lock, bool finished);

/// Before MPI_Abort, which may come from a signal handler that interrupted anything: malloc, this library, or another
/// thread's snapshot. Ends observation, and says in the last snapshot that the process aborted. The calls since then
/// are lost. Async-signal-safe, without memory and locks (Spool::note_abort).
void before_abort() noexcept;

}  // namespace latecomer::shim
