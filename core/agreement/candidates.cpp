// SPDX-License-Identifier: BSD-3-Clause
// Modelling candidates.
#include "core/agreement/candidates.hpp"

#include <algorithm>

#include "core/agreement/agreement.hpp"
#include "core/algorithms/exchange/plan.hpp"

namespace latecomer::core {
namespace {

struct Trial {
  const Algorithm* algorithm;
  int segments;
};

// 2 (P - 1) messages per segment, of which there are P where the algorithm chooses. For a tree's the cost of finding it counts
// too: some 10 ns times P^2.
long messages_of(const Call& call, int segments) { return is_irregular(call.op) ? call.ranks - 1L + static_cast<long>(call.ranks) * call.ranks / 50 : 2L * (call.ranks - 1) * (segments ? segments : call.ranks); }

/// One call's share of what a rank spends on computing a plan, which happens at most once per epoch. Per message of the plan,
/// measured with `latecomer simulate` (planning_ns): 200 to 450 ns.
double planning_share_ns(const Algorithm& a, std::int64_t messages) {
  constexpr double kPerMessage = 300;
  return a.planning != Planning::none ? kPerMessage * static_cast<double>(messages) / static_cast<double>(Sequence::kSteadyEpoch) : 0;
}

std::vector<Trial> trials_for(const Call& call, const Network& network) {
  std::vector<Trial> out;
  constexpr long kMostPerTrial = 7'000;
  const int ranks = call.ranks, most = static_cast<int>(kMostPerTrial / std::max(1, 2 * (ranks - 1)));
  const auto in_segments = [&](const Algorithm& a, int segments) {
    const bool there = std::any_of(out.begin(), out.end(), [&](const Trial& t) { return t.algorithm == &a && t.segments == segments; });
    if (!there && a.segments != Segments::none && a.uses_pattern() && messages_of(call, segments) <= kMostPerTrial && call.count >= segments) out.push_back({&a, segments});
  };
  for (const Algorithm& a : catalogue()) {
    if (a.op != call.op || a.planning == Planning::slow) continue;
    // Where operands may come in any order, keeping them in one is of no use.
    if (is_reduction(call.op) && call.commutative && a.keeps_rank_order && a.uses_pattern()) continue;
    // More segments than ranks: what is left after the last arrival shrinks towards one vector's time.
    // To look at several plans is for a policy to ask, not for a leader between calls. What number fits the network matters
    // more then than how many.
    if (a.segments == Segments::fitted) {
      for (const int segments : {ranks, exchange::segments_for(call.count, call.element_bytes, ranks, ranks, network, 0, most), 4 * ranks}) in_segments(a, segments);
      // A late receiver of a broadcast takes in one eager message after the other.
      if (!is_reduction(call.op) && network.eager_bytes > 0) in_segments(a, static_cast<int>(std::min<Bytes>((call.bytes() + network.eager_bytes - 1) / network.eager_bytes, kMostPerTrial)));
      continue;
    }
    out.push_back({&a, 0});
    for (const int segments : {4 * ranks, 16 * ranks}) in_segments(a, segments);
  }
  return out;
}

}  // namespace

long candidate_messages(const Call& call, const Network& network) {
  long out = 0;
  for (const Trial& t : trials_for(call, network)) out += messages_of(call, t.segments);
  return out;
}

Candidates model_candidates(const Call& call, const Pattern& pattern, const Network& network, Objective objective, bool known, const std::vector<Bytes>& sizes) {
  Candidates out;
  // The background engine looks every few milliseconds (shim/engine.cpp): measured on a virtual machine, where it costs most.
  constexpr double kReaction = 2.5e6;
  Parameters parameters;
  parameters.network = network;
  parameters.sizes = sizes;
  Network with_engine = network;
  with_engine.reaction_ns = kReaction;
  for (const Trial& t : trials_for(call, network)) {
    parameters.segments = t.segments;
    const auto run = simulate(*t.algorithm, Instance(call, !t.algorithm->uses_pattern() || !known ? Pattern() : pattern, parameters), with_engine, pattern);
    if (!run) continue;
    const double ns = (objective == Objective::mean_elapsed ? run->mean_elapsed : static_cast<double>(run->after_last)) + planning_share_ns(*t.algorithm, run->messages);
    if (t.algorithm->name == native_stand_in(call)) out.native_ns = ns;
    out.list.push_back({index_of(t.algorithm), t.segments, ns});
  }
  std::stable_sort(out.list.begin(), out.list.end(), [](const Candidate& x, const Candidate& y) { return x.modelled_ns < y.modelled_ns; });
  return out;
}

}  // namespace latecomer::core
