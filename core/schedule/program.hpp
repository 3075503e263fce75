// SPDX-License-Identifier: BSD-3-Clause
// One rank's schedule as a list of operations. The executor compiles this list, and the verifier reads it.
#pragma once

#include <vector>

#include "core/schedule/schedule.hpp"

namespace latecomer::core {

struct RankProgram {
  std::vector<Operation> ops;
  Elements scratch = 0;  ///< size of the scratch buffer
};

/// Generates a schedule to its end.
RankProgram materialize(Schedule schedule);

}  // namespace latecomer::core
