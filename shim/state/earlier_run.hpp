// SPDX-License-Identifier: BSD-3-Clause
// The results of an earlier run that this run uses (policy key `learn`).
#pragma once

#include <cstdint>

#include "profiles/format/history.hpp"

namespace latecomer::shim {

struct EarlierRun {
  profiles::History history;  ///< whole on rank 0; on the others the plan only
  std::uint64_t calls = 0;    ///< calls on MPI_COMM_WORLD that its decisions served
};

extern EarlierRun* earlier_run_instance __attribute__((visibility("hidden")));
inline EarlierRun& earlier_run() { return *earlier_run_instance; }

}  // namespace latecomer::shim
