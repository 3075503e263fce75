// SPDX-License-Identifier: BSD-3-Clause
// Accumulates records per site, and converts a process's contribution to bytes and back.
#include "profiles/record/record.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/pap/pattern.hpp"
#include "profiles/record/bytes.hpp"
#include "profiles/record/job_size.hpp"
#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {

std::uint64_t site_hash(std::string_view build_id, std::string_view module, std::uint64_t offset) {
  std::string_view name = module;
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const std::uint64_t h = core::mix64(core::fnv1a(build_id.empty() ? name : build_id) ^ core::mix64(offset));
  return h == 0 ? 1 : h;
}

std::uint64_t SiteKey::number() const {
  return core::mix64(site ^ core::mix64(static_cast<std::uint64_t>(op) << 32 | static_cast<std::uint32_t>(comm_size)));
}

std::string SiteKey::id() const { return core::hex16(number()); }

void LocalSite::merge(const LocalSite& o) {
  calls += o.calls;
  owned += o.owned;
  outside += o.outside;
  stood += o.stood;
  rested += o.rested;
  bytes_min = std::min(bytes_min, o.bytes_min);
  bytes_max = std::max(bytes_max, o.bytes_max);
  bytes_sum += o.bytes_sum;
  sized += o.sized;
  elapsed.merge(o.elapsed);
  before.merge(o.before);
}

LocalSite& LocalBook::operator[](const SiteKey& key) {
  const auto place = [&](const SiteKey& k) {
    const std::size_t mask = index_.size() - 1;
    std::size_t at =
        (k.site ^ static_cast<std::uint64_t>(k.op) << 7 ^ static_cast<std::uint64_t>(k.comm_size) << 13 ^ k.callers) &
        mask;
    while (index_[at] != 0 && entries_[index_[at] - 1].key != k) at = (at + 1) & mask;
    return at;
  };
  if (index_.empty()) index_.assign(64, 0);
  std::size_t at = place(key);
  if (index_[at] != 0) return entries_[index_[at] - 1].site;
  if (entries_.size() >= kMostWithCallers && key.callers != 0) return (*this)[key.site_only()];
  if (entries_.size() >= kMostSites && key.site != 0) return (*this)[{0, core::Collective::barrier, 0}];
  entries_.push_back({key, {}});
  index_[at] = static_cast<std::uint32_t>(entries_.size());
  if (entries_.size() * 2 > index_.size()) {
    index_.assign(index_.size() * 2, 0);
    for (std::size_t i = 0; i < entries_.size(); ++i)
      index_[place(entries_[i].key)] = static_cast<std::uint32_t>(i + 1);
  }
  return entries_.back().site;
}

RankOffsets& RankRows::at_or_new(std::int32_t row, std::size_t guess) {
  if (guess < rows_.size() && rows_[guess].first == row) return rows_[guess].second;
  const auto at = std::ranges::lower_bound(rows_, row, {}, &Row::first);
  if (at != rows_.end() && at->first == row) return at->second;
  return rows_.insert(at, {row, {}})->second;
}

const RankOffsets& RankRows::at(std::int32_t row) const {
  static const RankOffsets nothing;
  const auto at = std::ranges::lower_bound(rows_, row, {}, &Row::first);
  return at != rows_.end() && at->first == row ? at->second : nothing;
}

PatternSite& SiteBook::at(SiteKey key) {
  if (const auto found = sites_.find(key); found != sites_.end()) return found->second;
  if (key.callers != 0 && (sites_.size() >= kMostWithCallers || caller_rows_ >= kMostCallerRows))
    return at(key.site_only());
  if (key.callers != 0) caller_rows_ += static_cast<std::size_t>(std::max(key.comm_size / per_row_, 1));
  return sites_[sites_.size() < kMostSites || key.site == 0 ? key : SiteKey{}];
}

PatternSite& SiteBook::site_at(const SiteKey& key) {
  if (!latest_.site || latest_.key != key) {
    latest_.site = &at(key);
    latest_.key = key;
  }
  return *latest_.site;
}

void PatternSite::merge(const PatternSite& o) {
  calls += o.calls;
  divergent_calls += o.divergent_calls;
  other_callers += o.other_callers;
  logged += o.logged;
  waits.merge(o.waits);
  imbalance.merge(o.imbalance);
  after_last.merge(o.after_last);
  factor_milli.merge(o.factor_milli);
  history.calls += o.history.calls;
  history.error_sum_ns += o.history.error_sum_ns;
  edge.calls += o.edge.calls;
  edge.error_sum_ns += o.edge.error_sum_ns;
  std::size_t guess = 0;
  for (const auto& [row, offsets] : o.ranks.rows()) {
    RankOffsets& mine = ranks.at_or_new(row, guess++);
    mine.offset.merge(offsets.offset);
    mine.last_count += offsets.last_count;
    mine.waited_ns += offsets.waited_ns;
    mine.awaited_ns += offsets.awaited_ns;
  }
  for (const auto& [algorithm, d] : o.dispatch) {
    dispatch[algorithm].calls += d.calls;
    dispatch[algorithm].elapsed_sum += d.elapsed_sum;
    dispatch[algorithm].after_last_sum += d.after_last_sum;
  }
}

namespace {

/// The record of the root, or else of the first rank. The call counts for its site.
const CallRecord& owner_of(std::span<const CallRecord* const> records) {
  return *records[core::is_rooted(records[0]->op) && records[0]->root >= 0 &&
                          records[0]->root < static_cast<Rank>(records.size())
                      ? static_cast<std::size_t>(records[0]->root)
                      : 0];
}

}  // namespace

void SiteBook::record(std::span<const CallRecord* const> records, std::span<const Rank> world) {
  const CallRecord& owner = owner_of(records);
  std::vector<Nanoseconds> arrivals_of, exits;
  std::int64_t bytes = 0;
  for (const CallRecord* r : records) {
    arrivals_of.push_back(r->arrival);
    exits.push_back(r->exit);
    bytes += std::max<Bytes>(r->bytes, 0);
  }
  record({{owner.site, owner.op, static_cast<std::int32_t>(records.size())},
          groups.of(world),
          owner.root,
          core::is_irregular(owner.op) ? bytes : owner.bytes,
          owner.algorithm,
          owner.kind == core::CallKind::blocking},
         arrivals_of, exits);
}

void SiteBook::record(const ArrivalRecord::Kind& kind, std::span<const Nanoseconds> of_arrivals,
                      std::span<const Nanoseconds> exits) {
  // Each leader gets the share of the memory that its communicators have of the ranks.
  arrivals.start(static_cast<std::size_t>(
      static_cast<double>(ArrivalRecord::kMostBytes) *
      std::min(1.0, static_cast<double>(groups.members()) / static_cast<double>(std::max(1, ranks_)))));
  arrivals.add(kind, of_arrivals, exits);
}

void SiteBook::add_call(const CallDigest& call, const Members& members, const CallFacts& facts,
                        const core::Network* network, const StandsFor& stands_for) {
  const std::uint32_t times = stands_for.epochs;
  const auto size = static_cast<std::int32_t>(members.world.size());
  const SiteKey site_of{call.site, call.op, size, call.callers};
  PatternSite& site = site_at(site_of);
  Group& group = groups[members.group];
  const Nanoseconds imbalance = call.last - call.first;
  ++site.logged;
  site.calls += times;
  site.divergent_calls += call.divergent * times;
  site.other_callers += call.other_callers * times;
  site.imbalance.add(imbalance, times, stands_for.time);
  group.calls += times;
  group.imbalance_ns += static_cast<double>(imbalance) * stands_for.time;
  if (size > 1 && facts.first < first_call.arrival) first_call = {.arrival = facts.first, .site = site_of.number()};
  if (network && call.bytes >= 0)
    if (const auto message = static_cast<double>(network->step_ns(call.bytes)); message > 0)
      site.factor_milli.add(static_cast<std::int64_t>(1000.0 * static_cast<double>(imbalance) / message), times,
                            stands_for.time);
  if (!call.complete) return;
  site.after_last.add(call.exit - call.last, times, stands_for.time);
  const double after_last = static_cast<double>(std::max<Nanoseconds>(call.exit - call.last, 0)) * stands_for.time;
  DispatchStats& d = site.dispatch[call.algorithm];
  d.calls += times;
  d.elapsed_sum += static_cast<double>(call.elapsed) * stands_for.time / size;
  d.after_last_sum += after_last;
  group.after_last_ns += after_last;
}

CallSums SiteBook::add_own(const CallRecord& record, const CallFacts& facts, Rank rank, Rank own, std::int32_t size,
                           const StandsFor& stands_for) {
  const CallSums made = sums_of(record, facts, rank);
  const std::uint32_t times = stands_for.epochs;
  const double waited =
      static_cast<double>(made.waited) * stands_for.time * (facts.with_arrivals ? stands_for.scans : 1);
  const bool latest = facts.latest == rank;
  PatternSite& site = site_at({facts.site, record.op, size, facts.callers});
  RankOffsets& row = site.ranks.at_or_new(own / per_row_, static_cast<std::size_t>(rank));
  row.offset.add(record.arrival - facts.first, times, stands_for.time);
  row.last_count += latest * times;
  row.waited_ns += waited;
  if (size == 1) return made;
  RankSums& sum = sums[own];
  sum.waited_ns += waited;
  // The time from the mean arrival of the other ranks to the rank's own.
  sum.late_ns += static_cast<double>(size * (record.arrival - facts.first) - facts.arrivals) * stands_for.time /
                 static_cast<double>(size - 1);
  sum.last_count += latest * times;
  sum.calls += times;
  return made;
}

void SiteBook::add_awaited(const CallDigest& call, const Members& members, const CallFacts& facts, const CallSums& all,
                           const StandsFor& stands_for) {
  if (all.waited == 0 && !call.by_pattern && stands_for.epochs == 1) return;
  const auto size = static_cast<std::int32_t>(members.world.size());
  PatternSite& site = site_at({call.site, call.op, size, call.callers});
  site.waits.add(stands_for, static_cast<double>(all.waited));
  if (call.by_pattern) {
    PatternSource& source = (call.edge & kRanByEdge) != 0 ? site.edge : site.history;
    source.calls += stands_for.epochs;
    source.error_sum_ns += static_cast<double>(all.error) * stands_for.time / size;
  }
  if (facts.awaited >= 0)
    add_wait(site, members, facts.first, facts.awaited, static_cast<double>(all.waited) * stands_for.time);
}

void SiteBook::add_wait(PatternSite& site, const Members& members, Nanoseconds first, Rank awaited, double ns) {
  const Rank of = members.world[static_cast<std::size_t>(awaited)];
  site.ranks.at_or_new(of / per_row_, static_cast<std::size_t>(awaited)).awaited_ns += ns;
  sums[of].awaited_ns += ns;
  groups[members.group].waited_ns += ns;
  if (first != first_call.arrival) return;
  first_call.waited_ns += ns;
  if (ns > first_call.awaited_ns) {
    first_call.awaited_ns = ns;
    first_call.awaited = of;
  }
}

void SiteBook::add_scan(const CallDigest& call, const Members& members, std::span<const Nanoseconds> of_arrivals,
                        const StandsFor& stands_for) {
  if (call.kind != core::CallKind::blocking || waiting_in(call.op) != WaitRule::for_lower_ranks) return;
  PatternSite& site = site_at({call.site, call.op, static_cast<std::int32_t>(members.world.size()), call.callers});
  std::vector<double> awaited(members.world.size());
  for_each_wait(
      call.op, call.root, members.world.size(), [&](std::size_t r) { return of_arrivals[r]; },
      [](std::size_t) { return INT64_MAX; },  // nobody leaves a scan before the ranks below have come
      [&](std::size_t, std::size_t for_rank, Nanoseconds spent) {
        awaited[for_rank] += static_cast<double>(spent) * stands_for.scans * stands_for.time;
      });
  for (std::size_t r = 0; r < awaited.size(); ++r)
    if (awaited[r] > 0) add_wait(site, members, call.first, static_cast<Rank>(r), awaited[r]);
}

bool SiteBook::add(std::span<const CallRecord* const> records, std::span<const Rank> world, Nanoseconds tie_ns,
                   const core::Network* network, std::span<const char> counted) {
  const auto size = static_cast<int>(records.size());
  CallDigest call;
  for (Rank r = 0; r < size; ++r) call.add(*records[static_cast<std::size_t>(r)], r, size);
  const CallFacts facts = facts_of(call, size, tie_ns);
  const Members members{world, groups.of(world)};
  add_call(call, members, facts, network);
  std::vector<Nanoseconds> of_arrivals;
  for (const CallRecord* r : records) of_arrivals.push_back(r->arrival);
  const bool scan = waiting_in(call.op) == WaitRule::for_lower_ranks;
  CallSums all;
  for (Rank r = 0; r < size; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const CallFacts its = scan ? facts_below(facts, of_arrivals, r) : facts;
    const CallSums one = !counted.empty() && counted[at] ? sums_of(*records[at], its, r)
                                                         : add_own(*records[at], its, r, world[at], size);
    all.waited += one.waited;
    all.error += one.error;
  }
  add_awaited(call, members, facts, all);
  if (scan) add_scan(call, members, of_arrivals);
  if (records_) record(records, world);
  return call.divergent;
}

void SiteBook::merge(const SiteBook& other) {
  for (const auto& [key, site] : other.sites_) merge(key, site);
  std::vector<std::uint32_t> here;
  here.reserve(other.groups.all().size());
  for (const Group& group : other.groups.all()) {
    here.push_back(group.ranks.empty() ? Groups::kOther : groups.of(group.ranks));
    groups[here.back()].add(group);
  }
  arrivals.merge(other.arrivals, here);
  sums.merge(other.sums);
  if (other.first_call.arrival < first_call.arrival) first_call = other.first_call;
}

namespace {

/// The members at the begin of the bytes of a contribution.
auto head_of(auto& c) {
  return std::tie(c.job.program, c.job.command_line, c.job.start, c.job.mpi_library, c.job.mode, c.job.ranks,
                  c.job.wall_time_s, c.job.network_from, c.job.network, c.job.record_arrivals, c.job.promised,
                  c.job.forced, c.job_key, c.finished, c.rank, c.host, c.clock_domain, c.clock_offset,
                  c.clock_uncertainty, c.clock_looks, c.edges, c.edge_sum, c.process, c.unplanned, c.loads,
                  c.not_counted, c.timed_sites, c.peers, c.frames, c.places, c.code, c.stretches);
}

/// Those at the end.
auto tail_of(auto& c) {
  return std::tie(c.sample, c.message_ends, c.plans, c.decisions, c.learned, c.job.history.file, c.job.history.why_not,
                  c.job.history.calls);
}

/// The members of a site except for its rows of ranks and algorithms.
auto sums_of_site(auto& p) {
  return std::tie(p.calls, p.divergent_calls, p.other_callers, p.logged, p.waits, p.imbalance, p.after_last,
                  p.factor_milli, p.history, p.edge);
}

auto parts_of(auto& arrivals) {
  return std::tie(arrivals.most, arrivals.stride, arrivals.seen, arrivals.kinds, arrivals.calls, arrivals.times);
}

auto parts_of_group(auto& g) { return std::tie(g.calls, g.waited_ns, g.imbalance_ns, g.after_last_ns, g.ranks); }

}  // namespace

void Contribution::serialize(std::string& out, std::span<const LiveLog> live) const {
  ByteWriter w(out);
  w.write(head_of(*this));
  w.each(local.entries(), [&](const LocalBook::Entry& e) { w.write(e.key, e.site); });
  w.each(patterns.sites(), [&](const auto& kv) {
    const PatternSite& p = kv.second;
    w.write(kv.first, sums_of_site(p), p.ranks.rows(), p.dispatch);
  });
  w.each(patterns.groups.all(), [&](const Group& g) { w.write(parts_of_group(g)); });
  std::uint64_t ranks_with_sums = 0;
  patterns.sums.each([&](Rank, const RankSums&) { ++ranks_with_sums; });
  w.write(patterns.first_call, ranks_with_sums);
  patterns.sums.each([&](Rank of, const RankSums& sums) { w.write(of, sums); });
  w.write(parts_of(patterns.arrivals.data()), warnings, logs, live, tail_of(*this));
}

bool Contribution::deserialize(std::string_view bytes, Contribution& c) {
  ByteReader r(bytes);
  r.read(head_of(c));
  r.good = r.good && c.job.network_from <= NetworkFrom::end;
  if (!r.good || !is_rank_of(c.rank, c.job.ranks)) return false;
  c.patterns.job_of(c.job.ranks);
  r.each([&] {
    SiteKey key;
    LocalSite site;
    r.read(key, site);
    c.local[key].merge(site);
  });
  r.each([&] {
    SiteKey key;
    PatternSite p;
    r.read(key, sums_of_site(p));
    std::size_t guess = 0;
    r.each([&] {
      std::int32_t row = 0;
      r.read(row);
      r.read(p.ranks.at_or_new(row, guess++));
    });
    r.read(p.dispatch);
    c.patterns.merge(key, p);
  });
  r.each([&] {
    Group group;
    r.read(parts_of_group(group));
    c.patterns.groups[group.ranks.empty() ? Groups::kOther : c.patterns.groups.of(group.ranks)].add(group);
  });
  r.read(c.patterns.first_call);
  r.good = r.good && (c.patterns.first_call.awaited < 0 || is_rank_of(c.patterns.first_call.awaited, c.job.ranks));
  r.each([&] {
    Rank of = -1;
    RankSums sums;
    r.read(of, sums);
    r.good = r.good && is_rank_of(of, c.job.ranks);
    if (r.good) c.patterns.sums[of].add(sums);
  });
  ArrivalRecord::Data arrivals;
  r.read(parts_of(arrivals));
  r.good = r.good && c.patterns.arrivals.restore(std::move(arrivals), c.patterns.groups.all().size());
  // The logs that were still being written follow the others.
  r.read(c.warnings, c.logs, c.logs, tail_of(c));
  return r.good;
}

}  // namespace latecomer::profiles
