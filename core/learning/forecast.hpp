// SPDX-License-Identifier: BSD-3-Clause
// Decides whether an algorithm can use the arrivals of a slot.
#pragma once

#include "core/learning/slot.hpp"

namespace latecomer::core {

/// Nanoseconds to find, start and poll a schedule of latecomer. With a smaller value, a dispatch costs more than some
/// algorithms gain. With a larger value, no algorithm is tried for short calls.
inline constexpr double kDispatch = 2'000;

void record_arrivals(SlotArrivals& arrivals, const CallSeen& call);

/// The least saving that pays, in nanoseconds: the cost of a dispatch, and the least gain worth trying. An algorithm
/// can save at most the imbalance, because it works while early ranks wait.
double least_saving(const Slot& slot);
/// Whether the ranks arrive nearly together, in the mean of the slot's calls, so that a forecast could save no time.
bool arrive_together(const Slot& slot);
/// Whether the schedules of this slot ignore arrivals, because the forecast is uncertain or the imbalance is too small.
bool ignores_arrivals(const Slot& slot);
/// The reason why no algorithm can gain from the arrivals of the slot.
Reason reason_to_ignore_arrivals(const Slot& slot);

}  // namespace latecomer::core
