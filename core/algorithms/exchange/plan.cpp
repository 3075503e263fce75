// SPDX-License-Identifier: BSD-3-Clause
// The planner. Time goes from event to event: a port gets free, a rank arrives, a message lands. At each moment the
// planner matches contributions with owners, then final segments with ranks that lack them. It considers only ranks
// with a change, so that it finds every match once.
//
// A rank sends only at a moment at which something happens to it, because nothing else would hold it back until then.
// An idle rank waits for its next landing. A message that leaves a few slots early takes a place in its receiver's
// port. The port hands the delay on, and the plan never makes it good: 68 ms instead of 44 with one such message in
// 30,000.
#include "core/algorithms/exchange/plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/algorithms/algorithm.hpp"
#include "core/algorithms/clairvoyant/tables.hpp"
#include "core/algorithms/exchange/foresight.hpp"
#include "core/algorithms/exchange/owners.hpp"
#include "core/algorithms/exchange/pace.hpp"
#include "core/algorithms/exchange/ranking.hpp"
#include "core/algorithms/ordered.hpp"

namespace latecomer::core::exchange {
namespace {

using clairvoyant::BitRows;
using clairvoyant::kWordBits;
using clairvoyant::Word;
using clairvoyant::words_for;
constexpr int kNone = -1;

Nanoseconds last_of(std::span<const Nanoseconds> arrivals) {
  return *std::max_element(arrivals.begin(), arrivals.end());
}

/// The first bit at or after `from` and below `end` of a set whose w-th word is set(w), or kNone.
template <typename Set>
int first_of(const Set& set, int from, int end) {
  for (int at = from; at < end;) {
    const std::size_t w = clairvoyant::word(at);
    if (const Word bits = set(w) & ~Word{0} << (at % kWordBits)) {
      const int found = static_cast<int>(w) * kWordBits + std::countr_zero(bits);
      return found < end ? found : kNone;
    }
    at = static_cast<int>(w + 1) * kWordBits;
  }
  return kNone;
}

/// The same, beginning at `from` and going round.
template <typename Set>
int first_around(const Set& set, int from, int bits) {
  const int found = first_of(set, from, bits);
  return found != kNone ? found : first_of(set, 0, from);
}

/// The same of those that `fits` lets pass; a few are asked.
template <typename Set, typename Fits>
int first_around(const Set& set, int from, int bits, Fits fits) {
  constexpr int kAsked = 16;
  int found = first_around(set, from, bits);
  for (int asked = 1; found != kNone && !fits(found); ++asked)
    found = asked < kAsked ? first_of(set, found + 1, bits) : kNone;
  return found;
}

auto both(const Word* a, const Word* b) {
  return [=](std::size_t w) { return a[w] & b[w]; };
}

/// The last rank comes when a slot begins; with several messages under way, when the first of its own is posted.
Grid grid_of(const Problem& problem, const Pace& pace) {
  const Nanoseconds last = last_of(problem.arrivals);
  return {pace.slot,
          last % pace.slot - pace.slot + (pace.sends > 1 ? static_cast<Nanoseconds>(problem.network.overhead_ns) : 0)};
}

class Planner {
 public:
  Planner(const Problem& problem, const Emit& emit)
      : problem_(problem),
        emit_(emit),
        ranks_(problem.ranks()),
        segments_(problem.segments),
        owners_(problem.owners),
        places_(collectors_of(problem)),
        taken_(static_cast<std::size_t>(ranks_)),
        turn_(static_cast<std::size_t>(ranks_)),
        place_(turn_.size(), 0),
        collector_(static_cast<std::size_t>(places_) * static_cast<std::size_t>(segments_)),
        open_(places_, segments_),
        to_owner_(ranks_, ranks_),
        to_send_(turn_.size() * turn_.size(), 0),
        unsent_(ranks_, segments_),
        contributors_(segments_, ranks_),
        sums_(ranks_, segments_),
        summed_(segments_, ranks_),
        here_(places_, ranks_),
        has_(segments_, ranks_),
        promised_(segments_, ranks_),
        free_(kSets, ranks_),
        candidates_(words_for(ranks_)),
        newest_(turn_.size(), kNone),
        passed_on_(leaves_from(pace_of(problem.segment_bytes(), problem.network).hop, ranks_)),
        holders_(ranks_, segments_),
        merges_(static_cast<std::size_t>(segments_) * static_cast<std::size_t>(places_)),
        waiting_(problem.ordered ? segments_ : 1, problem.ordered ? OrderedNode::count(ranks_) : 1),
        copies_(segments_, ranks_),
        eager_(problem.network.eager(problem.segment_bytes())),
        grid_(grid_of(problem, pace_of(problem.segment_bytes(), problem.network))),
        ahead_(problem, grid_, pace_of(problem.segment_bytes(), problem.network).sends) {
    std::vector<Rank> by_arrival(static_cast<std::size_t>(ranks_));
    std::iota(by_arrival.begin(), by_arrival.end(), 0);
    std::stable_sort(by_arrival.begin(), by_arrival.end(), [&](Rank x, Rank y) { return arrival(x) < arrival(y); });
    // Contributions to a segment come one after the other, so who comes next begins with the next owner. Not with the
    // one before: what it has first would be what those who came before it, and are further by then, have last.
    for (int k = 0; k < ranks_; ++k)
      at(turn_, by_arrival[static_cast<std::size_t>(k)]) = k / places_,
                at(place_, by_arrival[static_cast<std::size_t>(k)]) = k % places_;
    for (int k = 0; k < places_; ++k)
      for (Rank r = 0; r < ranks_; ++r)
        if (at(place_, r) == k) here_.set(k, r);
    if (problem.source < 0) {
      std::vector<int> members(static_cast<std::size_t>(places_), 0);
      for (const int k : place_) ++at(members, k);
      find_collectors();
      for (int j = 0; j < segments_; ++j) {
        const Rank owner = collector(0, j);
        for (int k = 0; k < places_; ++k) at(taken_, collector(k, j)).push_back({j, k});
        for (Rank r = 0; r < ranks_; ++r) {
          // A reduce's sums go to one rank only.
          if (problem.sink >= 0 && r != problem.sink && r != owner) promised_.set(j, r);
          if (r != problem.sink) unsent_.set(r, j), contributors_.set(j, r);
        }
        for (int k = 0; k < places_; ++k) unsent_.clear(collector(k, j), j), contributors_.clear(j, collector(k, j));
        for (Rank r = 0; r < ranks_; ++r)
          if (unsent_.test(r, j)) has_more(r, collector(at(place_, r), j));
        work_on(j, owner);
        for (int k = 0; k < places_; ++k)
          merges_of(k, j).left += at(members, k), --merges_of(at(place_, collector(k, j)), j).left;
        if (problem.sink >= 0) --merges_of(at(place_, problem.sink), j).left;
        merges_of(0, j).left += places_ - 1;
        for (int k = 0; k < places_; ++k)
          if (to_go_ += merges_of(k, j).left; merges_of(k, j).left == 0)
            post(grid_.up(arrival(collector(k, j))), k ? What::is_summed : What::is_final, collector(k, j), j);
      }
      to_go_ += std::int64_t{problem.sink >= 0 ? 1 : ranks_ - 1} * segments_;
    } else {
      to_go_ = std::int64_t{ranks_ - 1} * segments_;
    }
    for (const Rank r : by_arrival) {
      post(grid_.up(arrival(r)), What::arrives, r, 0);
      // An eager message may land before its receiver arrives.
      post(grid_.up(eager_ ? 0 : arrival(r)), What::may_receive, r, 0);
    }
  }

  Outcome run() {
    std::vector<Rank> everybody(static_cast<std::size_t>(ranks_)), active,
        receivers;  // something happens there; may receive from now on
    std::iota(everybody.begin(), everybody.end(), 0);
    while (to_go_ > 0) {
      // Those who have idled are in nobody's way; but what waits for its receiver must not be there before what was
      // planned first.
      const bool idle = events_.empty() || events_.begin()->first > now_ + grid_.slot;
      if (idle && send(everybody, {})) continue;
      // What goes out of turn may take others with it, so that all takes up to twice as long: where nothing happens for
      // longer than that it does no harm.
      lull_ = !problem_.ordered && !events_.empty() && events_.begin()->first - now_ > now_ - busy_since_;
      quiet_ = idle && (eager_ || events_.empty() || lull_);
      if (quiet_ && send(everybody, {})) continue;
      if (idle && lull_) busy_since_ = events_.begin()->first;
      if (events_.empty()) break;
      active.clear(), receivers.clear(), quiet_ = false;
      const auto happens = events_.extract(events_.begin());
      now_ = happens.key();
      for (const Event& e : happens.mapped()) {
        switch (e.what) {
          case What::arrives:
            if (const Nanoseconds begins = grid_.up(ahead_.begins(e.rank)); begins > now_) {
              post(begins, What::arrives, e.rank, 0);
              break;
            }
            ahead_.begin(e.rank);
            active.push_back(e.rank);
            set_free(kSenders, e.rank);
            if (e.rank == problem_.source)
              for (int j = 0; j < segments_; ++j) promise(j, e.rank), has_.set(j, e.rank);
            break;
          case What::may_send:
            set_free(kSenders, e.rank), active.push_back(e.rank);
            break;
          case What::is_summed:
            sums_.set(e.rank, e.segment), summed_.set(e.segment, e.rank), has_more(e.rank, collector(0, e.segment));
            active.push_back(e.rank);
            break;
          case What::lands:
            active.push_back(e.rank);
            break;
          case What::may_receive:
            set_free(kReceivers, e.rank), receivers.push_back(e.rank);
            break;
          case What::is_final:
            has_.set(e.segment, e.rank);
            if (copies_.count(e.segment) == 0) promise(e.segment, e.rank);
            active.push_back(e.rank);
            break;
        }
      }
      send(active, receivers);
    }
    return {end_, kept_};
  }

 private:
  enum class What : char { arrives, may_send, may_receive, lands, is_summed, is_final };
  // Free senders, and those with an event now. Free receivers, and those that by_what_few_have() considers.
  enum Set { kSenders, kReady, kReceivers, kLacking, kSets };
  struct Event {
    What what;
    Rank rank;
    int segment;
  };

  Nanoseconds arrival(Rank r) const { return problem_.arrivals[static_cast<std::size_t>(r)]; }
  /// The rank that collects the contributions of the k-th part of the ranks to segment j. The first is the owner, and
  /// the others send it their sums.
  Rank collector(int k, int j) const { return at(collector_, k * segments_ + j); }
  /// The collectors of a segment: owners in turn, as far apart as possible, each at most once.
  void find_collectors() {
    const std::size_t size = owners_.size(), places = static_cast<std::size_t>(places_), apart = size / places;
    for (int j = 0; j < segments_; ++j)
      for (int k = 0; k < places_; ++k) {
        const auto taken = [&](Rank r) {
          for (int before = 0; before < k; ++before)
            if (collector(before, j) == r) return true;
          return false;
        };
        const std::size_t segment = static_cast<std::size_t>(j), place = static_cast<std::size_t>(k);
        std::size_t turn = (segment + place * apart) % size;
        // Not always the next, or one rank would be the next of many.
        if (taken(owners_[turn])) turn = (turn + 1 + segment) % size;
        while (taken(owners_[turn])) turn = (turn + 1) % size;
        at(collector_, k * segments_ + j) = owners_[turn];
      }
  }
  int& to_send(Rank from, Rank to) {
    return to_send_[static_cast<std::size_t>(from) * turn_.size() + static_cast<std::size_t>(to)];
  }
  /// A rank has a contribution more, or less, for a collector.
  void has_more(Rank from, Rank to) {
    if (++to_send(from, to) == 1) to_owner_.set(to, from);
  }
  void has_less(Rank from, Rank to) {
    if (--to_send(from, to) == 0) to_owner_.clear(to, from);
  }
  void post(Nanoseconds time, What what, Rank rank, int segment) { events_[time].push_back({what, rank, segment}); }
  void set_free(Set set, Rank r) {
    free_.set(set, r);
    if (set == kReceivers)
      for (const auto& [j, k] : at(taken_, r)) open_.set(k, j);
  }
  void set_busy(Set set, Rank r) {
    free_.clear(set, r);
    if (set == kSenders) free_.clear(kReady, r);
    if (set == kReceivers) {
      free_.clear(kLacking, r);
      for (const auto& [j, k] : at(taken_, r)) open_.clear(k, j);
    }
  }

  /// Matches ranks that have an event with free ranks. False: nothing was sent.
  bool send(std::span<const Rank> active, std::span<const Rank> receivers) {
    const std::int64_t before = to_go_;
    const std::span<const Rank> holders =
        eager_ ? std::span<const Rank>() : active;  // what has landed lets them post a receive
    for (const Rank p : active)
      if (free_.test(kSenders, p)) free_.set(kReady, p);
    // Ranks that receive no contributions go first: nothing else would hold back their next message.
    for (const Rank p : active)
      if (at(taken_, p).empty()) contribute(p);
    for (const Rank p : active)
      if (!at(taken_, p).empty()) contribute(p);
    for (const Rank q : receivers) collect(q);
    for (const Rank q : holders) collect(q);
    by_what_few_have();
    for (const Rank p : spreaders_) {
      if (emptiest_.empty()) break;
      spread_from(p);
    }
    for (const Rank q : emptiest_) free_.clear(kLacking, q);
    for (const Rank q : receivers) spread_to(q);
    for (const Rank q : holders) spread_to(q);
    for (const Rank p : active) free_.clear(kReady, p);
    return to_go_ < before;
  }

  /// What follows from a rank's contribution to a segment.
  Foresight::Work work_on(int j, Rank rank) {
    if (!problem_.ordered) return {1, false};
    Foresight::Work out;
    for (OrderedNode node(rank, ranks_); node.climb(); node.up(), ++out.additions)
      if (!waiting_.test(j, node.sibling())) {
        waiting_.set(j, node.id());
        return out;
      }
    // The sum is where the last rank's contribution was.
    out.copied = collector(0, j) != ranks_ - 1;
    return out;
  }

  /// Those of a set who are in turn, of whom nobody is asked twice, and a few are.
  class Candidates {
   public:
    Candidates(Planner& of, Set set) : left_(of.candidates_), alike_(of.alike_), ranks_(of.ranks_) {
      std::copy_n(of.free_[set], left_.size(), left_.begin());
      look();
    }
    bool none() const { return none_; }
    /// The first, beginning at `from` and going round, that is among `these` and that fits.
    template <typename Set, typename Fits>
    Rank first(const Set& these, Rank from, Fits fits) {
      const auto set = [&](std::size_t w) { return left_[w] ? left_[w] & these(w) : 0; };
      for (;;) {
        const Rank r = first_around(set, from, ranks_);
        if (r == kNone || fits(r)) return r;
        drop(r);
      }
    }

    /// Of the first ranks in `list`, which is in the ranking's order, that are not among `those`: the one of least cost
    /// that fits. Among equals it is the next after `from`. Otherwise two of few ranks could remain in every other
    /// slot, each a sender and itself the only receiver.
    template <typename Cost, typename Fits>
    Rank best(const std::vector<Rank>& list, const Ranking& ranking, const Word* those, Rank from, Cost cost,
              Fits fits) {
      if (none_ || first_of([&](std::size_t w) { return left_[w] & ~those[w]; }, 0, ranks_) == kNone) return kNone;
      // Ranks whose counts differ by at most kApart are equal, and at most kLookedAt ranks are compared. 1,024 ranks,
      // after last over the bound, mean over 24 plans of few late ranks: kApart 1, 2, 4: 1.207, 1.192, 1.190; kLookedAt
      // 32, 64, 128, 256: 1.216, 1.207, 1.193, 1.190.
      constexpr int kApart = 4, kLookedAt = 256;
      alike_.clear();
      std::size_t least = 0;
      for (const Rank r : list) {
        if (!(left_[clairvoyant::word(r)] & ~those[clairvoyant::word(r)] & clairvoyant::bit(r))) continue;
        if (!alike_.empty() &&
            (std::ssize(alike_) == kLookedAt || ranking.count(r) > ranking.count(alike_.front().second) + kApart))
          break;
        alike_.push_back({std::int64_t{cost(r)} * ranks_ + (r < from ? r - from + ranks_ : r - from), r});
        if (alike_.back() < alike_[least]) least = alike_.size() - 1;
      }
      while (!alike_.empty()) {
        const Rank r = alike_[least].second;
        if (fits(r)) return r;
        drop(r);
        if (none_) break;
        alike_[least] = alike_.back(), alike_.pop_back();
        least = static_cast<std::size_t>(std::min_element(alike_.begin(), alike_.end()) - alike_.begin());
      }
      return kNone;
    }

   private:
    static constexpr int kAsked = 32;
    void drop(Rank r) {
      left_[clairvoyant::word(r)] &= ~clairvoyant::bit(r);
      if (++asked_ == kAsked) std::fill(left_.begin(), left_.end(), Word{0});
      look();
    }
    void look() {
      none_ = first_of([&](std::size_t w) { return left_[w]; }, 0, ranks_) == kNone;
    }
    std::vector<Word>& left_;
    std::vector<std::pair<std::int64_t, Rank>>& alike_;
    int ranks_;
    int asked_ = 0;
    bool none_;
  };

  /// The ranks that a receiver may ask for a message: also idle ones, if the receiver can hold the message back.
  Set callable(Rank q) { return eager_ || !ahead_.holds(q, now_) ? kReady : kSenders; }

  bool in_turn(Rank src, Rank dst, bool added) { return quiet_ || ahead_.in_turn(src, dst, added, now_); }

  void transfer(Rank src, Rank dst, int j, bool final) {
    set_busy(kSenders, src), set_busy(kReceivers, dst);
    if (quiet_ && !lull_ && !ahead_.in_turn(src, dst, !final || dst == problem_.sink, now_)) kept_ = false;
    const Foresight::Work work = final && dst != problem_.sink ? Foresight::Work{} : work_on(j, src);
    const auto [there, may_send, may_receive, held] = ahead_.send(src, dst, problem_.bytes(j), work, now_);
    post(may_send, What::may_send, src, 0), post(may_receive, What::may_receive, dst, 0);
    emit_({(now_ - grid_.phase) / grid_.slot, (there - grid_.phase) / grid_.slot, src, dst, j,
           final && dst != problem_.sink, held});
    --to_go_;
    if (final) {
      promise(j, dst);
      post(there, What::is_final, dst, j);
      end_ = std::max(end_, there);
    } else {
      has_less(src, dst);
      const bool sum = sums_.test(src, j);
      if (sum) sums_.clear(src, j), summed_.clear(j, src);
      else unsent_.clear(src, j), contributors_.clear(j, src);
      const int k = sum ? 0 : at(place_, src);
      Merges& merges = merges_of(k, j);
      merges.done = std::max(merges.done, there);
      if (--merges.left > 0) {
        post(there, What::lands, dst, j);
      } else {
        post(merges.done, k ? What::is_summed : What::is_final, dst, j);
        // A rank that will have something to pass on needs this less than a rank that has nothing.
        if (k == 0) end_ = std::max(end_, merges.done), promise(j, dst);
      }
    }
  }

  // Contributions, and sums of several, to owners and other collectors.
  void contribute(Rank p) {
    if (problem_.source >= 0 || !free_.test(kReady, p)) return;
    const auto open_to = [&](int k) { return [this, p, k](int j) { return in_turn(p, collector(k, j), true); }; };
    if (places_ > 1)
      if (const int j = first_around(both(sums_[p], open_[0]), 0, segments_, open_to(0)); j != kNone)
        return transfer(p, collector(0, j), j, false);
    const int k = at(place_, p);
    const auto mine = both(unsent_[p], open_[k]);
    const int first = first_of(mine, 0, segments_);
    if (first == kNone) return;
    // Of the first block of segments, one per owner, that has any: in turn.
    const int block = std::min(static_cast<int>(owners_.size()), ranks_), begin = first / block * block,
              end = std::min(segments_, begin + block), size = end - begin;
    // Sums in rank order meet sooner the other way round: else, 200 ranks, hdr with overhead, 4 MiB, balanced, 3.56 of
    // the bound instead of 1.91.
    const int further = at(turn_, p) % size, turn = begin + (problem_.ordered ? (size - further) % size : further);
    int j = first_of(mine, turn, end);
    j = first_around(mine, j == kNone ? first : j, segments_, open_to(k));
    if (j != kNone) transfer(p, collector(k, j), j, false);
  }
  void collect(Rank q) {
    if (at(taken_, q).empty() || !free_.test(kReceivers, q) ||
        first_of(both(to_owner_[q], free_[eager_ ? kReady : kSenders]), 0, ranks_) == kNone)
      return;
    Candidates senders(*this, callable(q));
    const auto may = [&](Rank r) { return in_turn(r, q, true); };
    for (const auto& [j, k] : at(taken_, q)) {
      if (senders.none()) return;
      Rank p =
          k == 0 && places_ > 1 ? senders.first([of = summed_[j]](std::size_t w) { return of[w]; }, q, may) : kNone;
      if (p == kNone) p = senders.first(both(contributors_[j], here_[k]), q, may);
      if (p != kNone) return transfer(p, q, j, false);
    }
  }

  /// Orders the ranks that may send final segments now. Ranks with common segments only go first, because a scarce
  /// segment always has a receiver.
  void by_what_few_have() {
    spreaders_.clear(), emptiest_.clear();
    if (!anything_to_spread()) return;
    for (const Rank r : holders_.order())
      if (lacks_something(r) && free_.test(kReceivers, r)) emptiest_.push_back(r), free_.set(kLacking, r);
    if (emptiest_.empty()) return;
    std::copy_n(free_[kReady], candidates_.size(), candidates_.begin());
    rarest_first([&](int j) {
      Word left = 0;
      for (std::size_t w = 0; w < candidates_.size(); ++w) {
        for (Word bits = has_[j][w] & candidates_[w]; bits; bits &= bits - 1)
          spreaders_.push_back(static_cast<Rank>(w * kWordBits) + std::countr_zero(bits));
        left |= candidates_[w] &= ~has_[j][w];
      }
      return left == 0;
    });
    std::reverse(spreaders_.begin(), spreaders_.end());
    // All of a broadcast goes through its source's port.
    if (const auto source = std::find(spreaders_.begin(), spreaders_.end(), problem_.source);
        source != spreaders_.end())
      std::rotate(spreaders_.begin(), source, source + 1);
  }

  // What is final, or on its way to be, the rarest first.
  template <typename Try>
  void rarest_first(Try attempt) {
    for (int i = copies_.end_of(0), last = copies_.end_of(most_copies()); i < last; ++i)
      if (attempt(at(copies_.order(), i))) return;
  }
  int most_copies() const { return problem_.sink >= 0 ? 1 : ranks_ - 1; }
  bool anything_to_spread() const { return copies_.end_of(0) < copies_.end_of(most_copies()); }
  void spread_from(Rank p) {
    if (!free_.test(kReady, p)) return;
    Candidates receivers(*this, kLacking);
    rarest_first([&](int j) {
      if (!has_.test(j, p)) return receivers.none();
      // Scarce segments go to ranks with nothing as new to pass on, and common segments to busy ranks.
      const int sign = copies_.count(j) < passed_on_ ? -1 : 1;
      const Rank q = receivers.best(
          emptiest_, holders_, promised_[j], p, [&](Rank r) { return sign * newest_copies(r); },
          [&](Rank r) { return in_turn(p, r, r == problem_.sink); });
      if (q == kNone) return receivers.none();
      emptiest_.erase(std::find(emptiest_.begin(), emptiest_.end(), q));
      return transfer(p, q, j, true), true;
    });
  }
  void spread_to(Rank q) {
    if (!lacks_something(q) || !free_.test(kReceivers, q)) return;
    Candidates senders(*this, callable(q));
    rarest_first([&](int j) {
      if (promised_.test(j, q)) return senders.none();
      const Rank p = senders.first([of = has_[j]](std::size_t w) { return of[w]; }, q,
                                   [&](Rank r) { return in_turn(r, q, q == problem_.sink); });
      if (p != kNone) transfer(p, q, j, true);
      return p != kNone || senders.none();
    });
  }

  bool lacks_something(Rank r) const { return holders_.count(r) < segments_; }
  /// One copy more.
  void promise(int j, Rank holder) {
    promised_.set(j, holder), copies_.add(j), holders_.add(holder);
    if (int& newest = at(newest_, holder); newest == kNone || copies_.count(j) < copies_.count(newest)) newest = j;
  }
  /// Copies of the newest segment that a rank has been promised. Without one: the number of ranks.
  int newest_copies(Rank r) const { return at(newest_, r) == kNone ? ranks_ : copies_.count(at(newest_, r)); }

  const Problem& problem_;
  const Emit& emit_;
  const int ranks_, segments_;
  const std::span<const Rank> owners_;
  const int places_;
  struct Taken {
    int segment, place;
  };
  std::vector<std::vector<Taken>> taken_;
  std::vector<int> turn_, place_;  // [ranks]
  std::vector<Rank> collector_;    // [places][segments]
  BitRows open_;                   // [places][segments] those whose collector may receive
  BitRows to_owner_;               // [ranks][ranks] who has contributions for it, or sums,
  std::vector<int> to_send_;       // and how many
  BitRows unsent_, contributors_, sums_, summed_, here_, has_, promised_, free_;
  std::vector<Word> candidates_;
  std::vector<std::pair<std::int64_t, Rank>> alike_;  // by cost
  std::vector<int> newest_;                           // [ranks] see newest_copies
  const double passed_on_;                            // below so many copies a segment is passed on
  Ranking holders_;                                   // ranks, by final segments that have been promised them
  std::vector<Rank> spreaders_, emptiest_;            // of now; who may receive, with the least first
  struct Merges {
    int left = 0;
    Nanoseconds done = 0;
  };
  Merges& merges_of(int place, int j) { return at(merges_, place * segments_ + j); }
  std::vector<Merges> merges_;
  BitRows waiting_;                                   // sums that wait for their neighbours
  Ranking copies_;                                    // segments, by those whom they have been promised
  std::map<Nanoseconds, std::vector<Event>> events_;  // on the grid
  std::int64_t to_go_ = 0;
  bool quiet_ = false, lull_ = false, kept_ = true;
  const bool eager_;
  const Grid grid_;
  Foresight ahead_;
  Nanoseconds now_ = 0, end_ = 0, busy_since_ = 0;
};

}  // namespace

Outcome plan(const Problem& problem, const Emit& emit) { return Planner(problem, emit).run(); }

}  // namespace latecomer::core::exchange
