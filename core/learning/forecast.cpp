// SPDX-License-Identifier: BSD-3-Clause
// Compares the forecast and the imbalance of a slot with the time of its native calls.
#include "core/learning/forecast.hpp"

#include <algorithm>

namespace latecomer::core {
namespace {

/// Whether the imbalance of the forecast is too small to matter.
bool is_imbalance_slight(const Slot& slot) {
  return slot.native.enough() && static_cast<double>(slot.arrivals.forecast.spread) < least_saving(slot);
}

}  // namespace

void record_arrivals(SlotArrivals& arrivals, const CallSeen& call) {
  if (!call.offsets.empty()) arrivals.predictor.add_call(call.offsets);
  if (call.imbalance < 0) return;
  if (call.last >= 0) ++arrivals.came_last[static_cast<std::size_t>(call.last)];
  ++arrivals.seen;
  arrivals.imbalance += static_cast<double>(call.imbalance);
}

double least_saving(const Slot& slot) {
  return std::max(kDispatch, slot.native.enough() ? (1 - kWorthTrying) * slot.native.median_after() : 0);
}

bool arrive_together(const Slot& slot) {
  const SlotArrivals& a = slot.arrivals;
  return (a.seen ? a.imbalance / static_cast<double>(a.seen) : 0) < least_saving(slot);
}

bool ignores_arrivals(const Slot& slot) {
  return slot.arrivals.forecast.uncertain() || (!is_irregular(slot.signature.op) && is_imbalance_slight(slot));
}

Reason reason_to_ignore_arrivals(const Slot& slot) {
  return slot.arrivals.forecast.offsets.empty() && slot.arrivals.seen == 0 ? Reason::nothing_seen
         : !slot.arrivals.forecast.uncertain()                             ? Reason::slight
         : arrive_together(slot)                                           ? Reason::balanced
                                                                           : Reason::unforeseen;
}

}  // namespace latecomer::core
