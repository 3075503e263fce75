// SPDX-License-Identifier: BSD-3-Clause
// Writes the callers of a site.
#include "profiles/format/callers.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "profiles/format/profile_keys.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

/// The ranks that a caller's entry names. Derived: a rank that causes an eighth of the waiting is among them.
constexpr std::size_t kAwaitedRanks = 8;

Json awaited_json(const Caller& caller, int per_row) {
  std::vector<const RankRows::Row*> rows;
  for (const auto& row : caller.pattern->ranks.rows()) rows.push_back(&row);
  std::ranges::stable_sort(rows,
                           [](const auto* a, const auto* b) { return a->second.awaited_ns > b->second.awaited_ns; });
  if (rows.size() > kAwaitedRanks) rows.resize(kAwaitedRanks);
  Json out = Json::array();
  for (const auto* row : rows) {
    const auto& [number, r] = *row;
    Json one = kCallerRowKeys.json(ArrivalsOfRow{number * per_row, per_row > 1 ? per_row : 0, r,
                                                 caller.pattern->share_of_calls(r.last_count, caller.calls)});
    if (const auto found = caller.before.find(number); found != caller.before.end())
      one["before"] = intervals_json(found->second);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Json frame_json(const Frame& f) {
  Json out = {{"module", f.module},  {"build_id", f.build_id}, {"offset", core::hexadecimal(f.offset)},
              {"function", nullptr}, {"file", nullptr},        {"line", nullptr}};
  if (!f.function.empty()) out["function"] = f.function;
  if (!f.file.empty()) {
    out["file"] = f.file;
    out["line"] = f.line;
  }
  return out;
}

Json bytes_json(const LocalSite& own) { return own.sized > 0 ? kBytesKeys.json(own) : Json(nullptr); }

void add_peers(Json& out, const Peers& peers, double by) {
  std::vector<Peers::Peer> sorted(peers.all().begin(), peers.all().end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.waited > b.waited; });
  for (const auto& [rank, waited] : sorted)
    out["waits_for"].push_back(kWaitForKeys.json(WaitFor{rank, static_cast<double>(waited) / by}));
}

Json intervals_json(const Intervals& intervals) {
  Json out = kIntervalKeys.json(intervals);
  add_peers(out, intervals.peers, divisor_of(intervals));
  return out;
}

double Caller::waited_ns() const {
  double out = 0;
  if (pattern)
    for (const auto& [number, r] : pattern->ranks.rows()) out += r.waited_ns;
  return out;
}

Json callers_json(std::vector<Caller> callers, int per_row) {
  std::ranges::stable_sort(callers, [](const Caller& a, const Caller& b) {
    return std::pair(a.waited_ns(), a.calls) > std::pair(b.waited_ns(), b.calls);
  });
  Json out = Json::array();
  for (const Caller& caller : callers) {
    CallerRow row{.frames = Json::array(),
                  .calls = caller.calls,
                  .patterns = caller.pattern ? caller.pattern->share_of_calls(caller.pattern->calls, caller.calls) : 0,
                  .bytes = bytes_json(caller.own),
                  .waited = caller.waited_ns(),
                  .imbalance = {},
                  .after_last = {},
                  .before = nullptr,
                  .awaited = caller.pattern ? awaited_json(caller, per_row) : Json::array()};
    if (caller.frames)
      for (const Frame* f : *caller.frames) row.frames.push_back(frame_json(*f));
    if (caller.pattern) {
      row.imbalance = caller.pattern->imbalance.mean();
      row.after_last = caller.pattern->after_last.mean();
    }
    if (caller.own.before.samples > 0) {
      row.before = intervals_json(caller.own.before);
      row.before.erase("waits_for");  // of one rank only
    }
    out.push_back(kCallerKeys.json(row));
  }
  return out;
}

}  // namespace latecomer::profiles
