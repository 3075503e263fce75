// SPDX-License-Identifier: BSD-3-Clause
// A wait of the ranks for each other at a boundary.
#pragma once

#include "shim/clock.hpp"
#include "shim/patience.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/rules.hpp"

namespace latecomer::shim {

/// A wait for other ranks at a boundary.
class BoundaryWait {
 public:
  /// `rooted`: the communicator has rooted calls only. A program that relies on gathers not to synchronize would hang
  /// in this wait, so it warns once after 10 s.
  BoundaryWait(const CommState& state, bool rooted) : state_(state), silent_(!rooted) {}
  /// Waits a little.
  void again();
  Nanoseconds so_far() const { return now() - begin_; }

 private:
  const CommState& state_;
  Patience patience_{job_rules().courteous};
  Nanoseconds begin_ = now();
  unsigned turns_ = 0;
  bool silent_;
};

}  // namespace latecomer::shim
