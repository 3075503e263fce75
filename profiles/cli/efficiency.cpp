// SPDX-License-Identifier: BSD-3-Clause
// Estimates POP's efficiencies. POP replays a trace on an ideal network; here the time of transfers is what the
// arrivals and the waits for late ranks do not explain.
#include "profiles/cli/efficiency.hpp"

#include <algorithm>

#include "profiles/cli/blame.hpp"

namespace latecomer::cli {
namespace {

using Json = nlohmann::ordered_json;

double of(const Json& object, const char* key) { return object.value(key, 0.0); }

}  // namespace

Efficiencies::Efficiencies(const Json& profile) {
  for (const Json& p : profile.value("processes", Json::array()))
    ranks_[p["rank"].get<long>()] = {
        p["host"].get<std::string>(), of(p, "wall_ns"),
        of(p, "computing_ns") + of(p, "kernel_ns") + of(p, "runnable_ns") + of(p, "blocked_ns"), of(p, "messages_ns"),
        0};
  struct Sampled {
    double messages = 0, explained = 0;
  };
  std::map<long, Sampled> sampled;
  for (const Json& site : profile["sites"]) {
    const SiteIntervals intervals(site);
    double after_last = 0;
    for (const auto& [name, d] : site["dispatch"].items()) after_last += of(d, "calls") * of(d, "mean_after_last_ns");
    // A call of some of the ranks delays these only. Where a profile does not name them all, it delays each as much.
    const auto& rows = site["ranks"];
    const bool named = of(site, "rows") <= static_cast<double>(rows.size()) &&
                       std::none_of(rows.begin(), rows.end(), [](const Json& r) { return r.value("ranks", 1) > 1; });
    const double delayed = named ? static_cast<double>(rows.size()) : static_cast<double>(ranks_.size());
    const double each = delayed > 0 ? after_last * of(site, "comm_size") / delayed : 0;
    if (!named)
      for (auto& [rank, time] : ranks_) time.transfers += each;
    for (const Json& row : rows) {
      const long rank = row["rank"].get<long>();
      if (const auto found = ranks_.find(rank); named && found != ranks_.end()) found->second.transfers += each;
      const auto before = row.find("before");
      if (before == row.end()) continue;
      double explained = 0;
      for (const auto& peer : intervals.peers(row)) explained += peer.explained;
      const double samples = of(*before, "samples"), messages = of(*before, "messages_ns");
      sampled[rank].messages += samples * messages;
      sampled[rank].explained += samples * std::min(explained, messages);
    }
  }
  for (auto& [rank, time] : ranks_) {
    const Sampled& seen = sampled[rank];
    time.transfers += time.messages * (seen.messages > 0 ? 1 - seen.explained / seen.messages : 1);
  }
}

Efficiency Efficiencies::of_host(const std::string& host) const {
  double own = 0, longest = 0, wall = 0, transfers = 0, run = 0, ranks = 0;
  for (const auto& [rank, time] : ranks_) {
    run = std::max(run, time.wall);
    if (!host.empty() && time.host != host) continue;
    own += time.own, longest = std::max(longest, time.own), wall += time.wall, transfers += time.transfers, ++ranks;
  }
  if (ranks == 0 || longest <= 0 || run <= 0 || wall <= 0) return {};
  Efficiency out;
  out.load_balance = own / ranks / longest;
  out.communication = std::min(1.0, longest / run);
  // No rank has transferred while it did something else, so the longest time outside MPI is a lower bound.
  out.transfer = std::clamp(1 - transfers / wall, out.communication, 1.0);
  out.serialisation = out.communication / out.transfer;
  return out;
}

Json efficiency_json(const Efficiency& e) {
  return {{"load_balance", e.load_balance},
          {"communication", e.communication},
          {"serialisation", e.serialisation},
          {"transfer", e.transfer}};
}

}  // namespace latecomer::cli
