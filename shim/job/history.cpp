// SPDX-License-Identifier: BSD-3-Clause
// Shares the plan and the patterns of an earlier run.
#include "shim/guard.hpp"
#include "shim/job/parts.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {

void share_history(Job& j) {
  std::vector<char> bytes;
  if (j.rank == 0) {
    // The other ranks wait for the bytes, whatever the file does to this rank.
    const Outcome done = attempt([&] {
      auto read = profiles::read_history(j.policy.history, j.size);
      if (read) j.history = std::move(*read);
      else warn("%s", read.error().c_str());
      bytes = j.history.plan.serialize();
    });
    if (!done) warn("history: '%s': %s", j.policy.history.c_str(), done.why), j.history = {}, bytes.clear();
  }
  share(j, bytes);
  if (j.rank != 0) core::Plan::deserialize(bytes, j.size, j.history.plan);
}

}  // namespace latecomer::shim
