// SPDX-License-Identifier: BSD-3-Clause
// The course of rounds that the fast generators share: the ranks of each round, and the rounds that are skipped.
// Instead of a priority queue, the group of the next round is a merge of the old one with the newcomers (Proficz and
// Ocetkiewicz 2021, section 5.2).
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/algorithms/clairvoyant/planner.hpp"

namespace latecomer::core::clairvoyant {

class Rounds {
 public:
  /// Availability is base + round * round_ns: it grows alike for all, so the order of the present ranks never changes.
  struct RoundMember {
    Nanoseconds base;
    Rank rank;
    bool operator<(const RoundMember& o) const { return base != o.base ? base < o.base : rank < o.rank; }
  };

  explicit Rounds(const Problem& problem) : problem_(problem), awaited_(problem.arrivals.size()) {
    std::iota(awaited_.begin(), awaited_.end(), 0);
    std::stable_sort(awaited_.begin(), awaited_.end(), [&](Rank x, Rank y) { return arrival(x) < arrival(y); });
    group_.reserve(awaited_.size());
    newcomers_.reserve(awaited_.size());
    ranks_.reserve(awaited_.size());
  }

  /// Drops the ranks that take part no more.
  template <typename Leave>
  void drop(Leave leave) {
    std::erase_if(group_, [&](const RoundMember& m) { return leave(m.rank); });
  }
  /// Goes to the next round. `idle`: the last round had no message, so no round has one before another rank arrives.
  /// False: no rank is left.
  bool next(bool idle) {
    if (begun_) ++round_;
    begun_ = true;
    if (group_.empty() && next_ == awaited_.size()) return false;
    // A group of one rank sends no messages.
    if ((idle || group_.size() == 1) && next_ < awaited_.size() && !group_.empty())
      round_ = std::max(round_, (arrival(awaited_[next_]) - group_.front().base) / problem_.round_ns);
    merge();
    return true;
  }
  std::int64_t round() const { return round_; }
  /// The ranks of this round: by availability, ties by rank.
  std::span<const Rank> group() const { return ranks_; }

 private:
  Nanoseconds arrival(Rank r) const { return problem_.arrivals[static_cast<std::size_t>(r)]; }

  void merge() {
    const Nanoseconds past = round_ * problem_.round_ns;
    newcomers_.clear();
    if (next_ < awaited_.size()) {
      Nanoseconds first = arrival(awaited_[next_]) - past;
      if (!group_.empty()) first = std::min(first, group_.front().base);
      for (; next_ < awaited_.size() && arrival(awaited_[next_]) - past < first + problem_.round_ns; ++next_)
        newcomers_.push_back({arrival(awaited_[next_]) - past, awaited_[next_]});
      const auto middle = static_cast<std::ptrdiff_t>(group_.size());
      group_.insert(group_.end(), newcomers_.begin(), newcomers_.end());
      if (!newcomers_.empty()) std::inplace_merge(group_.begin(), group_.begin() + middle, group_.end());
    }
    if (newcomers_.empty() && group_.size() == ranks_.size()) return;
    ranks_.clear();
    for (const RoundMember& m : group_) ranks_.push_back(m.rank);
  }

  const Problem& problem_;
  std::vector<Rank> awaited_;  // by arrival, ties by rank
  std::size_t next_ = 0;       // the first rank that has not arrived
  std::vector<RoundMember> group_, newcomers_;
  std::vector<Rank> ranks_;  // of the group
  std::int64_t round_ = 0;
  bool begun_ = false;
};

/// Places of the ranks: by the remainder of the arrival modulo the round, ties by rank. The group of any round is in
/// the order of places and begins at the place of its first member (section 5.4.3).
class Places {
 public:
  explicit Places(const Problem& problem) : rank_(problem.arrivals.size()), place_(rank_.size()) {
    std::iota(rank_.begin(), rank_.end(), 0);
    const auto remainder = [&](Rank r) { return problem.arrivals[static_cast<std::size_t>(r)] % problem.round_ns; };
    std::stable_sort(rank_.begin(), rank_.end(), [&](Rank x, Rank y) { return remainder(x) < remainder(y); });
    for (std::size_t i = 0; i < rank_.size(); ++i) place_[static_cast<std::size_t>(rank_[i])] = static_cast<int>(i);
  }
  int of(Rank r) const { return place_[static_cast<std::size_t>(r)]; }
  Rank rank_at(int place) const { return rank_[static_cast<std::size_t>(place)]; }
  /// The distance in the order of the group: places before the head's come after the last place.
  int from(int head, Rank r) const { return of(r) < head ? of(r) + static_cast<int>(rank_.size()) : of(r); }

 private:
  std::vector<Rank> rank_;  // by place
  std::vector<int> place_;
};

/// A found message.
struct Found {
  Rank src = -1;
  int segment = -1;
};

/// Runs the rounds of a reduce over `table`, which knows the segments of each rank:
///   begin_round(group)        all of the group may send again
///   find(p, sink) -> Found    the smallest segment that p may receive and its first sender; src -1: none
///   move(src, dst, segment)   src has sent for this round, dst's share waits for its end; whether dst held the segment
///   end_round()               received segments count as held
///   holds(rank) -> int        segments held by the rank
template <typename Table>
inline void run_reduce(const Problem& problem, Table& table, const Emit& emit) {
  Rounds rounds(problem);
  std::vector<Message> sent;
  bool idle = false;
  std::int64_t to_go =
      static_cast<std::int64_t>(problem.ranks() - 1) * problem.segments;  // held by others than the root
  while (to_go > 0 && rounds.next(idle)) {
    const auto group = rounds.group();
    const Rank sink = std::find(group.begin(), group.end(), problem.root) != group.end() ? problem.root : group.front();
    table.begin_round(group);
    sent.clear();
    const auto serve = [&](Rank p) {
      const Found found = table.find(p, p == sink);
      if (found.src < 0) return;
      sent.push_back({rounds.round(), found.src, p, found.segment});
      const bool held = table.move(found.src, p, found.segment);
      if (found.src != problem.root) --to_go;
      if (p != problem.root && !held) ++to_go;
    };
    serve(sink);
    for (const Rank p : group)
      if (p != sink) serve(p);
    idle = sent.empty();
    if (!idle) emit(sent);
    table.end_round();
    rounds.drop([&](Rank r) { return r != problem.root && table.holds(r) == 0; });
  }
}

}  // namespace latecomer::core::clairvoyant
