// SPDX-License-Identifier: BSD-3-Clause
// How messages move while a rank does not wait for them. Open MPI has a list of functions that every test and every
// wait calls. MPICH needs none: it polls generalized requests (MPIX_Grequest_start).
#pragma once

#include <dlfcn.h>

namespace latecomer::shim {

/// A function of Open MPI's progress. Returns the number of events, 0 for none. Must not wait. MPI may call it from
/// within our own calls of MPI.
using Poll = int (*)();

/// A symbol of libopen-pal: a program links libmpi only.
inline void* find_in_process(const char* symbol) { return dlsym(RTLD_DEFAULT, symbol); }

/// Whether each wait inside MPI gives the core away. Open MPI does that where its launcher saw more ranks than cores,
/// or as its parameter mpi_yield_when_idle says.
inline bool waits_yield(void* (*find)(const char*) = find_in_process) {
  const auto yields = static_cast<const bool*>(find("opal_progress_yield_when_idle"));
  return yields && *yields;
}

#ifdef OPEN_MPI

/// Data of ranges up to this size travel in their envelope, which the receiver takes at once. Measured, 2 ranks in
/// shared memory without single copy: the receive of 4,096 bytes waits for the sender's next call of MPI, that of 4,000
/// does not. The limit is btl_vader_eager_limit, less a header.
inline constexpr long long kShortMessage = 3584;

/// Whether a blocking send of a short message may wait until its receiver calls MPI. Measured, 2 ranks in shared
/// memory: a send of 512 B took 20 ms because the receiver slept that long, of 8 B 0.2 us.
inline constexpr bool kSendWaits = true;

/// Returns false if this build of Open MPI has no such function.
inline bool change_progress(const char* function, Poll poll) {
  using Change = int (*)(Poll);
  const auto change = reinterpret_cast<Change>(find_in_process(function));
  return change && change(poll) == 0;
}
inline bool start_polling(Poll poll) { return change_progress("opal_progress_register", poll); }
inline void stop_polling(Poll poll) { change_progress("opal_progress_unregister", poll); }

#else

/// Data of ranges up to this size travel in their envelope. Measured, 2 ranks in shared memory, MPICH 4.0.2 over UCX: a
/// message of 8 KiB takes 1.5 us, one of 16 KiB 4.1 us. The copy of 8 KiB takes 0.03 us, a second message at least 0.3
/// us.
inline constexpr long long kShortMessage = 8192;

inline constexpr bool kSendWaits = false;

#endif

}  // namespace latecomer::shim
