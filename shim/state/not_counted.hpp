// SPDX-License-Identifier: BSD-3-Clause
// The calls that latecomer did not count or analyse. Each place that declines to do so adds its calls here.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "profiles/record/not_counted.hpp"

namespace latecomer::shim {

/// Add from any thread.
class Declined {
 public:
  void add(profiles::Uncounted kind, std::uint64_t calls = 1) {
    of_[static_cast<std::size_t>(kind)].fetch_add(calls, std::memory_order_relaxed);
  }
  std::uint64_t of(profiles::Uncounted kind) const {
    return of_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, std::size(profiles::kUncounted)> of_{};
};
inline constinit Declined declined;

}  // namespace latecomer::shim
