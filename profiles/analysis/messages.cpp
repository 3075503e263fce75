// SPDX-License-Identifier: BSD-3-Clause
// Walks from rank to rank by the sums of each rank's waits.
#include "profiles/analysis/messages.hpp"

#include <algorithm>

#include "profiles/analysis/error_of_sum.hpp"

namespace latecomer::profiles::analysis {
namespace {

/// The share of a rank's wait that must be for one rank for a chain to name it. Derived: no other rank has as much.
constexpr double kMostMessages = 0.5;
/// A profile that names eight peers of a rank may have left out others. Then each wait may be too long, by at most an
/// eighth of the sum of all.
bool may_lack(const RankFigures& rank) { return rank.peers.size() >= 8; }
/// The standard error of a rank's wait, and of its wait for one rank at most, as a share of its wait.
double error_share(const RankFigures& rank) {
  return rank.times.messages > 0 ? rank.messages_error / rank.times.messages : 0;
}
double least_share(const RankFigures& rank) { return kMostMessages + (may_lack(rank) ? 0.125 : 0) + error_share(rank); }

double share_of(const RankFigures& rank, double ProcessTimes::*part) {
  return rank.wall > 0 ? rank.times.*part / rank.wall : 0;
}

const RankFigures* find_rank(const std::vector<RankFigures>& ranks, long number) {
  const auto at = std::ranges::lower_bound(ranks, number, {}, &RankFigures::first);
  return at != ranks.end() && at->first == number && at->wall > 0 ? &*at : nullptr;
}

/// The rank for which `rank` waits during a large part of `time`. A call that completes several messages waits for all
/// senders at once. Then the result is the sender that waits least itself, since the other senders wait for it, too.
template <typename Leaves>
const RankFigures* next_of(const std::vector<RankFigures>& ranks, const RankFigures& rank, double time,
                           Leaves leaves_out) {
  const RankFigures* next = nullptr;
  for (const IntervalFigures::Peer& peer : rank.peers) {
    if (peer.waited < least_share(rank) * time || leaves_out(peer)) continue;
    const RankFigures* there = find_rank(ranks, peer.rank);
    if (!there) return nullptr;
    if (!next || share_of(*there, &ProcessTimes::messages) < share_of(*next, &ProcessTimes::messages)) next = there;
  }
  return next;
}

const RankFigures* next_of(const std::vector<RankFigures>& ranks, const RankFigures& rank) {
  return next_of(ranks, rank, rank.times.messages, [](const IntervalFigures::Peer&) { return false; });
}

/// Whether `rank` waits longer for `other` than `other` for it.
bool longer_for(const RankFigures& rank, const RankFigures& other) {
  const auto waited = [](const RankFigures& who, long number) {
    const auto peer =
        std::ranges::find(who.peers, number, [](const IntervalFigures::Peer& p) { return static_cast<long>(p.rank); });
    return peer == who.peers.end() ? 0 : peer->waited;
  };
  return waited(rank, other.first) >
         waited(other, rank.first) + 2 * error_of_sum(rank.messages_error, other.messages_error);
}

/// The rank that `rank` waits for, if ranks are left out that wait longer for `rank`. The remaining waits must be a
/// quarter of all its waits: half of the least share of one rank. If calls waited for several ranks at once, the sums
/// do not tell the remaining waits.
const RankFigures* next_apart(const std::vector<RankFigures>& ranks, const RankFigures& rank) {
  double left = rank.times.messages, sum = 0;
  const auto in_turn = [&](const IntervalFigures::Peer& peer) {
    const RankFigures* there = find_rank(ranks, peer.rank);
    return there && longer_for(*there, rank);
  };
  for (const IntervalFigures::Peer& peer : rank.peers) {
    sum += peer.waited;
    if (in_turn(peer)) left -= peer.waited;
  }
  if (may_lack(rank) || sum > rank.times.messages || left < 0.5 * kMostMessages * rank.times.messages) return nullptr;
  return next_of(ranks, rank, left, in_turn);
}

void explain_end(const std::vector<RankFigures>& ranks, MessageChain& chain) {
  const RankFigures& last = *chain.ranks.back();
  const double waits =
      share_of(*chain.ranks[chain.ranks.size() - 2], &ProcessTimes::messages) - share_of(last, &ProcessTimes::messages);
  chain.longer = longer_part(ranks, last, &ProcessTimes::messages, kMostMessages * waits);
}

}  // namespace

std::optional<MessageChain> follow_messages(const std::vector<RankFigures>& ranks) {
  const auto most =
      std::ranges::max_element(ranks, {}, [](const RankFigures& r) { return share_of(r, &ProcessTimes::messages); });
  if (most == ranks.end() || most->times.messages <= 0 || error_share(*most) > 0.5) return {};
  MessageChain chain;
  const auto known = [&](const RankFigures* rank) { return std::ranges::find(chain.ranks, rank) != chain.ranks.end(); };
  for (const RankFigures* rank = &*most; rank;) {
    if (known(rank)) {
      chain.cycle = true;
      break;
    }
    chain.ranks.push_back(rank);
    // A rank that waits half as long as the rank before is late for another reason, so the chain ends there.
    if (chain.ranks.size() > 1 && share_of(*rank, &ProcessTimes::messages) <
                                      0.5 * share_of(*chain.ranks[chain.ranks.size() - 2], &ProcessTimes::messages)) {
      explain_end(ranks, chain);
      chain.ends = true;
      break;
    }
    const RankFigures* mostly = next_of(ranks, *rank);
    const RankFigures* other = mostly && !longer_for(*mostly, *rank) ? nullptr : next_apart(ranks, *rank);
    rank = other && !known(other) ? other : mostly;
  }
  return chain;
}

}  // namespace latecomer::profiles::analysis
