// SPDX-License-Identifier: BSD-3-Clause
// The rota of a slot: the algorithms that serve its calls in turn, the number of calls, and the winner.
#pragma once

#include <vector>

#include "core/learning/slot.hpp"

namespace latecomer::core {

/// The time that rotas may lose against native: the share kRisk of the time of the slot's calls, and the time of
/// kStake native calls in advance. Derived: a run of 100 calls may lose 5% and one of 600 calls 3%. A larger share
/// costs more where the model is wrong, a smaller share delays the next candidates.
inline constexpr double kRisk = 0.02, kStake = 3;
/// Whether trials have lost so much time against native that the next rota has to wait.
bool is_too_risky(const Slot& slot);

/// Begins a rota: from the next plan on, the algorithm in use and the candidates serve the slot's calls in turn.
void begin_rota(Slot& slot, const std::vector<Runner>& candidates);
/// Adds a call to the algorithm of the rota that served it. Adds the loss of a candidate's call to Slot::risked.
void record_turn(Slot& slot, const CallSeen& call);
/// Index of the algorithm that has won: its gain is certain, and no other candidate is faster so far. 0: none.
int find_winner(const Rota& rota, Objective objective);
/// Ends the rota if it has a winner, else removes its losers. Returns false if the rota ended without a winner, so that
/// the slot needs another decision.
bool advance_rota(Slot& slot, Objective objective);
void end_rota(Slot& slot);

}  // namespace latecomer::core
