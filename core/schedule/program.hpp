// SPDX-License-Identifier: BSD-3-Clause
// One rank's schedule as a list: what the executor compiles and the verifier reads.
#pragma once

#include <vector>

#include "core/schedule/schedule.hpp"

namespace latecomer::core {

struct RankProgram {
  std::vector<Operation> ops;
  Elements scratch = 0;
};

/// Generates a schedule to its end.
RankProgram materialize(Schedule schedule);

}  // namespace latecomer::core
