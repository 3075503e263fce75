// SPDX-License-Identifier: BSD-3-Clause
// Groups the callers of a site.
#include "profiles/cli/callers.hpp"

#include <algorithm>
#include <map>

#include "profiles/cli/profile_file.hpp"

namespace latecomer::cli {
namespace {

double of(const Json& object, const char* key) { return object.value(key, 0.0); }

/// Adds means with their weights: `key` becomes the mean over both.
void add_mean(Json& to, const Json& from, const char* key, double mine, double others) {
  if (mine + others > 0) to[key] = (of(to, key) * mine + of(from, key) * others) / (mine + others);
}

void add_before(Json& to, const Json& from) {
  const auto more = from.find("before");
  if (more == from.end()) return;
  Json& all = to["before"];
  if (all.is_null()) {
    all = *more;
    return;
  }
  const double mine = of(all, "samples"), others = of(*more, "samples");
  for (const auto& [key, value] : more->items())
    if (key != "samples" && value.is_number()) add_mean(all, *more, key.c_str(), mine, others);
  all["samples"] = mine + others;
  // The ranks whose messages were waited for: a rank that one side does not name was not waited for there.
  std::map<long, double> waits;
  for (const auto& [from, weight] : {std::pair{static_cast<const Json*>(&all), mine}, std::pair{&*more, others}})
    for (const Json& peer : from->value("waits_for", Json::array()))
      waits[peer["rank"].get<long>()] += of(peer, "wait_ns") * weight / std::max(1.0, mine + others);
  if (waits.empty()) return;
  Json& peers = all["waits_for"] = Json::array();
  for (const auto& [rank, wait_ns] : waits) peers.push_back({{"rank", rank}, {"wait_ns", wait_ns}});
}

/// The row of a rank, added if necessary.
Json& row_of(Json& rows, const Json& like) {
  for (Json& row : rows)
    if (row["rank"] == like["rank"]) return row;
  rows.push_back({{"rank", like["rank"]}});
  if (like.contains("ranks")) rows.back()["ranks"] = like["ranks"];
  return rows.back();
}

void add(Json& to, const Json& caller) {
  const double mine = of(to, "patterns"), others = of(caller, "patterns");
  for (const char* mean : {"mean_imbalance_ns", "mean_after_last_ns"}) add_mean(to, caller, mean, mine, others);
  if (!caller["bytes"].is_null()) {
    Json& bytes = to["bytes"];
    if (bytes.is_null()) bytes["mean"] = caller["bytes"]["mean"];
    else add_mean(bytes, caller["bytes"], "mean", of(to, "calls"), of(caller, "calls"));
  }
  for (const char* sum : {"calls", "patterns", "waited_ns"}) to[sum] = of(to, sum) + of(caller, sum);
  to["last_total"] = to["patterns"];
  add_before(to, caller);
  for (const Json& from : caller["awaited"]) {
    Json& row = row_of(to["ranks"], from);
    add_mean(row, from, "mean_offset_ns", mine, others);
    for (const char* sum : {"last_count", "waited_ns", "awaited_ns"}) row[sum] = of(row, sum) + of(from, sum);
    add_before(row, from);
  }
}

std::vector<CallerNode> group(const Json& site, const std::vector<const Json*>& callers, std::size_t level) {
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
    node.figures = {{"op", site["op"]}, {"comm_size", site["comm_size"]}, {"bytes", nullptr}, {"ranks", Json::array()}};
    for (const Json* caller : same) add(node.figures, *caller);
    if (key.empty()) continue;
    node.frame = &(*same.front())["frames"][level];
    node.callers = group(site, same, level + 1);
  }
  std::stable_sort(out.begin(), out.end(), [](const CallerNode& a, const CallerNode& b) {
    return std::pair(of(a.figures, "waited_ns"), of(a.figures, "calls")) >
           std::pair(of(b.figures, "waited_ns"), of(b.figures, "calls"));
  });
  return out;
}

}  // namespace

std::vector<CallerNode> callers_of(const Json& site) {
  std::vector<const Json*> all;
  if (const auto callers = site.find("callers"); callers != site.end())
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
