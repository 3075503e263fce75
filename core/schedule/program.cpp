// SPDX-License-Identifier: BSD-3-Clause
// From a generator to a list.
#include "core/schedule/program.hpp"

namespace latecomer::core {

RankProgram materialize(Schedule schedule) {
  RankProgram program;
  while (const Operation* op = schedule.next()) program.ops.push_back(*op);
  program.scratch = schedule.scratch_elements();
  return program;
}

}  // namespace latecomer::core
