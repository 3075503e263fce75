// SPDX-License-Identifier: BSD-3-Clause
// Keeps Open MPI's non-blocking file operations away from the engine's thread.
#pragma once

namespace latecomer::shim {

/// From now on, threads that call this_thread_serves() do not poll the program's file operations.
void keep_files_to_program();
/// The calling thread is the library's own.
void this_thread_serves();

}  // namespace latecomer::shim
