// SPDX-License-Identifier: BSD-3-Clause
// The entry points of MPI's blocking calls that are no collectives, and of those that start a message. They add up
// their time and note for whom it waits, without call sites.
#include "shim/front/waiting_calls.def"

#include "shim/causes/usage.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/guard.hpp"
#include "shim/mpi/level.hpp"
#include "shim/state/job.hpp"

namespace latecomer::shim {

// What `whom` means before and after the call. A receive from any rank needs a status.
#define BEFORE_to
#define BEFORE_unknown
#define BEFORE_from \
  MPI_Status own;   \
  if (mpi_time.watched && from == MPI_ANY_SOURCE && status == MPI_STATUS_IGNORE) status = &own;
#define AFTER_to                                                                            \
  if (const Nanoseconds waited = timed.end(); waited > 0 && rc == MPI_SUCCESS) [[unlikely]] \
    waited_for(comm, to, waited);
#define AFTER_from                                                                          \
  if (const Nanoseconds waited = timed.end(); waited > 0 && rc == MPI_SUCCESS) [[unlikely]] \
    waited_for(comm, from == MPI_ANY_SOURCE ? status->MPI_SOURCE : from, waited);
#define AFTER_unknown

#define TIMED(time, arguments, whom)                                                                  \
  {                                                                                                   \
    TimedCall timed(mpi_time.time, timing.load(std::memory_order_relaxed) && Guard::program_calls()); \
    const FileCall file_call(&mpi_time.time == &mpi_time.io);                                         \
    BEFORE_##whom const int rc = NEXT arguments;                                                      \
    AFTER_##whom return rc;                                                                           \
  }
#define PLAIN(Name, time, parameters, arguments, whom) \
  LATECOMER_LEVELS(int, MPI_##Name, parameters, arguments, TIMED(time, arguments, whom))
#define LARGE(Name, time, parameters, arguments, whom) \
  LATECOMER_ENTRY(int, MPI_##Name##_c, parameters) {   \
    const auto NEXT = next::MPI_##Name##_c;            \
    TIMED(time, arguments, whom)                       \
  }

LATECOMER_COUNTED_CALLS(PLAIN, int)
LATECOMER_COUNTED_CALLS(LARGE, MPI_Count)
LATECOMER_UNCOUNTED_CALLS(PLAIN)

#define STARTS(arguments, peer, receives, persistent)                    \
  {                                                                      \
    keep_on_disk_sometimes();                                            \
    const int rc = NEXT arguments;                                       \
    if (mpi_time.watched && Guard::program_calls() && rc == MPI_SUCCESS) \
      note_started(*request, comm, peer, receives, persistent);          \
    return rc;                                                           \
  }
#define STARTS_PLAIN(Name, parameters, arguments, peer, receives, persistent) \
  LATECOMER_LEVELS(int, MPI_##Name, parameters, arguments, STARTS(arguments, peer, receives, persistent))
#define STARTS_LARGE(Name, parameters, arguments, peer, receives, persistent) \
  LATECOMER_ENTRY(int, MPI_##Name##_c, parameters) {                          \
    const auto NEXT = next::MPI_##Name##_c;                                   \
    STARTS(arguments, peer, receives, persistent)                             \
  }

LATECOMER_STARTS(STARTS_PLAIN, int)
LATECOMER_STARTS(STARTS_LARGE, MPI_Count)

}  // namespace latecomer::shim
