// SPDX-License-Identifier: BSD-3-Clause
// Waits at a boundary, and warns if the wait becomes long.
#include "shim/exchange/boundary_wait.hpp"

#include "shim/log.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

void BoundaryWait::again() {
  // A shorter time would warn in programs whose leader only computes for long. A longer one would leave the user of a
  // hanging program without a hint.
  constexpr Nanoseconds kLong = 10'000'000'000;
  patience_.wait();
  if (silent_ || ++turns_ % 64 != 0 || now() - begin_ < kLong) return;
  silent_ = true;
  warn(
      "rank %d has waited 10 s before call %llu of a communicator of %d, a boundary at which plans for rooted "
      "collectives are agreed on, for rank %d (rank 0 there) or another that is not there yet; \"rooted_waits\": false "
      "in the policy never waits",
      job_world().rank, static_cast<unsigned long long>(state_.member.sequence().next_number() - 1), state_.size,
      state_.world[0]);
}

}  // namespace latecomer::shim
