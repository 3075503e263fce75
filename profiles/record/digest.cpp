// SPDX-License-Identifier: BSD-3-Clause
// Merges the records of a call, and derives from the whole what each rank needs.
#include "profiles/record/digest.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {
namespace {

/// waiting_in() of each collective: the node of a tree asks once per record.
constexpr auto kWaitings = [] {
  std::array<Waiting, core::kCollectives> out{};
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
  const Waiting waiting = kWaitings[static_cast<std::size_t>(record.op)];
  if (waiting == Waiting::all_for_last) return true;
  if (record.root < 0 || record.root >= size) return false;
  // In a scan each rank waits for another one.
  return waiting == Waiting::root_for_last ? rank != record.root
                                           : waiting == Waiting::others_for_root && rank == record.root;
}

}  // namespace

void CallDigest::add(const CallRecord& record, Rank rank, int size) {
  const bool irregular = core::is_irregular(record.op);
  if (ranks == 0) {
    first = last = record.arrival, latest = rank;
    op = record.op, kind = record.kind, root = record.root;
    site = record.site, callers = record.callers;
    bytes = irregular ? 0 : -1;
  } else {
    mixed = mixed || op != record.op || root != record.root;
    divergent = divergent || site != record.site;
    other_callers = other_callers || callers != record.callers;
    if (record.arrival < first) arrivals += ranks * (first - record.arrival), first = record.arrival;
    if (record.arrival > last || (record.arrival == last && rank < latest)) last = record.arrival, latest = rank;
  }
  arrivals += record.arrival - first;
  if (irregular) bytes += std::max<std::int64_t>(record.bytes, 0);
  if (rank == owner_of(record, size)) {
    owned = true;
    site = record.site, callers = record.callers;
    algorithm = record.algorithm, edge = record.edge, by_pattern = record.expected >= 0;
    if (!irregular) bytes = record.bytes;
  }
  if (can_be_awaited(record, rank, size) &&
      (awaited < 0 || record.arrival > awaited_at || (record.arrival == awaited_at && rank < awaited)))
    awaited = rank, awaited_at = record.arrival;
  exit = std::max(exit, record.exit);
  elapsed += record.exit - record.arrival;
  complete = complete && record.exit != 0;
  ++ranks, said += (record.edge & kSaid) != 0;
  sampled = sampled || (record.edge & kSampled) != 0;
}

void CallDigest::merge(const CallDigest& other) {
  if (other.ranks == 0) return;
  if (ranks == 0) {
    *this = other;
    return;
  }
  mixed = mixed || other.mixed || op != other.op || root != other.root;
  divergent = divergent || other.divergent || site != other.site;
  other_callers = other_callers || other.other_callers || callers != other.callers;
  if (core::is_irregular(op)) bytes += other.bytes;
  else if (other.owned) bytes = other.bytes;
  if (other.owned) {
    owned = true;
    site = other.site, callers = other.callers;
    algorithm = other.algorithm, edge = other.edge, by_pattern = other.by_pattern;
  }
  const Nanoseconds earliest = std::min(first, other.first);
  arrivals += ranks * (first - earliest) + other.arrivals + other.ranks * (other.first - earliest);
  first = earliest;
  if (other.last > last || (other.last == last && other.latest < latest)) last = other.last, latest = other.latest;
  if (other.awaited >= 0 &&
      (awaited < 0 || other.awaited_at > awaited_at || (other.awaited_at == awaited_at && other.awaited < awaited)))
    awaited = other.awaited, awaited_at = other.awaited_at;
  exit = std::max(exit, other.exit);
  elapsed += other.elapsed;
  complete = complete && other.complete;
  sampled = sampled || other.sampled;
  ranks += other.ranks, said += other.said;
}

CallFacts facts_of(const CallDigest& digest, int size, Nanoseconds tie) {
  CallFacts facts;
  facts.first = digest.first, facts.last = digest.last, facts.arrivals = digest.arrivals;
  facts.awaited = digest.awaited, facts.awaited_at = digest.awaited_at;
  facts.site = digest.site, facts.callers = digest.callers;
  facts.latest = digest.last - digest.first > std::max<Nanoseconds>(tie, 0) ? digest.latest : -1;
  facts.known = digest.ranks == size && !digest.mixed && digest.owned;
  facts.by_pattern = digest.by_pattern;
  return facts;
}

CallSums sums_of(const CallRecord& record, const CallFacts& facts, Rank rank) {
  CallSums sums;
  if (record.kind == core::CallKind::blocking && facts.awaited >= 0 && facts.awaited != rank &&
      (kWaitings[static_cast<std::size_t>(record.op)] != Waiting::root_for_last || rank == record.root))
    sums.waited = std::max<Nanoseconds>(std::min(facts.awaited_at, record.exit) - record.arrival, 0);
  if (facts.by_pattern)
    sums.error = std::abs(record.arrival - facts.first - std::max(record.expected, 0) * kExpectedUnit);
  return sums;
}

CallFacts facts_below(CallFacts facts, std::span<const Nanoseconds> arrivals, Rank rank) {
  facts.awaited = -1, facts.awaited_at = INT64_MIN;
  for (Rank below = 0; below < rank; ++below)
    if (const Nanoseconds at = arrivals[static_cast<std::size_t>(below)]; at > facts.awaited_at)
      facts.awaited = below, facts.awaited_at = at;
  return facts;
}

}  // namespace latecomer::profiles
