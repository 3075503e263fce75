// SPDX-License-Identifier: BSD-3-Clause
// The learner of a communicator's leader: the period of the sequence of calls, a forecast of the arrival pattern per
// slot, and an algorithm per slot. The rules of the policy decide, or with `auto` the model and then measurements. Only
// the leader learns. The other ranks get its decisions as the bytes of a plan. No MPI, no clock.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/learning/epoch_lengths.hpp"
#include "core/learning/explain.hpp"
#include "core/learning/slot_modeller.hpp"
#include "core/learning/slot_table.hpp"

namespace latecomer::core {

class Learner {
 public:
  /// policy must outlive the learner. `memory`: bytes that slots may take. Derived: a slot takes 1.9 KiB and 192 bytes
  /// per rank (default window). So 16 MiB hold the most slots, 512, up to 160 ranks, and 84 at 1,024 ranks. Calls
  /// without a slot are not learned.
  /// `hosts`: as in Parameters.
  Learner(const Policy& policy, int ranks, SiteMatch site_matches, std::vector<int> hosts = {},
          std::size_t memory = 16 << 20);
  Learner(const Learner&) = delete;  // its parts refer to each other
  Learner& operator=(const Learner&) = delete;

  /// Registers the time of the communicator's first call at the leader. Without it, the first announcement cannot tell
  /// how long calls take.
  void note_first_call(Nanoseconds now) { epochs_.note_first_call(now); }
  /// Registers a call. Calls come in ascending order of n. Gaps (lost logs) are allowed.
  void record_call(const CallSeen& call);

  /// The announcement for the boundary at call n. `dropped`: the ranks have dropped the plan in force. `now`: the
  /// leader's clock, from any origin. `hurried`: decide nothing now, and keep the announcement before.
  Announcement make_announcement(std::uint64_t n, bool dropped, Nanoseconds now, bool hurried = false);
  /// Whether the last announcement has run the model. The caller limits the time of the model separately.
  bool has_modelled() const { return modelled_messages() > 0; }
  /// Number of messages that the last announcement modelled and planned.
  std::int64_t modelled_messages() const { return modeller_.modelled_messages(); }
  /// Registers that the last announcement comes into force at call n.
  void put_in_force(std::uint64_t n);
  /// Registers how long ranks have waited for the leader at a boundary, in the mean over all ranks.
  void add_wait(Nanoseconds mean) { epochs_.add_wait(mean); }
  /// Registers the results of an earlier run: the winners of its call sites, and their plan, which is in force from the
  /// first call on.
  void remember_run(SlotTable::SiteWinner winner, const Plan& plan) {
    table_.remember_run(std::move(winner));
    announced_ = before_ = plan;
  }

  /// Allows plans for which ranks exchange a pattern for a single call (latecomer_edge).
  void allow_edges() { terms_.edges = true; }

  /// Number of calls of the period; 0: no period is known.
  std::uint64_t period() const { return table_.period(); }
  std::vector<SlotReport> reports() const;
  /// The results for a later run: the plan at the end, with the winners of trials in place of the trials. If the
  /// verdict of a trial is open, the earlier winner serves the slot, else native. Runs no model.
  struct Outcome {
    Plan plan;
    bool says_anything = false;       ///< the plan differs from the decisions that every rank takes without a plan
    std::vector<SlotReport> reports;  ///< with the verdicts of trials
    std::vector<Learned> learned;     ///< winners of `auto`, those of the earlier run included
  };
  Outcome outcome() const;

 private:
  LearningTerms terms_;
  SlotTable table_;
  SlotModeller modeller_;
  EpochLengths epochs_;
  Plan announced_;
  Plan before_;                  ///< the plan of an earlier run
  std::uint64_t looked_at_ = 0;  ///< `table_.next()` at the last announcement
  bool quiet_ = false;           ///< at the last announcement, all slots were quiet
  bool divergent_ = false;       ///< in some call, ranks came from different call sites
};

}  // namespace latecomer::core
