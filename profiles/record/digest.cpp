// SPDX-License-Identifier: BSD-3-Clause
// Merges the records of a call, and computes the facts and the figures of each rank from the result.
#include "profiles/record/digest.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {
namespace {

/// waiting_in() of each collective, in a table, because a node of the tree needs it for each record.
constexpr auto kWaitings = [] {
  std::array<WaitRule, core::kCollectives> out{};
  for (int op = 0; op < core::kCollectives; ++op)
    out[static_cast<std::size_t>(op)] = waiting_in(static_cast<core::Collective>(op));
  return out;
}();

/// The rank whose site has the credit for the call: the root, or rank 0.
Rank owner_of(const CallRecord& record, int size) {
  return core::is_rooted(record.op) && record.root >= 0 && record.root < size ? record.root : 0;
}

/// Whether others can wait for this rank in the call, so that it may be the awaited one.
bool can_be_awaited(const CallRecord& record, Rank rank, int size) {
  if (record.kind != core::CallKind::blocking) return false;
  const WaitRule waiting = kWaitings[static_cast<std::size_t>(record.op)];
  if (waiting == WaitRule::all_for_last) return true;
  if (record.root < 0 || record.root >= size) return false;
  // In a scan each rank waits for another one.
  return waiting == WaitRule::root_for_last ? rank != record.root
                                            : waiting == WaitRule::others_for_root && rank == record.root;
}

/// Replaces `latest`, which arrived at `at`, by a rank that arrived later, or as late with a lower number. -1: none
/// yet.
void take_later(Rank& latest, Nanoseconds& at, Rank rank, Nanoseconds arrival) {
  if (latest >= 0 && (arrival < at || (arrival == at && rank > latest))) return;
  latest = rank;
  at = arrival;
}

}  // namespace

/// Notes the rank in `other` if it made another call.
void CallDigest::compare(Rank rank, core::Collective its_op, std::int32_t its_root) {
  if (rank < 0 || other >= 0 || (its_op == op && its_root == root)) return;
  other = rank;
  other_op = its_op;
  other_root = its_root;
}

void CallDigest::add(const CallRecord& record, Rank rank, int size) {
  const bool irregular = core::is_irregular(record.op);
  if (ranks == 0) {
    first = last = record.arrival;
    latest = rank;
    maker = rank;
    op = record.op;
    kind = record.kind;
    root = record.root;
    site = record.site;
    callers = record.callers;
    bytes = irregular ? 0 : -1;
  } else {
    compare(rank, record.op, record.root);
    divergent |= site != record.site;
    other_callers |= callers != record.callers;
    if (record.arrival < first) {
      arrivals += ranks * (first - record.arrival);
      first = record.arrival;
    }
    take_later(latest, last, rank, record.arrival);
  }
  arrivals += record.arrival - first;
  if (irregular) bytes += std::max<std::int64_t>(record.bytes, 0);
  if (rank == owner_of(record, size)) {
    owned = true;
    site = record.site;
    callers = record.callers;
    algorithm = record.algorithm;
    edge = record.edge;
    by_pattern = record.expected >= 0;
    if (!irregular) bytes = record.bytes;
  }
  if (can_be_awaited(record, rank, size)) take_later(awaited, awaited_at, rank, record.arrival);
  exit = std::max(exit, record.exit);
  elapsed += record.exit - record.arrival;
  complete &= record.exit != 0;
  ++ranks;
  said += (record.edge & kSaid) != 0;
  sampled |= (record.edge & kSampled) != 0;
}

void CallDigest::merge(const CallDigest& more) {
  if (more.ranks == 0) return;
  if (ranks == 0) {
    *this = more;
    return;
  }
  compare(more.maker, more.op, more.root);
  compare(more.other, more.other_op, more.other_root);
  divergent |= more.divergent | (site != more.site);
  other_callers |= more.other_callers | (callers != more.callers);
  if (core::is_irregular(op)) bytes += more.bytes;
  else if (more.owned) bytes = more.bytes;
  if (more.owned) {
    owned = true;
    site = more.site;
    callers = more.callers;
    algorithm = more.algorithm;
    edge = more.edge;
    by_pattern = more.by_pattern;
  }
  const Nanoseconds earliest = std::min(first, more.first);
  arrivals += ranks * (first - earliest) + more.arrivals + more.ranks * (more.first - earliest);
  first = earliest;
  take_later(latest, last, more.latest, more.last);
  if (more.awaited >= 0) take_later(awaited, awaited_at, more.awaited, more.awaited_at);
  exit = std::max(exit, more.exit);
  elapsed += more.elapsed;
  complete &= more.complete;
  sampled |= more.sampled;
  ranks += more.ranks;
  said += more.said;
}

CallFacts facts_of(const CallDigest& digest, int size, Nanoseconds tie) {
  CallFacts facts;
  facts.first = digest.first;
  facts.last = digest.last;
  facts.arrivals = digest.arrivals;
  facts.awaited = digest.awaited;
  facts.awaited_at = digest.awaited_at;
  facts.site = digest.site;
  facts.callers = digest.callers;
  facts.latest = digest.last - digest.first > std::max<Nanoseconds>(tie, 0) ? digest.latest : -1;
  facts.known = digest.ranks == size && digest.other < 0 && digest.owned;
  facts.by_pattern = digest.by_pattern;
  return facts;
}

CallSums sums_of(const CallRecord& record, const CallFacts& facts, Rank rank) {
  CallSums sums;
  if (record.kind == core::CallKind::blocking && facts.awaited >= 0 && facts.awaited != rank &&
      (kWaitings[static_cast<std::size_t>(record.op)] != WaitRule::root_for_last || rank == record.root))
    sums.waited = std::max<Nanoseconds>(std::min(facts.awaited_at, record.exit) - record.arrival, 0);
  if (facts.by_pattern)
    sums.error = std::abs(record.arrival - facts.first - std::max(record.expected, 0) * kExpectedUnit);
  return sums;
}

CallFacts facts_below(CallFacts facts, std::span<const Nanoseconds> arrivals, Rank rank) {
  facts.awaited = -1;
  facts.awaited_at = INT64_MIN;
  for (Rank below = 0; below < rank; ++below)
    take_later(facts.awaited, facts.awaited_at, below, arrivals[static_cast<std::size_t>(below)]);
  return facts;
}

}  // namespace latecomer::profiles
