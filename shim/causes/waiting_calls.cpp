// SPDX-License-Identifier: BSD-3-Clause
// The entry points of MPI's blocking calls that are no collectives. They add up their time, without call sites.
#include "shim/causes/waiting_calls.def"

#include "shim/causes/usage.hpp"
#include "shim/entry.hpp"
#include "shim/guard.hpp"
#include "shim/state/job.hpp"

namespace latecomer::shim {

#define TIMED(symbol, time, parameters, arguments)                                           \
  LATECOMER_ENTRY(int, symbol, parameters) {                                                 \
    const TimedCall timed(mpi_time.time, timing.load(std::memory_order_relaxed) && !inside); \
    return next::symbol arguments;                                                           \
  }
#define PLAIN(Name, time, parameters, arguments) TIMED(MPI_##Name, time, parameters, arguments)
#define LARGE(Name, time, parameters, arguments) TIMED(MPI_##Name##_c, time, parameters, arguments)

LATECOMER_COUNTED_CALLS(PLAIN, int)
LATECOMER_COUNTED_CALLS(LARGE, MPI_Count)
LATECOMER_UNCOUNTED_CALLS(PLAIN)

}  // namespace latecomer::shim
