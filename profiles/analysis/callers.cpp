// SPDX-License-Identifier: BSD-3-Clause
// Groups the callers of a site.
#include "profiles/analysis/callers.hpp"

#include <algorithm>
#include <map>

namespace latecomer::profiles::analysis {
namespace {

/// The weighted mean of two values.
double mean_of(double mine, double weight, double others, double others_weight) {
  return weight + others_weight > 0 ? (mine * weight + others * others_weight) / (weight + others_weight) : 0;
}

/// The row of the same ranks, added if necessary.
RankRow& row_like(std::vector<RankRow>& rows, const RankRow& like) {
  const auto at = std::ranges::lower_bound(rows, like.rank, {}, &RankRow::rank);
  if (at != rows.end() && at->rank == like.rank) return *at;
  RankRow row;
  row.rank = like.rank;
  row.ranks = like.ranks;
  return *rows.insert(at, row);
}

void add_caller(CallFigures& to, const CallerFigures& caller) {
  to.imbalance = mean_of(to.imbalance, to.patterns, caller.imbalance, caller.patterns);
  to.after_last = mean_of(to.after_last, to.patterns, caller.after_last, caller.patterns);
  if (caller.bytes) to.bytes = mean_of(to.bytes.value_or(0), to.bytes ? to.calls : 0, *caller.bytes, caller.calls);
  to.before.add(caller.before);
  for (const RankRow& from : caller.ranks) {
    RankRow& row = row_like(to.ranks, from);
    row.offset = mean_of(row.offset, to.patterns, from.offset, caller.patterns);
    row.last += from.last;
    row.waited += from.waited;
    row.awaited += from.awaited;
    row.before.add(from.before);
  }
  to.calls += caller.calls;
  to.patterns += caller.patterns;
  to.waited += caller.waited;
}

std::vector<CallerNode> group_callers(const Site& site, const std::vector<const CallerFigures*>& callers,
                                      std::size_t level) {
  std::map<std::string, std::vector<const CallerFigures*>> by_frame;
  for (const CallerFigures* caller : callers) {
    const auto& frames = caller->frames;
    if (level > 0 && frames.size() <= level) continue;  // the profile has no frame above
    by_frame[frames.size() > level ? place_of(frames[level]) : ""].push_back(
        caller);  // calls in one line are one caller
  }
  std::vector<CallerNode> out;
  for (const auto& [key, same] : by_frame) {
    CallerNode& node = out.emplace_back();
    node.figures.op = site.op;
    node.figures.comm_size = site.comm_size;
    for (const CallerFigures* caller : same) add_caller(node.figures, *caller);
    if (key.empty()) continue;
    node.frame = &same.front()->frames[level];
    node.callers = group_callers(site, same, level + 1);
  }
  std::ranges::stable_sort(out, [](const CallerNode& a, const CallerNode& b) {
    return std::pair(a.figures.waited, a.figures.calls) > std::pair(b.figures.waited, b.figures.calls);
  });
  return out;
}

}  // namespace

std::vector<CallerNode> callers_of(const Site& site) {
  std::vector<const CallerFigures*> all;
  all.reserve(site.callers.size());
  for (const CallerFigures& caller : site.callers) all.push_back(&caller);
  std::vector<CallerNode> out = group_callers(site, all, 0);
  if (out.size() == 1 && !out.front().frame) out.clear();
  return out;
}

bool serves_many(const std::vector<CallerNode>& callers) {
  return std::ranges::count_if(callers, [](const CallerNode& c) { return c.frame != nullptr; }) > 1;
}

const std::vector<CallerNode>& served(const std::vector<CallerNode>& callers) {
  if (callers.size() != 1 || callers.front().callers.empty()) return callers;
  return served(callers.front().callers);
}

}  // namespace latecomer::profiles::analysis
