// SPDX-License-Identifier: BSD-3-Clause
// Models the candidates of slots within a budget of messages.
#pragma once

#include <cstdint>
#include <vector>

#include "core/learning/slot.hpp"

namespace latecomer::core {

class SlotModeller {
 public:
  /// Messages that one announcement may model: the limit of a single candidate, so that every candidate is modelled at
  /// last. The other candidates wait for the next announcement.
  static constexpr std::int64_t kBudget = kMostInJob;
  /// kMessage: nanoseconds to model or plan a message. kShare: the share of the time of a slot's calls that the model
  /// may take. kStake: nanoseconds that it may take in advance. Derived: a twentieth is the smallest gain that is tried
  /// (kWorthTrying), and 1 ms models 800 messages. A larger share costs more where no algorithm gains. A smaller share
  /// delays every trial.
  static constexpr double kMessage = 1'250, kShare = 0.05, kStake = 1e6;

  /// Begins an announcement.
  void renew_budget() { left_ = kBudget; }
  /// Number of messages that this announcement has modelled and planned.
  std::int64_t modelled_messages() const { return kBudget - left_; }
  /// Models the candidates for the slot under its forecast, one by one. Returns false if the budget of this
  /// announcement or of the slot is spent first; the next announcement models the others. `only`: model no algorithm
  /// but this one and native.
  bool model_slot(const LearningTerms& terms, Slot& slot, const Algorithm* only = nullptr, int segments = 0);

 private:
  std::int64_t left_ = kBudget;
  std::vector<CandidateSearch> finished_;  ///< the latest last
};

}  // namespace latecomer::core
