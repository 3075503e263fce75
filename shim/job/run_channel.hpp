// SPDX-License-Identifier: BSD-3-Clause
// The roll call through `latecomer run`.
#pragma once

#include <string>

#include "shim/state/job.hpp"

namespace latecomer::shim {

struct RunAnswer {
  enum { silent, no, yes } verdict = silent;  ///< silent: it offers no channel, or does not answer; others may hear no
  std::string why;                            ///< of no, if this rank says it
};
/// Whether `latecomer run` has started the job and offers its channel.
bool run_offers_roll_call();
/// Asks `latecomer run`, which has started the job, whether every rank of MPI_COMM_WORLD asks it, too.
RunAnswer ask_run(int rank, int size, Nanoseconds deadline);

}  // namespace latecomer::shim
