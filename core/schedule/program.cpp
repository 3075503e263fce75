// SPDX-License-Identifier: BSD-3-Clause
// Runs a schedule generator to its end and collects the operations.
#include "core/schedule/program.hpp"

namespace latecomer::core {

RankProgram materialize(Schedule schedule) {
  RankProgram program;
  while (const Operation* op = schedule.next()) program.ops.push_back(*op);
  program.scratch = schedule.scratch_elements();
  return program;
}

}  // namespace latecomer::core
