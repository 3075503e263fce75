// SPDX-License-Identifier: BSD-3-Clause
// The messages of a node, and the way of an epoch through it.
#include "profiles/record/digest_node.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/base/text.hpp"
#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {
namespace {

struct MessageHead {
  std::uint64_t identity;
  Rank from;
};

/// The samples of one rank: as many values follow as its sampled calls have, in their order.
struct BlockHead {
  Rank rank;
  std::uint32_t values;
};

template <typename T>
void append(std::vector<char>& out, const T* data, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t at = out.size();
  out.resize(at + count * sizeof(T));
  if (count > 0) std::memcpy(out.data() + at, data, count * sizeof(T));
}

template <typename T>
bool read(std::span<const char>& in, T* out, std::size_t count) {
  if (in.size() / sizeof(T) < count) return false;
  if (count > 0) std::memcpy(static_cast<void*>(out), in.data(), count * sizeof(T));
  in = in.subspan(count * sizeof(T));
  return true;
}

/// Appends to `out` all of what `step` appends, or nothing: a part that lacks its end would damage the next one.
template <typename Step>
void append_whole(std::vector<char>& out, Step step) {
  const std::size_t before = out.size();
  try {
    step();
  } catch (...) {
    out.resize(before);
    throw;
  }
}

void begin_message(std::vector<char>& out, std::uint64_t identity, Rank from) {
  const MessageHead head{identity, from};
  out.clear();
  append(out, &head, 1);
}

/// Whether each rank waits for another one, so that it needs the arrivals of all.
bool needs_arrivals(core::Collective op) { return waiting_in(op) == Waiting::for_lower_ranks; }

}  // namespace

enum class PartKind : std::uint32_t { records, digests, facts, sums };

struct DigestNode::PartHead {
  std::uint64_t first;
  PartKind kind;
  std::uint32_t count;      ///< calls
  std::uint64_t extra;      ///< bytes behind their entries
  Nanoseconds uncertainty;  ///< records and digests: the largest of the ranks
  Nanoseconds waited;       ///< the same: sum over the ranks
};

DigestNode::DigestNode(std::uint64_t identity, Rank rank, int size, core::TreePlace place, bool with_exits)
    : identity_(identity),
      rank_(rank),
      size_(size),
      place_(std::move(place)),
      with_exits_(with_exits),
      stride_(sample_stride(size, with_exits)) {
  recent_.reserve(kRecent);
}

std::uint64_t DigestNode::identity_of(std::span<const char> message) {
  MessageHead head;
  return read(message, &head, 1) ? head.identity : 0;
}

std::uint64_t DigestNode::sample_stride(int ranks, bool with_exits) {
  // A user who records calls accepts 16 times as much.
  const std::uint64_t arrivals = with_exits ? 1 << 17 : 1 << 13;
  return std::bit_ceil(
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ranks) * core::Sequence::kSteadyEpoch / arrivals));
}

bool DigestNode::in_sample(std::uint64_t n, std::uint64_t stride) {
  // A hash, since every stride-th call may be the same one of a loop.
  return stride == 1 || core::mix64(n) % stride == 0;
}

bool DigestNode::sampled(core::Collective op, bool wanted, std::uint64_t n) const {
  return (wanted || with_exits_ || needs_arrivals(op)) && in_sample(n, stride_);
}

DigestNode::Epoch* DigestNode::find(std::uint64_t first, bool create) {
  if (first < finished_) return nullptr;
  const auto at = std::ranges::lower_bound(epochs_, first, {}, &Epoch::first);
  if (at != epochs_.end() && at->first == first) return &*at;
  if (!create) return nullptr;
  Epoch epoch;
  if (!spare_.empty()) epoch = std::move(spare_.back()), spare_.pop_back();
  epoch.first = first;
  return &*epochs_.insert(at, std::move(epoch));
}

/// Keeps the times of the sampled calls of one rank.
void DigestNode::add_block(Epoch& epoch, std::span<const CallRecord> records, Rank rank) const {
  const std::size_t head_at = epoch.samples.size();
  BlockHead head{rank, 0};
  append_whole(epoch.samples, [&] {
    for (std::size_t i = 0; i < records.size(); ++i) {
      const CallRecord& r = records[i];
      if (!sampled(r.op, (r.edge & kSampled) != 0, epoch.first + i)) continue;
      if (head.values == 0) append(epoch.samples, &head, 1);
      const auto put = [&](std::int64_t value) { append(epoch.samples, &value, 1), ++head.values; };
      put(r.arrival);
      if (with_exits_) put(r.exit);
      if (core::is_irregular(r.op)) put(r.bytes);
    }
  });
  if (head.values > 0) std::memcpy(epoch.samples.data() + head_at, &head, sizeof head);
}

void DigestNode::merge_records(Epoch& epoch, std::span<const CallRecord> records, Rank rank) {
  if (epoch.digests.size() < records.size()) epoch.digests.resize(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) epoch.digests[i].add(records[i], rank, size_);
  add_block(epoch, records, rank);
}

void DigestNode::end_epoch(std::uint64_t first, std::span<const CallRecord> records, Nanoseconds uncertainty,
                           Nanoseconds waited, Host& host) {
  if (records.empty()) return flush(host);
  // Epochs end in their order, so what children have sent about earlier ones belongs to none.
  std::erase_if(epochs_, [&](const Epoch& e) { return !e.own && e.first < std::max(first, facts_until_); });
  if (first < facts_until_) return flush(host);  // too late
  try {
    reserve(records.size());
    Epoch* epoch = find(first, true);
    if (!epoch || epoch->own) return;
    epoch->records.assign(records.begin(), records.end());
    // A leaf sends its records as they are.
    if (!place_.children.empty() || place_.parent < 0) merge_records(*epoch, records, rank_);
    epoch->own = true;
    if (lost_from_ <= first && first < lost_until_) epoch->logs = epoch->summed = place_.children.size();
    if (lost_until_ <= first) lost_from_ = UINT64_MAX;
    epoch->uncertainty = std::max(epoch->uncertainty, uncertainty), epoch->waited += waited;
  } catch (...) {
    std::erase_if(epochs_, [&](const Epoch& e) { return e.first == first; });
    if (place_.parent < 0) host.missing(records.size());
    throw;
  }
  advance(host);
  give_up(host);
}

/// Takes the memory of further epochs before they are under way, in a communicator that has had several. So a steady
/// program allocates nothing, also when messages come late for the first time.
void DigestNode::reserve(std::size_t records) {
  constexpr int kSeveral = 5;
  // Derived: an epoch that ends, one whose facts come, and one whose sums do.
  constexpr std::size_t kUnderWay = 3;
  if (ended_ < kSeveral && ++ended_ < kSeveral) return;
  epochs_.reserve(2 * kUnderWay), spare_.reserve(2 * kUnderWay);
  while (epochs_.size() + spare_.size() < kUnderWay) spare_.emplace_back();
  // Epochs of one length differ by a call or two.
  const auto make_room = [records](auto& rows) {
    if (rows.capacity() < records) rows.reserve(records + records / 8);
  };
  for (Epoch& e : spare_) {
    make_room(e.records), make_room(e.sums);
    if (!place_.children.empty()) make_room(e.digests);
    if (place_.parent < 0) make_room(e.facts);
  }
}

void DigestNode::flush(Host& host) {
  if (up_.empty()) return;
  begin_message(message_, identity_, rank_);
  append(message_, up_.data(), up_.size());
  up_.clear();
  host.send(place_.parent, message_);
}

void DigestNode::pass_up(Epoch& epoch, Host& host) {
  epoch.passed = true;
  const bool leaf = place_.children.empty();
  const PartHead head{epoch.first,
                      leaf ? PartKind::records : PartKind::digests,
                      static_cast<std::uint32_t>(leaf ? epoch.records.size() : epoch.digests.size()),
                      epoch.samples.size(),
                      epoch.uncertainty,
                      epoch.waited};
  append_whole(up_, [&] {
    append(up_, &head, 1);
    if (leaf) append(up_, epoch.records.data(), epoch.records.size());
    else append(up_, epoch.digests.data(), epoch.digests.size());
    append(up_, epoch.samples.data(), epoch.samples.size());
  });
  flush(host);
  epoch.digests.clear(), epoch.samples.clear();
}

/// Leader: sorts the samples by call. Calls whose samples do not come from all ranks have none.
void DigestNode::scatter(const Epoch& epoch) {
  const auto size = static_cast<std::size_t>(size_);
  sampled_calls_.clear();
  for (std::size_t i = 0; i < epoch.digests.size(); ++i)
    if (const CallDigest& d = epoch.digests[i]; d.other < 0 && sampled(d.op, d.sampled, epoch.first + i))
      sampled_calls_.push_back(static_cast<std::uint32_t>(i));
  const std::size_t values = sampled_calls_.size() * size;
  sampled_arrivals_.resize(values), sampled_blocks_.resize(values), sampled_exits_.resize(with_exits_ ? values : 0);
  sampled_ranks_.assign(sampled_calls_.size(), 0);
  std::span<const char> in = epoch.samples;
  for (BlockHead head; read(in, &head, 1);) {
    if (head.rank < 0 || head.rank >= size_ || in.size() / sizeof(std::int64_t) < head.values) return;
    std::span<const char> block = in.first(head.values * sizeof(std::int64_t));
    in = in.subspan(block.size());
    for (std::size_t k = 0; k < sampled_calls_.size(); ++k) {
      const std::size_t at = k * size + static_cast<std::size_t>(head.rank);
      const bool irregular = core::is_irregular(epoch.digests[sampled_calls_[k]].op);
      if (!read(block, &sampled_arrivals_[at], 1)) break;
      if (with_exits_ && !read(block, &sampled_exits_[at], 1)) break;
      if (irregular && !read(block, &sampled_blocks_[at], 1)) break;
      ++sampled_ranks_[k];
    }
  }
}

CallSampled DigestNode::sample_of(std::size_t at) const {
  const auto found = std::ranges::lower_bound(sampled_calls_, static_cast<std::uint32_t>(at));
  if (found == sampled_calls_.end() || *found != at) return {};
  const auto k = static_cast<std::size_t>(found - sampled_calls_.begin());
  if (sampled_ranks_[k] != size_) return {};
  const auto size = static_cast<std::size_t>(size_);
  const auto row = [&](const auto& of) {
    return of.empty() ? std::span<const std::int64_t>() : std::span<const std::int64_t>(of).subspan(k * size, size);
  };
  return {row(sampled_arrivals_), row(sampled_exits_), row(sampled_blocks_)};
}

/// Leader: uses the calls, and tells all ranks the facts.
void DigestNode::decide(Epoch& epoch, Host& host) {
  epoch.passed = true;
  if (epoch.waited > 0) host.waited(epoch.waited);
  std::vector<char> patterns;
  std::uint64_t counted = 0;
  try {
    scatter(epoch);
    epoch.facts.resize(epoch.digests.size());
    for (std::size_t i = 0; i < epoch.digests.size(); ++i) {
      const CallDigest& d = epoch.digests[i];
      CallFacts& facts = epoch.facts[i] = facts_of(d, size_, 2 * epoch.uncertainty);
      if (d.other >= 0) {
        host.different(epoch.first + i, d);
        ++counted;
      }
      if (!facts.known) continue;
      CallSampled sample = sample_of(i);
      if (needs_arrivals(d.op)) append(patterns, sample.arrivals.data(), sample.arrivals.size());
      facts.with_arrivals = needs_arrivals(d.op) && !sample.arrivals.empty();
      if (!core::is_irregular(d.op)) sample.blocks = {};
      host.whole(epoch.first + i, d, facts, sample, static_cast<std::uint32_t>(stride_));
      ++counted;
    }
  } catch (...) {
    epoch.facts.clear();
    host.missing(epoch.digests.size() - counted);
    throw;
  }
  if (counted < epoch.digests.size()) host.missing(epoch.digests.size() - counted);
  if (!place_.children.empty()) {
    begin_message(message_, identity_, rank_);
    const PartHead head{
        epoch.first, PartKind::facts, static_cast<std::uint32_t>(epoch.facts.size()), patterns.size(), 0, 0};
    append(message_, &head, 1);
    append(message_, epoch.facts.data(), epoch.facts.size());
    append(message_, patterns.data(), patterns.size());
    for (const Rank child : place_.children) host.send(child, message_);
  }
  apply(epoch, epoch.facts, patterns, host);
  epoch.samples.clear();
}

void DigestNode::apply(Epoch& epoch, std::span<const CallFacts> facts, std::span<const char> patterns, Host& host) {
  epoch.applied = true;
  if (epoch.sums.size() < facts.size()) epoch.sums.resize(facts.size());
  std::vector<Nanoseconds> arrivals;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    CallFacts own = facts[i];
    if (!own.known) continue;
    if (own.with_arrivals) {
      arrivals.resize(static_cast<std::size_t>(size_));
      if (!read(patterns, arrivals.data(), arrivals.size())) return;
      own = facts_below(own, arrivals, rank_);
    }
    if (i >= epoch.records.size()) continue;
    const CallSums sums = host.own(epoch.records[i], own, own.with_arrivals ? static_cast<std::uint32_t>(stride_) : 1);
    epoch.sums[i].waited += sums.waited, epoch.sums[i].error += sums.error;
  }
}

void DigestNode::pass_sums(Epoch& epoch, Host& host) {
  if (place_.parent < 0) {
    for (std::size_t i = 0; i < std::min(epoch.facts.size(), epoch.sums.size()); ++i)
      if (epoch.facts[i].known) host.summed(epoch.digests[i], epoch.facts[i], epoch.sums[i]);
    return;
  }
  const bool errors = std::ranges::any_of(epoch.sums, [](const CallSums& s) { return s.error != 0; });
  const std::size_t extra = errors ? epoch.sums.size() * sizeof(Nanoseconds) : 0;
  const PartHead head{epoch.first, PartKind::sums, static_cast<std::uint32_t>(epoch.sums.size()), extra, 0, 0};
  append_whole(up_, [&] {
    append(up_, &head, 1);
    for (const CallSums& s : epoch.sums) append(up_, &s.waited, 1);
    if (errors)
      for (const CallSums& s : epoch.sums) append(up_, &s.error, 1);
  });
}

/// Does what the messages so far allow.
void DigestNode::advance(Host& host) {
  // The leader uses the calls in their order.
  for (Epoch& epoch : epochs_) {
    if (epoch.passed) continue;
    if (!epoch.own || epoch.logs < place_.children.size()) break;
    if (place_.parent < 0) decide(epoch, host);
    else pass_up(epoch, host);
  }
  while (!epochs_.empty() && epochs_.front().applied && epochs_.front().summed >= place_.children.size()) {
    finish_oldest(host);
  }
}

void DigestNode::finish_oldest(Host& host) {
  Epoch& oldest = epochs_.front();
  pass_sums(oldest, host);
  finished_ = oldest.first + 1;
  if (oldest.applied && place_.parent >= 0) {
    if (recent_.size() < kRecent) recent_.emplace_back();
    else std::rotate(recent_.begin(), recent_.begin() + 1, recent_.end());
    recent_.back().first = oldest.first;
    recent_.back().second.swap(oldest.records);
  }
  oldest.own = oldest.passed = oldest.applied = false;
  oldest.logs = oldest.summed = 0;
  oldest.uncertainty = oldest.waited = 0;
  oldest.records.clear(), oldest.digests.clear(), oldest.facts.clear(), oldest.sums.clear(), oldest.samples.clear();
  Epoch memory = std::move(oldest);
  epochs_.erase(epochs_.begin());
  spare_.push_back(std::move(memory));
}

/// Goes on without what is too late.
void DigestNode::give_up(Host& host) {
  const auto late = [](const Epoch& e) { return e.own && !e.passed; };
  while (beyond(kMostLate, late)) {
    std::ranges::find_if(epochs_, late)->logs = place_.children.size();
    advance(host);
  }
  // Facts, or sums of children, that did not come.
  while (beyond(2 * kMostLate + static_cast<std::size_t>(place_.depth), [](const Epoch& e) { return e.own; })) {
    finish_oldest(host);
    advance(host);
  }
}

void DigestNode::take_log(const PartHead& part, std::span<const char> entries, std::span<const char> extra, Rank from) {
  Epoch* epoch = find(part.first, false);
  if (!epoch && part.first >= facts_until_) {
    if (beyond(kMostAhead, [](const Epoch& e) { return !e.own; })) {
      lost_from_ = std::min(lost_from_, part.first), lost_until_ = std::max(lost_until_, part.first + 1);
      return;
    }
    epoch = find(part.first, true);
  }
  if (!epoch || epoch->passed) return;  // too late
  ++epoch->logs;
  epoch->uncertainty = std::max(epoch->uncertainty, part.uncertainty), epoch->waited += part.waited;
  if (part.kind == PartKind::records) {
    records_.resize(part.count);
    read(entries, records_.data(), records_.size());
    merge_records(*epoch, records_, from);
  } else {
    if (epoch->digests.size() < part.count) epoch->digests.resize(part.count);
    for (std::size_t i = 0; i < part.count; ++i) {
      CallDigest digest;
      read(entries, &digest, 1);
      epoch->digests[i].merge(digest);
    }
    append(epoch->samples, extra.data(), extra.size());
  }
}

/// The parent is through with this epoch and all before it, maybe without the logs of this rank.
void DigestNode::take_facts(const PartHead& part, std::span<const char> entries, std::span<const char> extra,
                            Host& host) {
  facts_until_ = std::max(facts_until_, part.first + 1);
  if (!place_.children.empty()) {
    begin_message(message_, identity_, rank_);
    append(message_, &part, 1);
    append(message_, entries.data(), entries.size()), append(message_, extra.data(), extra.size());
    for (const Rank child : place_.children) host.send(child, message_);
  }
  Epoch* const epoch = find(part.first, false);
  if (epoch && epoch->own) {
    facts_.resize(part.count);
    read(entries, facts_.data(), facts_.size());
    if (!epoch->applied) apply(*epoch, facts_, extra, host);
  } else if (part.first >= finished_) {
    // Without the log of this rank no call of the epoch is known, so no rank has waits to add up.
    Epoch none;
    none.first = part.first;
    pass_sums(none, host);
  }
  for (Epoch& e : epochs_)
    if (e.own && e.first < facts_until_) e.passed = e.applied = true;
}

void DigestNode::take_sums(const PartHead& part, std::span<const char> waits, std::span<const char> errors) {
  Epoch* const epoch = find(part.first, false);
  if (!epoch) return;
  ++epoch->summed;
  if (epoch->sums.size() < part.count) epoch->sums.resize(part.count);
  for (std::size_t i = 0; i < part.count; ++i) {
    CallSums sums;
    read(waits, &sums.waited, 1), read(errors, &sums.error, 1);
    epoch->sums[i].waited += sums.waited, epoch->sums[i].error += sums.error;
  }
}

bool DigestNode::take(std::span<const char> message, Host& host) {
  MessageHead head;
  if (!read(message, &head, 1) || head.identity != identity_) return false;
  const bool from_child = std::ranges::find(place_.children, head.from) != place_.children.end();
  while (!message.empty()) {
    PartHead part;
    if (!read(message, &part, 1)) return false;
    const std::size_t entry = part.kind == PartKind::records   ? sizeof(CallRecord)
                              : part.kind == PartKind::digests ? sizeof(CallDigest)
                              : part.kind == PartKind::facts   ? sizeof(CallFacts)
                                                               : sizeof(CallSums::waited);
    if (message.size() / entry < part.count || message.size() - part.count * entry < part.extra ||
        from_child == (part.kind == PartKind::facts) || (!from_child && head.from != place_.parent))
      return false;
    const std::span<const char> entries = message.first(part.count * entry),
                                extra = message.subspan(entries.size(), part.extra);
    message = message.subspan(entries.size() + extra.size());
    if (part.kind == PartKind::facts) take_facts(part, entries, extra, host);
    else if (part.kind == PartKind::sums) take_sums(part, entries, extra);
    else take_log(part, entries, extra, head.from);
    advance(host);
  }
  return true;
}

std::uint64_t DigestNode::counted_until(std::uint64_t next) const {
  for (const Epoch& e : epochs_)
    if (!e.passed) return e.first;
  return next;
}

}  // namespace latecomer::profiles
