// SPDX-License-Identifier: BSD-3-Clause
// Searches the candidates of a slot, and keeps finished searches for other slots with such calls.
#include "core/learning/slot_modeller.hpp"

#include <algorithm>

#include "core/learning/changed.hpp"
#include "core/learning/forecast.hpp"

namespace latecomer::core {
namespace {

/// Copies the candidates of a search to the slot, without those that the policy forbids.
void copy_candidates(const LearningTerms& terms, Slot& slot, const Candidates& found) {
  SlotModel& model = slot.model;
  model.native_ns = found.native_ns;
  model.candidates = found.list;
  model.left_out = found.left_out;
  model.messages = found.messages;
  std::erase_if(model.candidates, [&](const Candidate& c) {
    return !is_allowed(terms, slot, c.algorithm, c.segments) ||
           (algorithm_at(c.algorithm).background && !terms.policy.background_enabled);
  });
}

}  // namespace

bool SlotModeller::model_slot(const LearningTerms& terms, Slot& slot, const Algorithm* only, int segments) {
  SlotModel& model = slot.model;
  const bool flat = ignores_arrivals(slot);
  const auto pattern_of = [&] {
    return flat ? std::vector<Nanoseconds>(static_cast<std::size_t>(terms.ranks), 0) : slot.arrivals.forecast.offsets;
  };
  if (model.search &&
      (flat != model.flat || moved(model.pattern, pattern_of()) || resized(model.sizes, slot.expected.sizes)))
    model.search.reset();
  if (!model.search) {
    const Call call = call_of(slot.signature, terms.ranks);
    model.pattern = pattern_of();
    model.flat = flat;
    model.sizes = slot.expected.sizes;
    for (const CandidateSearch& s : finished_) {
      if (only) break;
      const Call& before = s.call();
      if (before.op != call.op || before.root != call.root || before.commutative != call.commutative ||
          before.element_bytes != call.element_bytes || size_class(before.bytes()) != size_class(call.bytes()) ||
          s.pattern().flat() != flat || resized(s.sizes(), slot.expected.sizes))
        continue;
      std::vector<Nanoseconds> its;
      its.reserve(static_cast<std::size_t>(terms.ranks));
      for (Rank r = 0; r < terms.ranks; ++r) its.push_back(s.pattern().arrival(r));
      if (!flat && moved(its, model.pattern)) continue;
      copy_candidates(terms, slot, s.found());
      return true;
    }
    Parameters parameters{.network = terms.policy.network, .sizes = slot.expected.sizes, .hosts = terms.hosts};
    model.search.emplace(call, flat ? Pattern() : Pattern(slot.arrivals.forecast.offsets), std::move(parameters),
                         terms.policy.objective);
    if (only) model.search->only(*only, segments);
    model.candidates.clear();
    model.left_out.clear();
    model.native_ns = -1;
  }
  while (!model.search->done()) {
    const std::int64_t wanted = model.search->next_cost();
    const double cost = kMessage * static_cast<double>(wanted);
    if ((wanted > left_ && left_ < kBudget) || model.spent + cost > kShare * slot.spent + kStake) return false;
    left_ -= wanted;
    model.spent += cost;
    model.search->step();
  }
  copy_candidates(terms, slot, model.search->found());
  // Derived from time: to repeat a search that is no longer kept takes up to 0.3 s per candidate (kMostInJob). Each
  // kept search holds a pattern, and every new search is compared with all of them.
  constexpr std::size_t kSearchesKept = 16;
  if (!only) {
    if (finished_.size() == kSearchesKept) finished_.erase(finished_.begin());
    finished_.push_back(std::move(*model.search));
  }
  model.search.reset();
  return true;
}

}  // namespace latecomer::core
