// SPDX-License-Identifier: BSD-3-Clause
// Merges the records of a call, and derives from the whole what each rank needs.
#include "profiles/record/digest.hpp"

#include <algorithm>
#include <cstdlib>

#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {
namespace {

bool is_owner(const CallRecord& record, Rank rank, int size) {
  const bool has_root = core::is_rooted(record.op) && record.root >= 0 && record.root < size;
  return rank == (has_root ? record.root : 0);
}

/// Whether others can wait for this rank in the call, so that it may be the awaited one.
bool can_be_awaited(const CallRecord& record, Rank rank, int size) {
  if (record.kind != core::CallKind::blocking) return false;
  if (core::is_rooted(record.op) && (record.root < 0 || record.root >= size)) return false;
  switch (waiting_in(record.op)) {
    case Waiting::all_for_last:
      return true;
    case Waiting::root_for_last:
      return rank != record.root;
    case Waiting::others_for_root:
      return rank == record.root;
    case Waiting::for_lower_ranks:  // each rank waits for another one
    case Waiting::unknown:
      break;
  }
  return false;
}

}  // namespace

void CallDigest::add(const CallRecord& record, Rank rank, int size) {
  CallDigest one;
  one.first = one.last = record.arrival;
  one.exit = record.exit;
  one.elapsed = record.exit - record.arrival;
  one.complete = record.exit != 0;
  one.latest = rank;
  one.ranks = 1;
  one.said = (record.edge & kSaid) != 0;
  one.sampled = (record.edge & kSampled) != 0;
  one.op = record.op, one.kind = record.kind, one.root = record.root;
  one.site = record.site, one.callers = record.callers;
  if (can_be_awaited(record, rank, size)) one.awaited = rank, one.awaited_at = record.arrival;
  if (core::is_irregular(record.op)) one.bytes = std::max<std::int64_t>(record.bytes, 0);
  if (is_owner(record, rank, size)) {
    one.owned = true;
    one.algorithm = record.algorithm, one.edge = record.edge;
    one.by_pattern = record.expected >= 0;
    if (!core::is_irregular(record.op)) one.bytes = record.bytes;
  }
  merge(one);
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
  facts.tie = std::max<Nanoseconds>(tie, 0);
  facts.latest = digest.last - digest.first > facts.tie ? digest.latest : -1;
  facts.known = digest.ranks == size && !digest.mixed && digest.owned;
  facts.by_pattern = digest.by_pattern;
  return facts;
}

CallSums sums_of(const CallRecord& record, const CallFacts& facts, Rank rank) {
  CallSums sums;
  if (record.kind == core::CallKind::blocking && facts.awaited >= 0 && facts.awaited != rank &&
      (waiting_in(record.op) != Waiting::root_for_last || rank == record.root))
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
