// SPDX-License-Identifier: BSD-3-Clause
// The time that latecomer takes from this process, by cause. It times its own work where it does more than count a
// call.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiles/record/cost.hpp"
#include "shim/clock.hpp"

namespace latecomer::shim {

/// Add from any thread.
class Spent {
 public:
  void add(profiles::CostOf cause, Nanoseconds time) {
    of_[static_cast<std::size_t>(cause)].fetch_add(time, std::memory_order_relaxed);
  }
  Nanoseconds of(profiles::CostOf cause) const {
    return of_[static_cast<std::size_t>(cause)].load(std::memory_order_relaxed);
  }
  Nanoseconds of_logs() const { return of(profiles::CostOf::log) + of(profiles::CostOf::exchange); }
  Nanoseconds all() const { return of(profiles::CostOf::start) + in_run(); }
  /// Beyond the bare count, and without the start.
  Nanoseconds in_run() const {
    return of_logs() + of(profiles::CostOf::files) + of(profiles::CostOf::causes) + of(profiles::CostOf::messages) +
           of(profiles::CostOf::samples);
  }

 private:
  std::array<std::atomic<Nanoseconds>, profiles::kCosts> of_{};
};
extern constinit Spent spent;

/// Adds the time of its scope. A scope within another one adds nothing.
class Spending {
 public:
  explicit Spending(profiles::CostOf cause) : cause_(cause), outer_(!inside_), begin_(outer_ ? now() : 0) {
    inside_ = true;
  }
  Spending(const Spending&) = delete;
  Spending& operator=(const Spending&) = delete;
  ~Spending() {
    if (!outer_) return;
    inside_ = false;
    spent.add(cause_, now() - begin_);
  }

 private:
  static constinit thread_local bool inside_;
  profiles::CostOf cause_;
  bool outer_;
  Nanoseconds begin_;
};

/// The calls that are timed stand for all logged ones: one in so many, by its number. Derived: two readings of the
/// clock then take 1 ns of a call.
inline constexpr std::uint64_t kTimedCalls = 16;
inline bool is_timed_call(std::uint64_t n) { return n % kTimedCalls == 9; }

/// The time of the run that pays for the log of an epoch, within the budget; 0 while every epoch is logged: the first
/// ones, and those after a pause.
Nanoseconds price_of_log();
/// An epoch has been logged.
void count_logged_epoch();

}  // namespace latecomer::shim
