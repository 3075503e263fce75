// SPDX-License-Identifier: BSD-3-Clause
// Assigns calls to slots: finds the period of the sequence of calls, and records each call in its slot.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/learning/slot.hpp"

namespace latecomer::core {

class SlotTable {
 public:
  /// The winner of an earlier run at this site, or nullptr.
  using SiteWinner = std::function<const Learned*(std::uint64_t site, const Signature& signature)>;
  /// Number of recent calls in which the leader looks for a period. The period has at most half as many calls. Derived
  /// from memory: the history takes 16 KiB. With a longer period, plans go by the signatures of calls.
  static constexpr std::size_t kHistory = 1024;

  /// `terms` must outlive the table. `memory`: bytes that slots may take.
  SlotTable(const LearningTerms& terms, std::size_t memory);
  void remember_run(SiteWinner winner) { winner_of_ = std::move(winner); }
  void record_call(const CallSeen& call);
  /// Finds the longest stretch of latest calls that contains a period twice, unless a period is known.
  void find_period();

  /// Number of calls of the period; 0: no period is known.
  std::uint64_t period() const { return positions_.size(); }
  /// Call n is in the slot (n - first()) mod period().
  std::uint64_t first() const { return first_; }
  /// The number of the call after the latest recorded one.
  std::uint64_t next() const { return next_; }
  /// The positions of the period, or without a period one slot per signature and site.
  std::vector<Slot*> slots() const;
  /// Whether a call had this signature (Signature::hash()).
  bool has_signature(std::uint64_t hash) const;

 private:
  Slot* find_slot(const CallSeen& call);
  Slot* find_slot_of_site(const CallSeen& call, std::uint64_t hash, std::uint64_t key);
  void end_period();

  const LearningTerms& terms_;
  SiteWinner winner_of_;
  std::size_t most_slots_;
  std::map<std::uint64_t, std::unique_ptr<Slot>> by_key_;  ///< by signature and site, while no period is known
  std::vector<std::unique_ptr<Slot>> positions_;           ///< of the period; empty: no period
  std::uint64_t first_ = 0;
  std::vector<std::uint64_t> history_;  ///< key of the latest calls, oldest first
  std::uint64_t next_ = 0;
  struct {
    Slot* slot = nullptr;
    std::uint64_t n = 0;
    int algorithm = -1;
    Nanoseconds arrived = 0;
  } previous_;  ///< the blocking call before, if its slot still exists
};

}  // namespace latecomer::core
