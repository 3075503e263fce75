// SPDX-License-Identifier: BSD-3-Clause
// Matches envelopes with receives: the protocol of ranges without MPI (docs/explanation/range_communicators.md argues
// that it is exact, and tests/shim/matching.cpp checks it on random interleavings).
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <utility>

#include "shim/range/envelope.hpp"

namespace latecomer::range {

/// The numbers that stand for any source and for any tag.
struct Wildcards {
  Rank source;
  std::int32_t tag;
};

/// `Receive` has the members `source` (may be a wildcard) and `envelope` (the pattern). Messages of one sender must be
/// given to this object in the order in which the sender sent them.
template <typename Receive>
class Matching {
 public:
  explicit Matching(Wildcards any) : any_(any) {}

  /// A message has arrived. Returns the receive that gets it, which no longer waits. Otherwise queues the message,
  /// empties `arrival`, and returns nullptr.
  Receive* match_arrival(std::unique_ptr<Arrival>& arrival) {
    const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const Receive* r) { return matches(*arrival, r->source, r->envelope); });
    if (at == waiting_.end()) {
      queued_of_collectives_ += arrival->envelope.collective != 0;
      queued_.push_back(std::move(arrival));
      return nullptr;
    }
    Receive* const out = *at;
    waiting_.erase(at);
    return out;
  }
  /// The first queued message that matches, or nullptr.
  const Arrival* find_arrival(Rank from, const Envelope& key) const {
    const auto at = first_match(from, key);
    return at == queued_.end() ? nullptr : at->get();
  }
  /// Removes it from the queue.
  std::unique_ptr<Arrival> take_arrival(Rank from, const Envelope& key) {
    const auto at = first_match(from, key);
    if (at == queued_.end()) return nullptr;
    // Gets an iterator from a const_iterator.
    const auto mine = queued_.erase(at, at);
    auto out = std::move(*mine);
    queued_.erase(mine);
    queued_of_collectives_ -= out->envelope.collective != 0;
    return out;
  }
  /// The receive waits from now on. No queued message matches it.
  void post_receive(Receive* receive) { waiting_.push_back(receive); }
  void withdraw_receive(Receive* receive) { waiting_.remove(receive); }

  /// A straight receive of a message of a collective from one sender, in two parts. First: the message, if it is
  /// queued.
  std::unique_ptr<Arrival> take_of_collective(Rank from, const Envelope& key) {
    return queued_of_collectives_ == 0 ? nullptr : take_arrival(from, key);
  }
  /// Then: takes the sender's next messages, until the message of `key` is there (returns true) or no further message
  /// is (returns false; call again). `next()`: fetches the sender's next message and returns its envelope, or nullptr.
  /// `hand_over()`: gets each message that is not of `key`, and has to give it to match_arrival().
  template <typename Next, typename HandOver>
  static bool advance_to(const Envelope& key, Next next, HandOver hand_over) {
    while (const Envelope* const envelope = next()) {
      if (envelope->same_place(key)) return true;
      hand_over();
    }
    return false;
  }

 private:
  using Arrivals = std::list<std::unique_ptr<Arrival>>;
  bool matches(const Arrival& arrival, Rank from, const Envelope& key) const {
    const Envelope& e = arrival.envelope;
    return e.where == key.where && e.collective == key.collective && (from == any_.source || from == arrival.source) &&
           (key.tag == any_.tag || key.tag == e.tag);
  }
  Arrivals::const_iterator first_match(Rank from, const Envelope& key) const {
    return std::find_if(queued_.begin(), queued_.end(), [&](const auto& a) { return matches(*a, from, key); });
  }

  const Wildcards any_;
  std::list<Receive*> waiting_;  // in the order of posting
  Arrivals queued_;              // in the order of arrival
  long long queued_of_collectives_ = 0;
};

}  // namespace latecomer::range
