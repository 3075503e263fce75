// SPDX-License-Identifier: BSD-3-Clause
// Merges contributions. The choice of data to drop depends on the data only, so all nodes of a tree drop the same data.
#include "profiles/record/merged.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/text.hpp"
#include "profiles/record/bytes.hpp"
#include "profiles/record/job_size.hpp"
#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {
namespace {

std::vector<Said> said_by(Rank rank, const std::vector<std::string>& texts) {
  std::vector<Said> out;
  out.reserve(texts.size());
  for (const std::string& text : texts) out.push_back({rank, text});
  return out;
}

/// The head of a contribution.
void take_head(const Contribution& from, Contribution& to) {
  to.job = from.job;
  to.job_key = from.job_key;
  to.finished = from.finished;
  to.rank = from.rank;
  to.host = from.host;
  to.clock_domain = from.clock_domain;
  to.clock_offset = from.clock_offset;
  to.clock_uncertainty = from.clock_uncertainty;
  to.clock_looks = from.clock_looks;
  to.process = from.process;
  to.learned = from.learned;
}

/// The kinds that are known from the sites of one process.
void take_sites_not_counted(const LocalBook& local, NotCounted& to) {
  std::uint64_t outside = 0, folded = 0;
  for (const LocalBook::Entry& e : local.entries()) {
    outside += e.site.outside;
    if (e.key.site == 0 && e.key.comm_size == 0) folded += e.site.calls - e.site.outside;
  }
  to.add_rank(Uncounted::outside, outside);
  to.add_rank(Uncounted::sites, folded);
}

std::uint64_t order_of(const Log& log) { return core::mix64(log.communicator + 1); }

}  // namespace

void Merged::add(const Contribution& one) {
  const bool first = members.empty();
  if (first || one.rank < sum.rank) take_head(one, sum);
  sizes_differ = sizes_differ || one.job.ranks != sum.job.ranks;
  if (first) sum.patterns.job_of(one.job.ranks);
  sum.patterns.merge(one.patterns);
  const std::int32_t row = one.rank / ranks_per_row(one.job.ranks);
  for (const LocalBook::Entry& e : one.local.entries()) {
    sum.local[e.key].merge(e.site);
    if (e.site.before.samples > 0 && !without_rows_.contains(e.key)) before[e.key][row].merge(e.site.before);
  }
  for (const TimedSite& site : one.timed_sites) {
    timed[site.key][row].merge(site.sums);
    if (site.lengths.count() > 0) lengths[site.key].merge(site.lengths);
  }
  limit_timed();
  for (const PeerSums& peer : one.peers) {
    const std::int32_t own = one.rank / PeerTable::per_row(one.job.ranks);
    pairs[peer.fetched != 0 ? std::pair{peer.row, own} : std::pair{own, peer.row}].merge(peer.sums);
  }
  messages.add(one.message_ends, ranks_per_row(one.job.ranks));
  for (const CodePlace& place : one.places) {
    places.try_emplace(place.frame.site, place);
    code.whole[place.frame.site] = place.whole;
  }
  code.add(one.code, one.stretches, row);
  sum.edges += one.edges;
  sum.edge_sum += one.edge_sum;
  take_frames(one.frames);
  take_unplanned(one.unplanned);
  sum.not_counted.merge(one.not_counted);
  take_sites_not_counted(one.local, sum.not_counted);
  sum.loads.insert(sum.loads.end(), one.loads.begin(), one.loads.end());
  take_warnings(said_by(one.rank, one.warnings));
  take_texts(plans, said_by(one.rank, one.plans));
  take_texts(decisions, said_by(one.rank, one.decisions));
  for (const Log& log : one.logs) sum.logs.push_back(log);
  limit_logs();
  limit_before();
  const auto at = std::ranges::upper_bound(members, one.rank, {}, &Member::rank);
  members.insert(at, {one.rank, one.finished, one.host, one.clock_domain, one.clock_offset, one.clock_uncertainty,
                      one.clock_looks, one.process, one.sample});
}

void Merged::merge(Merged&& other) {
  if (other.empty()) return;
  if (empty()) {
    *this = std::move(other);
    return;
  }
  if (other.sum.rank < sum.rank) take_head(other.sum, sum);
  sizes_differ = sizes_differ || other.sizes_differ || other.sum.job.ranks != sum.job.ranks;
  sum.patterns.merge(other.sum.patterns);
  for (const LocalBook::Entry& e : other.sum.local.entries()) sum.local[e.key].merge(e.site);
  without_rows_.merge(other.without_rows_);
  for (const auto& [key, rows] : other.before)
    if (!without_rows_.contains(key))
      for (const auto& [row, intervals] : rows) before[key][row].merge(intervals);
  std::erase_if(before, [&](const auto& entry) { return without_rows_.contains(entry.first); });
  folded_.merge(other.folded_);
  for (const auto& [key, rows] : other.timed)
    for (const auto& [row, sums] : rows) timed[key][row].merge(sums);
  for (const auto& [key, sums] : other.lengths) lengths[key].merge(sums);
  for (const auto& [key, sums] : other.pairs) pairs[key].merge(sums);
  limit_timed();
  messages.merge(std::move(other.messages), ranks_per_row(sum.job.ranks));
  code.merge(other.code);
  places.merge(other.places);
  sum.edges += other.sum.edges;
  sum.edge_sum += other.sum.edge_sum;
  take_frames(other.sum.frames);
  take_unplanned(other.sum.unplanned);
  sum.not_counted.merge(other.sum.not_counted);
  std::ranges::move(other.sum.loads, std::back_inserter(sum.loads));
  warnings_dropped += other.warnings_dropped;
  texts_dropped += other.texts_dropped;
  records_dropped += other.records_dropped;
  take_warnings(std::move(other.warnings));
  take_texts(plans, std::move(other.plans));
  take_texts(decisions, std::move(other.decisions));
  std::ranges::move(other.sum.logs, std::back_inserter(sum.logs));
  logs_below_ = std::min(logs_below_, other.logs_below_);
  limit_logs();
  limit_before();
  const auto middle = static_cast<std::ptrdiff_t>(members.size());
  std::ranges::move(other.members, std::back_inserter(members));
  std::ranges::inplace_merge(members, members.begin() + middle, {}, &Member::rank);
}

void Merged::take_frames(const std::vector<Frame>& frames) {
  // Use the frames of the first process that knows a site.
  std::set<std::pair<std::uint64_t, std::uint32_t>> fresh;
  for (const Frame& f : frames) {
    const std::pair key{f.site, f.callers};
    if (!fresh.contains(key)) {
      if (!framed_.insert(key).second) continue;
      fresh.insert(key);
    }
    sum.frames.push_back(f);
  }
}

void Merged::take_unplanned(const std::vector<Unplanned>& all) {
  // Every member of a communicator counts the same calls. So take the largest count.
  for (const Unplanned& u : all) {
    const auto found = std::ranges::find(sum.unplanned, u.algorithm, &Unplanned::algorithm);
    if (found == sum.unplanned.end()) sum.unplanned.push_back(u);
    else if (u.calls > found->calls) *found = u;
  }
}

void Merged::take_warnings(std::vector<Said>&& more) {
  std::ranges::move(more, std::back_inserter(warnings));
  if (warnings.size() <= kMostWarnings) return;
  // Keep the warnings of the lowest ranks.
  std::ranges::stable_sort(warnings, {}, &Said::rank);
  warnings_dropped += warnings.size() - kMostWarnings;
  warnings.resize(kMostWarnings);
}

void Merged::take_texts(std::vector<Said>& to, std::vector<Said>&& more) {
  for (Said& said : more) {
    if (text_bytes_ + said.text.size() > kMostTexts) {
      ++texts_dropped;
      continue;
    }
    text_bytes_ += said.text.size();
    to.push_back(std::move(said));
  }
}

void Merged::limit_logs() {
  const auto drop = [&] {
    std::erase_if(sum.logs, [&](const Log& log) {
      if (order_of(log) < logs_below_) return false;
      records_dropped += log.records.size();
      return true;
    });
  };
  if (logs_below_ != UINT64_MAX) drop();
  std::size_t records = 0;
  for (const Log& log : sum.logs) records += log.records.size();
  if (records <= kMostRecords) return;
  // A call needs the records of all members of its communicator. So drop whole communicators, in the same order on all
  // nodes.
  std::map<std::uint64_t, std::size_t> by_order;
  for (const Log& log : sum.logs) by_order[order_of(log)] += log.records.size();
  for (auto last = by_order.rbegin(); last != by_order.rend() && records > kMostRecords; ++last) {
    records -= last->second;
    logs_below_ = last->first;
  }
  drop();
}

void Merged::limit_before() {
  std::size_t rows = 0;
  for (const auto& [key, of] : before) rows += of.size();
  while (rows > kMostIntervals) {
    // Drop the site with the fewest samples, since a profile shows the sites with the most time.
    const auto samples = [](const auto& entry) {
      std::uint64_t out = 0;
      for (const auto& [row, intervals] : entry.second) out += intervals.samples;
      return out;
    };
    const auto least = std::ranges::min_element(before, {}, samples);
    rows -= least->second.size();
    without_rows_.insert(least->first);
    before.erase(least);
  }
}

void Merged::limit_timed() {
  const auto fold = [&](auto at) {
    const TimedKey key = at->first, rest{.other_threads = key.other_threads};
    for (const auto& [row, sums] : at->second) timed[rest][row].merge(sums);
    if (const auto its = lengths.extract(key)) lengths[rest].merge(its.mapped());
    timed.erase(key);
  };
  for (const TimedKey& key : folded_)
    if (const auto at = timed.find(key); at != timed.end()) fold(at);
  std::size_t rows = 0;
  for (const auto& [key, of] : timed) rows += of.size();
  while (rows > kMostIntervals && timed.size() > 1) {
    // Keep the sites with the most time, as a process does.
    const auto time = [](const auto& entry) {
      if (entry.first.site == 0) return INT64_MAX;
      Nanoseconds out = 0;
      for (const auto& [row, sums] : entry.second) out = plus(out, sums.time);
      return out;
    };
    const auto least = std::ranges::min_element(timed, {}, time);
    if (least->first.site == 0) break;
    rows -= least->second.size();
    folded_.insert(least->first);
    fold(least);
  }
}

void Merged::serialize(std::string& out) const {
  sum.serialize(out);
  const std::uint64_t first = out.size();
  ByteWriter(out, true).write(parts_of(*this), first);
}

bool Merged::deserialize(std::string_view bytes, Merged& out) {
  std::uint64_t first = 0;
  if (bytes.size() < sizeof first) return false;
  std::memcpy(&first, bytes.data() + bytes.size() - sizeof first, sizeof first);
  if (first > bytes.size() - sizeof first || !Contribution::deserialize(bytes.substr(0, first), out.sum)) return false;
  const int ranks = out.sum.job.ranks;
  ByteReader r(bytes.substr(first, bytes.size() - sizeof first - first));
  r.read(parts_of(out));
  const bool known = std::ranges::all_of(out.members, [&](const Member& m) { return is_rank_of(m.rank, ranks); });
  for (const Frame& f : out.sum.frames) out.framed_.insert({f.site, f.callers});
  return r.good && known && !out.members.empty() && std::ranges::is_sorted(out.members, {}, &Member::rank);
}

}  // namespace latecomer::profiles
