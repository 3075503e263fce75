// SPDX-License-Identifier: BSD-3-Clause
// A function of ours that every test and every wait of Open MPI calls. MPICH needs none: it polls the generalized
// requests themselves (MPIX_Grequest_start). A program links libmpi only, so the two functions of libopen-pal are
// looked up.
#pragma once

#ifdef OPEN_MPI

#include <dlfcn.h>

namespace latecomer::shim {

/// Returns the number of events, 0 for none. Must not wait. MPI may call it from within our own calls of MPI.
using Poll = int (*)();

/// Returns false if this build of Open MPI has no such function.
inline bool change_progress(const char* function, Poll poll) {
  using Change = int (*)(Poll);
  const auto change = reinterpret_cast<Change>(dlsym(RTLD_DEFAULT, function));
  return change && change(poll) == 0;
}
inline bool start_polling(Poll poll) { return change_progress("opal_progress_register", poll); }
inline void stop_polling(Poll poll) { change_progress("opal_progress_unregister", poll); }

}  // namespace latecomer::shim

#endif
