// SPDX-License-Identifier: BSD-3-Clause
// Groups the callers of a site.
#include "profiles/render/callers.hpp"

#include <algorithm>
#include <map>

#include "profiles/symbols/names.hpp"

namespace latecomer::cli {
namespace {

/// The mean over both, with their weights.
double mean_of(double mine, double weight, double others, double others_weight) {
  return weight + others_weight > 0 ? (mine * weight + others * others_weight) / (weight + others_weight) : 0;
}

/// The row of the same ranks, added if necessary.
analysis::RankRow& row_like(std::vector<analysis::RankRow>& rows, const analysis::RankRow& like) {
  const auto at = std::ranges::lower_bound(rows, like.rank, {}, &analysis::RankRow::rank);
  if (at != rows.end() && at->rank == like.rank) return *at;
  analysis::RankRow row;
  row.rank = like.rank, row.ranks = like.ranks;
  return *rows.insert(at, row);
}

void add(analysis::Calls& to, const Json& caller) {
  const double calls = caller["calls"], patterns = caller["patterns"];
  if (patterns > 0) {  // else the means are null
    to.imbalance = mean_of(to.imbalance, to.patterns, caller["mean_imbalance_ns"], patterns);
    to.after_last = mean_of(to.after_last, to.patterns, caller["mean_after_last_ns"], patterns);
  }
  if (!caller["bytes"].is_null())
    to.bytes = mean_of(to.bytes.value_or(0), to.bytes ? to.calls : 0, caller["bytes"]["mean"], calls);
  if (const auto before = caller.find("before"); before != caller.end()) to.before.add(intervals_of(*before));
  for (const Json& json : caller["awaited"]) {
    const analysis::RankRow from = row_of(json);
    analysis::RankRow& row = row_like(to.ranks, from);
    row.offset = mean_of(row.offset, to.patterns, from.offset, patterns);
    row.last += from.last, row.waited += from.waited, row.awaited += from.awaited, row.before.add(from.before);
  }
  to.calls += calls, to.patterns += patterns, to.waited += caller["waited_ns"].get<double>();
}

std::vector<CallerNode> group(const Site& site, const std::vector<const Json*>& callers, std::size_t level) {
  std::map<std::string, std::vector<const Json*>> by_frame;
  for (const Json* caller : callers) {
    const Json& frames = (*caller)["frames"];
    if (level > 0 && frames.size() <= level) continue;  // nothing is known above this frame
    const Json* frame = frames.size() > level ? &frames[level] : nullptr;
    by_frame[frame ? place(*frame) : ""].push_back(caller);  // calls in one line are one caller
  }
  std::vector<CallerNode> out;
  for (const auto& [key, same] : by_frame) {
    CallerNode& node = out.emplace_back();
    node.figures.op = site.op, node.figures.comm_size = site.comm_size;
    for (const Json* caller : same) add(node.figures, *caller);
    if (key.empty()) continue;
    node.frame = &(*same.front())["frames"][level];
    node.callers = group(site, same, level + 1);
  }
  std::stable_sort(out.begin(), out.end(), [](const CallerNode& a, const CallerNode& b) {
    return std::pair(a.figures.waited, a.figures.calls) > std::pair(b.figures.waited, b.figures.calls);
  });
  return out;
}

}  // namespace

std::vector<CallerNode> callers_of(const Site& site) {
  std::vector<const Json*> all;
  if (const auto callers = site.json->find("callers"); callers != site.json->end())
    for (const Json& caller : *callers) all.push_back(&caller);
  return group(site, all, 0);
}

bool serves_many(const std::vector<CallerNode>& callers) {
  return std::count_if(callers.begin(), callers.end(), [](const CallerNode& c) { return c.frame != nullptr; }) > 1;
}

const std::vector<CallerNode>& served(const std::vector<CallerNode>& callers) {
  if (callers.size() != 1 || callers.front().callers.empty()) return callers;
  return served(callers.front().callers);
}

std::string place_of(const CallerNode& caller) { return caller.frame ? place(*caller.frame) : "other callers"; }

}  // namespace latecomer::cli
