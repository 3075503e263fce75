// SPDX-License-Identifier: BSD-3-Clause
// The decision of a slot: the rules of the policy, or with `auto` candidates of the model, which rota.hpp compares.
#pragma once

#include <vector>

#include "core/learning/slot.hpp"
#include "core/learning/slot_modeller.hpp"

namespace latecomer::core {

/// Decides the algorithm of a slot from its forecast and its measurements.
void decide_slot(const LearningTerms& terms, SlotModeller& modeller, Slot& slot);
/// Marks the slots whose signature another site uses with other block sizes. Without a period, the site of the next
/// call is unknown, and one tree does not fit the sizes of both sites.
void mark_shared_sizes(const std::vector<Slot*>& slots, bool has_period);
/// Whether no algorithm serves this slot and more observations would not change that.
bool is_quiet(const Slot& slot);
/// Whether native's modelled time is close enough to its measured time to compare candidates with it.
bool model_fits(const Slot& slot, Objective objective);

}  // namespace latecomer::core
