// SPDX-License-Identifier: BSD-3-Clause
// Grants turns to the algorithms of a rota, measures them, and judges the candidates.
#include "core/learning/rota.hpp"

#include <algorithm>

#include "core/learning/forecast.hpp"

namespace latecomer::core {
namespace {

/// Turns of each algorithm in a new rota: kTurns if native's modelled and measured times are close enough for several
/// candidates at a time, else kTurnsUntrusted, with one candidate. Derived: three turns decide a clear difference
/// (judge.hpp).
constexpr int kTurns = 3, kTurnsUntrusted = 2;

void mark_lost(Slot& slot, int algorithm, int segments) {
  for (Candidate& c : slot.model.candidates)
    if (c.algorithm == algorithm && c.segments == segments) c.lost = true;
  if (slot.proven == algorithm && slot.proven_segments == segments) slot.proven = -1;
  if (slot.earlier && slot.earlier->algorithm == algorithm && slot.earlier->segments == segments) slot.earlier.reset();
}

}  // namespace

bool is_too_risky(const Slot& slot) { return slot.risked > kRisk * slot.spent + kStake * slot.native.median_after(); }

void begin_rota(Slot& slot, const std::vector<Runner>& candidates) {
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
  settle_slot(slot, slot.algorithm, slot.segments, !ignores_arrivals(slot), Reason::tried);
}

void record_turn(Slot& slot, const CallSeen& call) {
  Rota& rota = slot.rota;
  ++rota.seen;
  Runner* runner = rota.find_runner(call.algorithm);
  const bool in_use = runner == rota.runners.data();
  rota.in_a_row = in_use ? rota.in_a_row + 1 : 0;
  if (!in_use) {
    const Samples& usual = slot.native.enough() ? slot.native : rota.runners[0].measured;
    if (usual.count() > 0)
      slot.risked = std::max(0.0, slot.risked + static_cast<double>(call.after_last) - usual.median_after());
  }
  if (runner && rota.interleaved()) runner->measured.add_call(call.after_last, call.mean_elapsed);
}

int find_winner(const Rota& rota, Objective objective) {
  const auto& runners = rota.runners;
  const auto times = [&](int i) { return runners[static_cast<std::size_t>(i)].measured.timed(objective); };
  int best = 0;
  for (int i = 1; i < static_cast<int>(runners.size()); ++i)
    if (runners[static_cast<std::size_t>(i)].measured.count() > 0 && (best == 0 || is_faster(times(i), times(best))))
      best = i;
  return best != 0 && judge_candidate(times(best), times(0), Samples::kKept) == TrialVerdict::wins ? best : 0;
}

bool advance_rota(Slot& slot, Objective objective) {
  Rota& rota = slot.rota;
  if (const int won = find_winner(rota, objective)) {
    const Runner winner = rota.runners[static_cast<std::size_t>(won)];
    for (const Runner& r : rota.runners)
      if (r.algorithm >= 0 && r.algorithm != winner.algorithm) mark_lost(slot, r.algorithm, r.segments);
    end_rota(slot);
    slot.proven = winner.algorithm;
    slot.proven_segments = winner.segments;
    slot.model.chosen_ns = winner.modelled;
    settle_slot(slot, winner.algorithm, winner.segments, !ignores_arrivals(slot), Reason::won);
    slot.current = winner.measured;
    return true;
  }
  std::erase_if(rota.runners, [&](const Runner& r) {
    if (&r == rota.runners.data() ||
        judge_candidate(r.measured.timed(objective), rota.runners[0].measured.timed(objective), Samples::kKept) !=
            TrialVerdict::loses)
      return false;
    mark_lost(slot, r.algorithm, r.segments);
    return true;
  });
  if (rota.runners.size() == 1 || is_too_risky(slot)) {
    end_rota(slot);
    return false;
  }
  // Once some turns are measured, grant twice as many, and kAhead for the epochs until the next plan is in force.
  constexpr int kAhead = 4;
  const int turns = static_cast<int>(rota.runners.size());
  int least = Samples::kKept;
  for (const Runner& r : rota.runners) least = std::min(least, r.measured.count());
  int granted = rota.seen == 0 ? rota.granted : std::max(rota.granted, std::min(2 * least + kAhead, Samples::kKept));
  // All calls of the rota are used up, but measurements are missing because logs were lost. Grant new turns.
  if (rota.seen > 0 && granted == rota.granted && !rota.interleaved()) granted += kTurns;
  rota.calls = std::min(rota.calls + turns * (granted - rota.granted), static_cast<int>(UINT16_MAX));
  rota.granted = granted;
  slot.model.chosen_ns = rota.runners[1].modelled;
  settle_slot(slot, slot.algorithm, slot.segments, !ignores_arrivals(slot), Reason::tried);
  return true;
}

void end_rota(Slot& slot) {
  slot.rota.runners.clear();
  slot.rota.counts_from = UINT64_MAX;
}

}  // namespace latecomer::core
