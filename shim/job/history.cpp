// SPDX-License-Identifier: BSD-3-Clause
// Shares the plan and the patterns of an earlier run.
#include "shim/job/parts.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {

void share_history(Job& j) {
  std::vector<char> bytes;
  if (j.rank == 0) {
    auto read = profiles::read_history(j.policy.history, j.size);
    if (read) j.history = std::move(*read);
    else warn("%s", read.error().c_str());
    bytes = j.history.plan.serialize();
  }
  share(j, bytes);
  if (j.rank != 0) core::Plan::deserialize(bytes, j.size, j.history.plan);
}

}  // namespace latecomer::shim
