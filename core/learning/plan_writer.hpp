// SPDX-License-Identifier: BSD-3-Clause
// The algorithms that serve the calls of slots, and the plan that says so.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/learning/slot_table.hpp"

namespace latecomer::core {

/// The algorithm that serves the calls of a slot under a plan, with its parameters.
struct ServedSlot {
  const Slot* slot;
  std::int32_t algorithm, segments;
  bool overlap;
  std::span<const Nanoseconds> pattern = {};  ///< empty: flat
  std::span<const Bytes> sizes = {};
  const Rota* rota = nullptr;  ///< nullptr: no rota runs
  int calls = 0, rounds = 0;   ///< calls and number of the rota
};

/// The decision of the slot, with its rota.
ServedSlot serve_decided(const Slot& slot);
/// The algorithm that a later run starts with. If the verdict of a trial is open, the earlier winner, else native.
/// `words`: the addition to the reason if it is not the decision of the slot.
ServedSlot serve_later_run(const LearningTerms& terms, const Slot& slot, const char*& words);

/// Writes the plan for the slots of a table.
class PlanWriter {
 public:
  PlanWriter(const LearningTerms& terms, const SlotTable& table) : terms_(terms), table_(table) {}
  /// Adds the entries of all slots: of the positions of the period, or of one signature each.
  void add_slots(const std::vector<ServedSlot>& all);
  /// Adds the entries of an earlier run's plan for calls that this run has not seen yet.
  void add_unseen(const Plan& before);

  Plan plan;
  bool says_anything = false;  ///< the plan differs from the decisions that every rank takes without a plan

 private:
  void add_slot(const ServedSlot& served);
  PlanEntry make_entry(const ServedSlot& served);
  PlanEntry make_turn(const ServedSlot& served, int algorithm, int segments);

  const LearningTerms& terms_;
  const SlotTable& table_;
};

}  // namespace latecomer::core
