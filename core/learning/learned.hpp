// SPDX-License-Identifier: BSD-3-Clause
// The winner of one call site, as a run stores it for later runs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/agreement/plan.hpp"

namespace latecomer::core {

struct Learned {
  std::uint64_t signature = 0;  ///< Signature::hash()
  std::uint64_t site = 0;       ///< key of the call site in this run
  int algorithm = -1, segments = 0;
  bool overlap = true;
  std::vector<Nanoseconds> pattern;                  ///< [ranks], the forecast under which it won; empty: flat
  std::vector<Bytes> sizes;                          ///< [ranks], of the blocks; empty: none
  double measured_ns = -1, native_measured_ns = -1;  ///< medians, in terms of the objective; -1: not known
  std::uint64_t calls = 0;                           ///< calls at the site
};

/// The plan of these winners by universal signature. Sites of one signature with different algorithms get no entry;
/// those with different patterns get none of the patterns.
Plan plan_of_learned(const std::vector<Learned>& learned);

}  // namespace latecomer::core
