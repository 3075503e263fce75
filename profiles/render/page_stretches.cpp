// SPDX-License-Identifier: BSD-3-Clause
// Chooses the calls and the ranks of each stretch, and writes the times of these ranks from the begin of the stretch.
#include "profiles/render/page_stretches.hpp"

#include <algorithm>
#include <map>

#include "profiles/render/page_data.hpp"

namespace latecomer::profiles {
namespace {

/// Derived: 24 calls on a page of 1,000 pixels leave 40 pixels for each, and 40 rows of 14 pixels fill a screen.
/// kMostVisits takes 150 KB.
constexpr std::size_t kStretches = 3, kCallsAround = 12, kRows = 40, kMostVisits = 4096;
/// Calls are left out that begin further from the chosen call than this many times its run time, so that its own bars
/// are at least 20 pixels wide.
constexpr core::Nanoseconds kRunTimesAround = 20;

core::Nanoseconds waited_in(const RecordedCall& call) {
  core::Nanoseconds out = 0;
  for (std::size_t i = 0; i < call.arrivals.size(); ++i) out += call.wait_ends[i] - call.arrivals[i];
  return out;
}

core::Nanoseconds begin_of(const RecordedCall& call) { return *std::ranges::min_element(call.arrivals); }
core::Nanoseconds end_of(const RecordedCall& call) {
  return std::max(call.last, *std::ranges::max_element(call.exits));
}

class DrawnStretch {
 public:
  DrawnStretch(const RecordedArrivals& record, std::size_t chosen)
      : record_(record), chosen_(chosen), lowest_(chosen), highest_(chosen) {
    for (const core::Rank rank : record.groups[call(chosen).group]) members_.push_back(rank);
    std::ranges::sort(members_);
    const core::Nanoseconds begin = begin_of(call(chosen)), end = end_of(call(chosen)),
                            around = kRunTimesAround * std::max<core::Nanoseconds>(1, end - begin);
    const auto apart = [&](std::size_t before, std::size_t after) {
      return part_of(record, call(before)) != part_of(record, call(after));
    };
    calls_ = {chosen};
    for (std::size_t c = chosen, left = kCallsAround; c > 0 && left > 0 && !apart(c - 1, c); --c)
      if (begin - begin_of(call(c - 1)) > around) break;
      else if (concerns_members(c - 1)) {
        calls_.push_back(lowest_ = c - 1);
        --left;
      }
    for (std::size_t c = chosen + 1, left = kCallsAround; c < record.calls.size() && left > 0 && !apart(c - 1, c); ++c)
      if (begin_of(call(c)) - end > around) break;
      else if (concerns_members(c)) {
        calls_.push_back(highest_ = c);
        --left;
      }
    choose_rows();
    begin_ = begin;
    end_ = end;
    for (const std::size_t c : calls_) {
      begin_ = std::min(begin_, begin_of(call(c)));
      end_ = std::max(end_, end_of(call(c)));
    }
    const core::Nanoseconds margin = (end_ - begin_) / 50 + 1;
    begin_ = std::max<core::Nanoseconds>(0, begin_ - margin);
    const core::Nanoseconds last = end_;
    end_ += margin;
    for (std::size_t c = highest_ + 1; c < record.calls.size() && begin_of(call(c)) < end_; ++c)
      if (begin_of(call(c)) > last && concerns_members(c)) end_ = begin_of(call(c));
  }

  bool holds(std::size_t number) const { return number >= lowest_ && number <= highest_; }

  Json json() {
    const std::vector<std::pair<std::size_t, Visit>> visits = visits_in();
    std::map<std::uint32_t, std::size_t> numbers;
    for (const auto& [row, visit] : visits) numbers[visit.call] = 0;
    Json calls = Json::array(), bars = calls;
    for (auto& [number, local] : numbers) {
      const RecordedCall& c = call(number);
      local = calls.size();
      const auto last = std::ranges::max_element(c.arrivals) - c.arrivals.begin();
      calls.push_back({record_.site_ids[c.site], begin_of(c) - begin_, waited_in(c),
                       record_.groups[c.group][static_cast<std::size_t>(last)]});
    }
    for (const auto& [row, visit] : visits) {
      const RecordedCall& c = call(visit.call);
      const std::int32_t awaited = c.awaited[visit.position];
      const bool shown = visit.nested && c.exits[visit.position] >= 0;
      bars.push_back({row, numbers[visit.call], c.arrivals[visit.position] - begin_,
                      shown ? Json(c.wait_ends[visit.position] - begin_) : Json(nullptr),
                      shown ? Json(c.exits[visit.position] - begin_) : Json(nullptr),
                      awaited < 0 ? -1 : record_.groups[c.group][static_cast<std::size_t>(awaited)]});
    }
    return {{"begin_ns", begin_},
            {"span_ns", end_ - begin_},
            {"waited_ns", waited_in(call(chosen_))},
            {"site", record_.site_ids[call(chosen_).site]},
            {"members", members_.size()},
            {"rows", rows_},
            {"calls", calls},
            {"bars", bars}};
  }

 private:
  const RecordedCall& call(std::size_t number) const { return record_.calls[number]; }

  /// Whether a member of the chosen call is in the call.
  bool concerns_members(std::size_t number) {
    const std::size_t group = call(number).group;
    const auto [at, added] = concerned_.try_emplace(group, false);
    if (added)
      at->second = std::ranges::any_of(record_.groups[group], [&](core::Rank rank) { return is_member(rank); });
    return at->second;
  }
  bool is_member(core::Rank rank) const { return std::ranges::binary_search(members_, rank); }

  /// All members if they fit, else the ranks that others waited for longest, and others evenly spread.
  void choose_rows() {
    if (members_.size() <= kRows) {
      rows_ = members_;
      return;
    }
    std::map<core::Rank, core::Nanoseconds> awaited;
    for (const std::size_t number : calls_) {
      const RecordedCall& c = call(number);
      for (std::size_t i = 0; i < c.arrivals.size(); ++i)
        if (c.awaited[i] >= 0)
          if (const core::Rank rank = record_.groups[c.group][static_cast<std::size_t>(c.awaited[i])]; is_member(rank))
            awaited[rank] += c.wait_ends[i] - c.arrivals[i];
    }
    std::vector<std::pair<core::Nanoseconds, core::Rank>> order;
    order.reserve(awaited.size());
    for (const auto& [rank, time] : awaited) order.emplace_back(-time, rank);
    std::ranges::sort(order);
    order.resize(std::min(order.size(), kRows / 2));
    for (const auto& [time, rank] : order) rows_.push_back(rank);
    const std::size_t more = kRows - rows_.size();
    for (std::size_t i = 0; i < more; ++i) rows_.push_back(members_[i * (members_.size() - 1) / (more - 1)]);
    std::ranges::sort(rows_);
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
  }

  /// The visits of the shown ranks between the begin and the end, by row and arrival. Moves the end forward if
  /// there are more than kMostVisits.
  std::vector<std::pair<std::size_t, Visit>> visits_in() {
    std::vector<std::pair<std::size_t, Visit>> out;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      std::size_t left = kMostVisits / rows_.size();
      for (const Visit& v : record_.ranks[static_cast<std::size_t>(rows_[row])]) {
        const core::Nanoseconds arrival = call(v.call).arrivals[v.position];
        if (arrival >= end_) break;
        if (std::max(arrival, call(v.call).exits[v.position]) <= begin_) continue;
        if (left == 0) {
          end_ = arrival;
          break;
        }
        out.emplace_back(row, v);
        --left;
      }
    }
    std::erase_if(out, [&](const auto& v) { return call(v.second.call).arrivals[v.second.position] >= end_; });
    return out;
  }

  const RecordedArrivals& record_;
  std::size_t chosen_, lowest_, highest_;
  std::vector<core::Rank> members_, rows_;  ///< of the chosen call; those that are shown
  std::vector<std::size_t> calls_;          ///< in the record
  std::map<std::size_t, bool> concerned_;   ///< by group
  core::Nanoseconds begin_ = 0, end_ = 0;
};

}  // namespace

Json page_stretches(const RecordedArrivals& record) {
  std::vector<std::pair<core::Nanoseconds, std::size_t>> order;
  for (std::size_t c = 0; c < record.calls.size(); ++c)
    if (const core::Nanoseconds waited = waited_in(record.calls[c]); waited > 0) order.emplace_back(-waited, c);
  std::ranges::sort(order);
  std::vector<DrawnStretch> stretches;
  for (const auto& [waited, number] : order) {
    if (stretches.size() == kStretches) break;
    if (std::ranges::none_of(stretches, [at = number](const DrawnStretch& s) { return s.holds(at); }))
      stretches.emplace_back(record, number);
  }
  Json out = Json::array();
  for (DrawnStretch& s : stretches) out.push_back(s.json());
  return out;
}

}  // namespace latecomer::profiles
