// SPDX-License-Identifier: BSD-3-Clause
// The head of an announcement, and a wait at a boundary.
#pragma once

#include <cstdint>

#include "shim/exchange/exchange.hpp"
#include "shim/patience.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/rules.hpp"

namespace latecomer::shim {
namespace exchange {

/// Records that are kept until the end of the job. Derived: 65,536 records of 48 bytes take 3 MiB per rank. Beyond, a
/// log is dropped: its calls have no arrival patterns, and a warning at the end gives their number.
inline constexpr std::size_t kRetainedRecords = 1 << 16;

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

}  // namespace exchange
}  // namespace latecomer::shim
