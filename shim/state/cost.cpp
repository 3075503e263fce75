// SPDX-License-Identifier: BSD-3-Clause
// Keeps what latecomer takes within the policy's budget: which epochs are logged follows from their price.
#include "shim/state/cost.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"

namespace latecomer::shim {

constinit Spent spent;
constinit thread_local bool Spending::inside_ = false;

namespace {

/// The part of the budget for logs. The rest is for snapshots and causes, which have limits of their own, and for
/// epochs that become longer or shorter.
constexpr double kForLogs = 0.8;
/// Logs may take in advance what the budget allows them in so much time: the first calls are all logged, and so are
/// those after a pause. Derived: at 1% and 200 ns per call, 12,500 calls.
constexpr double kInAdvance = 250e6;
/// How often the share of the time that was really taken corrects the price.
constexpr Nanoseconds kPeriod = 100'000'000;

struct Pricing {
  Nanoseconds seen = 0;           ///< Spent::of_logs() at the last logged epoch
  double epoch = 0;               ///< recent mean cost of a logged epoch, nanoseconds
  double share = 0;               ///< of the time, that logs may take
  Nanoseconds from = 0, had = 0;  ///< begin of the period, and what had been taken then
  /// What logs may take at once, nanoseconds; when that was counted; and what had been taken then.
  double credit = 0;
  Nanoseconds counted = 0, taken = 0;
};
Pricing pricing;  // under the mutex, as several threads may end epochs
std::mutex mutex;

}  // namespace

void count_logged_epoch() {
  const std::lock_guard lock(mutex);
  const Nanoseconds all = spent.of_logs();
  const auto cost = static_cast<double>(all - pricing.seen);
  pricing.seen = all;
  pricing.epoch = pricing.epoch == 0 ? cost : 0.75 * pricing.epoch + 0.25 * cost;
}

Nanoseconds price_of_log() {
  const std::optional<double>& budget = job_rules().policy.budget;
  if (!budget) return 0;
  const std::lock_guard lock(mutex);
  // Samples of the code have a limit of their own.
  const Nanoseconds all = spent.in_run() - spent.of(profiles::CostOf::samples), at = now();
  const double most = kInAdvance * *budget;
  const double earned = pricing.counted == 0 ? most : kForLogs * *budget * static_cast<double>(at - pricing.counted);
  // One long piece of work, such as a snapshot, leaves no debt that lasts: the price keeps the mean.
  pricing.credit = std::max(-most, std::min(pricing.credit + earned, most) - static_cast<double>(all - pricing.taken));
  pricing.counted = at;
  pricing.taken = all;
  if (pricing.credit > 0) {
    pricing.from = 0;  // what the credit pays says nothing about the price
    return 0;
  }
  if (pricing.from == 0) {
    pricing.share = kForLogs * *budget;
    pricing.from = at;
    pricing.had = all;
  } else if (at - pricing.from > kPeriod) {
    const double taken = static_cast<double>(all - pricing.had) / static_cast<double>(at - pricing.from);
    pricing.share = std::clamp(pricing.share * (taken > *budget              ? 0.7
                                                : taken < kForLogs * *budget ? 1.2
                                                                             : 1.0),
                               0.01 * *budget, kForLogs * *budget);
    pricing.from = at;
    pricing.had = all;
  }
  return static_cast<Nanoseconds>(std::min(pricing.epoch / std::max(pricing.share, 1e-9), 1e15));
}

}  // namespace latecomer::shim
