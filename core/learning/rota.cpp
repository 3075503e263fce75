// SPDX-License-Identifier: BSD-3-Clause
// The rota of a slot: the algorithms that serve its calls in turn, the number of calls, and the winner.
#include <algorithm>

#include "core/learning/learner.hpp"

namespace latecomer::core {

Timed Learner::timed(const Samples& samples) const {
  return {samples.of(policy_.objective == Objective::mean_elapsed ? samples.elapsed : samples.after_last),
          samples.of(samples.until_next)};
}

void Learner::mark_lost(Slot& slot, int algorithm, int segments) const {
  for (Candidate& c : slot.candidates)
    if (c.algorithm == algorithm && c.segments == segments) c.lost = true;
  if (slot.proven == algorithm && slot.proven_segments == segments) slot.proven = -1;
  if (slot.earlier && slot.earlier->algorithm == algorithm && slot.earlier->segments == segments) slot.earlier.reset();
}

/// Whether trials have lost so much time against native that the next rota has to wait.
bool Learner::too_risky(const Slot& slot) const {
  return slot.risked > kRisk * slot.spent + kStake * slot.native.median_after();
}

/// Begins a rota: from the next plan on, the algorithm in use and the candidates serve the slot's calls in turn.
void Learner::begin_rota(Slot& slot, const std::vector<Runner>& candidates) {
  Rota& rota = slot.rota;
  const int turns = candidates.size() > 1 ? kTurns : kTurnsUntrusted;
  rota.runners.assign(1, {slot.algorithm, slot.segments, -1, {}});
  rota.runners.insert(rota.runners.end(), candidates.begin(), candidates.end());
  ++rota.round;
  rota.granted = turns;
  rota.calls = turns * static_cast<int>(rota.runners.size());
  rota.seen = rota.in_a_row = 0;
  rota.counts_from = UINT64_MAX;
  slot.changed = true;
  settle(slot, slot.algorithm, slot.segments, !flat(slot), Why::tried);
}

void Learner::end_rota(Slot& slot) {
  slot.rota.runners.clear();
  slot.rota.counts_from = UINT64_MAX;
}

/// Index of the algorithm that has won: its gain is certain, and no other candidate is faster so far. 0: none.
int Learner::winner_of(const Slot& slot) const {
  const auto& runners = slot.rota.runners;
  const auto times = [&](int i) { return timed(runners[static_cast<std::size_t>(i)].measured); };
  int best = 0;
  for (int i = 1; i < static_cast<int>(runners.size()); ++i)
    if (runners[static_cast<std::size_t>(i)].measured.count > 0 && (best == 0 || better(times(i), times(best))))
      best = i;
  return best != 0 && judge(times(best), times(0), Samples::kKept) == Verdict::wins ? best : 0;
}

/// Ends the rota if it has a winner, else removes its losers. Returns false if the rota ended without a winner, so that
/// the slot needs another decision.
bool Learner::conduct(Slot& slot) {
  Rota& rota = slot.rota;
  if (const int won = winner_of(slot)) {
    const Runner winner = rota.runners[static_cast<std::size_t>(won)];
    for (const Runner& r : rota.runners)
      if (r.algorithm >= 0 && r.algorithm != winner.algorithm) mark_lost(slot, r.algorithm, r.segments);
    end_rota(slot);
    slot.proven = winner.algorithm;
    slot.proven_segments = winner.segments;
    slot.modelled = winner.modelled;
    settle(slot, winner.algorithm, winner.segments, !flat(slot), Why::won);
    slot.current = winner.measured;
    return true;
  }
  std::erase_if(rota.runners, [&](const Runner& r) {
    if (&r == rota.runners.data() ||
        judge(timed(r.measured), timed(rota.runners[0].measured), Samples::kKept) != Verdict::loses)
      return false;
    mark_lost(slot, r.algorithm, r.segments);
    return true;
  });
  if (rota.runners.size() == 1 || too_risky(slot)) {
    end_rota(slot);
    return false;
  }
  // Once some turns are measured, grant twice as many, and kAhead for the epochs until the next plan is in force.
  constexpr int kAhead = 4;
  const int turns = static_cast<int>(rota.runners.size());
  int least = Samples::kKept;
  for (const Runner& r : rota.runners) least = std::min(least, r.measured.count);
  int granted = rota.seen == 0 ? rota.granted : std::max(rota.granted, std::min(2 * least + kAhead, Samples::kKept));
  // All calls of the rota are used up, but measurements are missing because logs were lost. Grant new turns.
  if (rota.seen > 0 && granted == rota.granted && !rota.interleaved()) granted += kTurns;
  rota.calls = std::min(rota.calls + turns * (granted - rota.granted), static_cast<int>(UINT16_MAX));
  rota.granted = granted;
  slot.modelled = rota.runners[1].modelled;
  settle(slot, slot.algorithm, slot.segments, !flat(slot), Why::tried);
  return true;
}

}  // namespace latecomer::core
