// SPDX-License-Identifier: BSD-3-Clause
// The heads of a node's messages, and the steps of an epoch in it.
#include "profiles/record/digest_node.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/text.hpp"
#include "profiles/record/packed_entries.hpp"
#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {
namespace {

/// Appends to `out` all bytes that `step` appends, or none if it throws. An incomplete part would damage the next one.
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
  out.clear();
  Packer head(out);
  head.plain(identity);
  head.number(static_cast<std::uint64_t>(from));
}

void pack_extra(Packer& out, std::span<const char> bytes) {
  out.number(bytes.size());
  out.append(bytes);
}

/// Whether each rank may wait for a different rank, so that it needs the arrivals of all ranks.
bool needs_arrivals(core::Collective op) { return waiting_in(op) == WaitRule::for_lower_ranks; }

}  // namespace

/// In messages, Weight::time is a multiple of 1 / kTimeUnit.
constexpr double kTimeUnit = 1024;

enum class PartKind : std::uint8_t { records, digests, facts, sums };

/// The head of a part of a message. The entries follow it.
struct DigestNode::PartHead {
  PartKind kind;
  std::uint64_t first, count;         ///< number of the first call; number of calls
  Note note;                          ///< of records and digests; of facts the price
  core::EpochClasses::Weight weight;  ///< of facts

  void pack(Packer& out) const {
    out.number(static_cast<std::uint64_t>(kind));
    out.number(first);
    out.number(count);
    if (kind == PartKind::sums) return;
    out.difference(note.price, 0);
    if (kind == PartKind::facts) {
      out.number(static_cast<std::uint64_t>(weight.time * kTimeUnit));
      out.number(weight.epochs);
      return;
    }
    out.number(static_cast<std::uint64_t>(note.level));
    out.difference(note.uncertainty, 0);
    out.difference(note.waited, 0);
  }
  static PartHead unpack(Unpacker& in) {
    PartHead head{static_cast<PartKind>(in.number()), in.number(), in.number(), {}, {}};
    // A block takes a byte or more.
    in.good = in.good && head.kind <= PartKind::sums && head.count <= kBlock * in.left().size();
    if (head.kind == PartKind::sums) return head;
    head.note.price = in.difference(0);
    if (head.kind == PartKind::facts) {
      head.weight.time = static_cast<double>(in.number()) / kTimeUnit;
      head.weight.epochs = static_cast<std::uint32_t>(in.number());
      return head;
    }
    head.note.level = static_cast<int>(std::min<std::uint64_t>(in.number(), core::EpochSample::kMostLevel));
    head.note.uncertainty = in.difference(0);
    head.note.waited = in.difference(0);
    return head;
  }
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

std::uint64_t DigestNode::sample_stride(int ranks, bool with_exits) {
  // A user who records calls accepts 16 times as much.
  const std::uint64_t arrivals = with_exits ? 1 << 17 : 1 << 13;
  return std::bit_ceil(
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ranks) * core::Sequence::kSteadyEpoch / arrivals));
}

bool DigestNode::in_sample(std::uint64_t n, std::uint64_t stride) {
  // Hash the number, because every stride-th call may be the same call of a loop.
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
  if (!spare_.empty()) {
    epoch = std::move(spare_.back());
    spare_.pop_back();
  }
  epoch.begin(first, children_ended_ ? 0 : place_.children.size());
  epoch.left_out = std::ranges::any_of(logged_by_, [&](std::uint64_t behind) { return behind > first + 1; });
  return &*epochs_.insert(at, std::move(epoch));
}

void DigestNode::Epoch::begin(std::uint64_t at, std::size_t children) {
  first = at;
  stage = Stage::ahead;
  logs_awaited = sums_awaited = children;
  left_out = false;
  weight = {};
  note = {};
  records.clear();
  digests.clear();
  facts.clear();
  sums.clear();
  samples.clear();
}

/// Keeps the times of the sampled calls of one rank.
void DigestNode::add_sample(Epoch& epoch, std::span<const CallRecord> records, Rank rank) {
  columns_.clear();
  values_.clear();
  const auto add = [&](std::size_t call, SampleColumn::What what, std::int64_t value) {
    columns_.push_back(SampleColumn{call, what}.number());
    values_.push_back(value);
  };
  for (std::size_t i = 0; i < records.size(); ++i) {
    const CallRecord& r = records[i];
    if (!sampled(r.op, (r.edge & kSampled) != 0, epoch.first + i)) continue;
    add(i, SampleColumn::arrival, r.arrival);
    if (with_exits_) add(i, SampleColumn::exit, r.exit);
    if (core::is_irregular(r.op)) add(i, SampleColumn::bytes, r.bytes);
  }
  if (columns_.empty()) return;
  const std::span<std::int64_t> row = epoch.samples.add(columns_, 1);
  row[0] = rank;
  std::ranges::copy(values_, row.begin() + 1);
}

void DigestNode::merge_records(Epoch& epoch, std::span<const CallRecord> records, Rank rank) {
  if (epoch.digests.size() < records.size()) epoch.digests.resize(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) epoch.digests[i].add(records[i], rank, size_);
  add_sample(epoch, records, rank);
}

void DigestNode::end_epoch(std::uint64_t first, std::span<const CallRecord> records, const Note& note, Host& host) {
  if (given_up_) return;
  if (records.empty()) return flush_parts(host);
  // Epochs end in their order. So drop logs of children for earlier epochs that this rank has not ended.
  own_until_ = std::max(first, facts_until_);
  if (!rests_) drop_epochs_ahead();
  if (first < facts_until_) return flush_parts(host);  // too late
  try {
    reserve(records.size());
    Epoch* epoch = find(first, true);
    if (!epoch || epoch->stage != Stage::ahead) return;
    epoch->records.assign(records.begin(), records.end());
    // A leaf sends its records as they are.
    if (!place_.children.empty() || place_.parent < 0) merge_records(*epoch, records, rank_);
    epoch->stage = Stage::logged;
    if (lost_from_ <= first && first < lost_until_) epoch->await_nothing();
    if (lost_until_ <= first) lost_from_ = UINT64_MAX;
    epoch->note.merge(note);
  } catch (...) {
    std::erase_if(epochs_, [&](const Epoch& e) { return e.first == first; });
    if (place_.parent < 0) host.count_missing(records.size());
    throw;
  }
  advance(host);
  leave_late(host);
}

/// Allocates memory for further epochs in advance, in a communicator that has had several. So a steady program needs no
/// allocation later, even when messages come late for the first time.
void DigestNode::reserve(std::size_t records) {
  constexpr int kSeveral = 5;
  // Derived: one epoch that ends, one whose facts arrive, and one whose sums arrive.
  constexpr std::size_t kUnderWay = 3;
  if (epochs_ended_ < kSeveral && ++epochs_ended_ < kSeveral) return;
  epochs_.reserve(2 * kUnderWay);
  spare_.reserve(2 * kUnderWay);
  while (epochs_.size() + spare_.size() < kUnderWay) spare_.emplace_back();
  // The lengths of epochs vary by a call or two.
  const auto make_room = [records](auto& rows) {
    if (rows.capacity() < records) rows.reserve(records + records / 8);
  };
  for (Epoch& e : spare_) {
    make_room(e.records);
    make_room(e.sums);
    if (!place_.children.empty()) make_room(e.digests);
    if (place_.parent < 0) make_room(e.facts);
  }
}

void DigestNode::flush_parts(Host& host) {
  if (up_.empty()) return;
  begin_message(message_, identity_, rank_);
  Packer(message_).append(up_);
  up_.clear();
  host.send_message(place_.parent, message_);
}

void DigestNode::pass_up(Epoch& epoch, Host& host) {
  epoch.stage = Stage::passed;
  const bool leaf = place_.children.empty();
  append_whole(up_, [&] {
    Packer out(up_);
    PartHead{leaf ? PartKind::records : PartKind::digests,
             epoch.first,
             leaf ? epoch.records.size() : epoch.digests.size(),
             epoch.note,
             {}}
        .pack(out);
    PackedEntries entries;
    if (leaf) entries.pack(out, std::span<const CallRecord>(epoch.records));
    else entries.pack(out, std::span<const CallDigest>(epoch.digests));
    packed_samples_.clear();
    Packer samples(packed_samples_);
    epoch.samples.pack(samples, SampleBase{epoch.digests});
    pack_extra(out, packed_samples_);
  });
  flush_parts(host);
  epoch.digests.clear();
  epoch.samples.clear();
}

/// Leader: sorts the samples by call. Samples of a call are used only if they come from all ranks.
void DigestNode::scatter(const Epoch& epoch) {
  const auto size = static_cast<std::size_t>(size_);
  sampled_calls_.clear();
  for (std::size_t i = 0; i < epoch.digests.size(); ++i)
    if (const CallDigest& d = epoch.digests[i]; d.other < 0 && sampled(d.op, d.sampled, epoch.first + i))
      sampled_calls_.push_back(static_cast<std::uint32_t>(i));
  const std::size_t values = sampled_calls_.size() * size;
  // They never shrink: an epoch with more samples than the one before would fill them with zeros.
  const auto make_room = [&](auto& of) {
    if (of.size() < values) of.resize(values);
  };
  make_room(sampled_arrivals_);
  make_room(sampled_blocks_);
  if (with_exits_) make_room(sampled_exits_);
  sampled_ranks_.assign(sampled_calls_.size(), 0);
  epoch.samples.each([&](const SampleRows::Group& group) {
    const std::size_t ranks = group.rows.size() / group.row_size();
    for (std::size_t c = 0; c < group.columns.size(); ++c) {
      const SampleColumn column = SampleColumn::of(group.columns[c]);
      const auto found = std::ranges::lower_bound(sampled_calls_, column.call);
      if (found == sampled_calls_.end() || *found != column.call) continue;
      const auto k = static_cast<std::size_t>(found - sampled_calls_.begin());
      auto& to = column.what == SampleColumn::arrival ? sampled_arrivals_
                 : column.what == SampleColumn::exit  ? sampled_exits_
                                                      : sampled_blocks_;
      const std::span<std::int64_t> row = std::span(to).subspan(k * size, size);
      for (std::size_t i = 0; i < ranks; ++i) {
        const auto rank = static_cast<std::size_t>(group.rows[i * group.row_size()]);
        if (rank < size) row[rank] = group.rows[i * group.row_size() + 1 + c];
      }
      if (column.what == SampleColumn::arrival) sampled_ranks_[k] += static_cast<std::int32_t>(ranks);
    }
  });
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

/// Leader: hands the calls of an epoch to the host, and sends the facts to all ranks.
void DigestNode::decide(Epoch& epoch, Host& host) {
  epoch.stage = Stage::passed;
  if (epoch.note.waited > 0) host.add_wait(epoch.note.waited);
  price_ = epoch.note.price;
  if (rests_) {
    epoch.weight = classes_.take(epoch.note.length, epoch.note.level);
    epoch.weight.time = std::round(epoch.weight.time * kTimeUnit) / kTimeUnit;  // as all ranks will get it
  }
  std::vector<char> patterns;
  std::uint64_t counted = 0;
  try {
    scatter(epoch);
    epoch.facts.resize(epoch.digests.size());
    for (std::size_t i = 0; i < epoch.digests.size(); ++i) {
      const CallDigest& d = epoch.digests[i];
      CallFacts& facts = epoch.facts[i] = facts_of(d, size_, 2 * epoch.note.uncertainty);
      if (d.other >= 0) {
        host.report_difference(epoch.first + i, d);
        ++counted;
      }
      if (!facts.known) continue;
      CallSampled sample = sample_of(i);
      if (needs_arrivals(d.op))
        for (const Nanoseconds arrival : sample.arrivals) Packer(patterns).difference(arrival, d.first);
      facts.with_arrivals = needs_arrivals(d.op) && !sample.arrivals.empty();
      if (!core::is_irregular(d.op)) sample.blocks = {};
      host.take_call(epoch.first + i, d, facts, sample, stands_for(epoch));
      ++counted;
    }
  } catch (...) {
    epoch.facts.clear();
    host.count_missing(epoch.digests.size() - counted);
    throw;
  }
  if (counted < epoch.digests.size()) host.count_missing(epoch.digests.size() - counted);
  send_down(host, [&](Packer& out) {
    PartHead{PartKind::facts, epoch.first, epoch.facts.size(), epoch.note, epoch.weight}.pack(out);
    PackedEntries().pack(out, std::span<const CallFacts>(epoch.facts));
    pack_extra(out, patterns);
  });
  apply(epoch, epoch.facts, patterns, host);
  epoch.samples.clear();
}

void DigestNode::apply(Epoch& epoch, std::span<const CallFacts> facts, std::span<const char> patterns, Host& host) {
  epoch.stage = Stage::applied;
  if (epoch.sums.size() < facts.size()) epoch.sums.resize(facts.size());
  std::vector<Nanoseconds> arrivals;
  Unpacker in(patterns);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    CallFacts own = facts[i];
    if (!own.known) continue;
    if (own.with_arrivals) {
      arrivals.resize(static_cast<std::size_t>(size_));
      for (Nanoseconds& arrival : arrivals) arrival = in.difference(own.first);
      if (!in.good) return;
      own = facts_below(own, arrivals, rank_);
    }
    if (i >= epoch.records.size()) continue;
    const CallSums sums = host.apply_facts(epoch.records[i], own, stands_for(epoch));
    epoch.sums[i].waited += sums.waited;
    epoch.sums[i].error += sums.error;
  }
}

void DigestNode::pass_sums(Epoch& epoch, Host& host) {
  if (place_.parent < 0) {
    for (std::size_t i = 0; i < std::min(epoch.facts.size(), epoch.sums.size()); ++i)
      if (epoch.facts[i].known) host.take_sums(epoch.digests[i], epoch.facts[i], epoch.sums[i], stands_for(epoch));
    return;
  }
  append_whole(up_, [&] {
    Packer out(up_);
    PartHead{PartKind::sums, epoch.first, epoch.sums.size(), {}, {}}.pack(out);
    PackedEntries().pack(out, std::span<const CallSums>(epoch.sums));
  });
  if (ended_) flush_parts(host);
}

/// Takes all steps for which the messages so far suffice.
void DigestNode::advance(Host& host) {
  // The leader handles calls in their order, and children get their answers in it.
  bool answered = true;
  for (std::size_t i = 0; i < epochs_.size();) {
    Epoch& epoch = epochs_[i];
    if (rests_ && is_left_out(epoch)) {
      if (answered) {
        if (place_.parent < 0 && epoch.stage == Stage::logged) leave_out(epoch.note.length);
        send_no_facts(epoch.first, host);
        drop(i);
      } else {
        ++i;
      }
      continue;
    }
    ++i;
    if (epoch.stage < Stage::passed) {
      if (epoch.stage == Stage::ahead || epoch.logs_awaited > 0) break;
      if (place_.parent < 0) decide(epoch, host);
      else pass_up(epoch, host);
    }
    answered = answered && epoch.stage == Stage::applied;
  }
  while (!epochs_.empty() && epochs_.front().stage == Stage::applied && epochs_.front().sums_awaited == 0)
    finish_oldest(host);
}

void DigestNode::finish_oldest(Host& host) {
  Epoch& oldest = epochs_.front();
  pass_sums(oldest, host);
  finished_ = oldest.first + 1;
  if (oldest.stage == Stage::applied && place_.parent >= 0) {
    if (recent_.size() < kRecent) recent_.emplace_back();
    else std::rotate(recent_.begin(), recent_.begin() + 1, recent_.end());
    recent_.back().first = oldest.first;
    recent_.back().second.swap(oldest.records);
  }
  drop(0);
}

/// Whether some rank does not log the epoch, so no digest of it goes up. Its children wait for an answer.
bool DigestNode::is_left_out(const Epoch& epoch) const {
  return epoch.stage == Stage::ahead ? epoch.first < own_until_ : epoch.left_out && epoch.stage == Stage::logged;
}

void DigestNode::drop(std::size_t at) {
  Epoch memory = std::move(epochs_[at]);
  epochs_.erase(epochs_.begin() + static_cast<std::ptrdiff_t>(at));
  spare_.push_back(std::move(memory));
}

void DigestNode::send_no_facts(std::uint64_t first, Host& host) {
  send_down(host, [&](Packer& out) {
    PartHead{PartKind::facts, first, 0, {.price = price_}, {}}.pack(out);
    pack_extra(out, {});
  });
}

void DigestNode::tell_price(Nanoseconds price, Host& host) {
  if (price < 2 * price_ && 2 * price > price_) return;
  price_ = price;
  if (finished_ > 0) send_no_facts(0, host);
}

/// Drops the logs of children for epochs that this rank will not end.
void DigestNode::drop_epochs_ahead() {
  std::erase_if(epochs_, [&](const Epoch& e) { return e.stage == Stage::ahead && e.first < own_until_; });
}

template <typename Write>
void DigestNode::send_down(Host& host, Write write) {
  if (place_.children.empty()) return;
  begin_message(message_, identity_, rank_);
  Packer out(message_);
  write(out);
  for (const Rank child : place_.children) host.send_message(child, message_);
}

/// Continues without messages that are too late.
void DigestNode::leave_late(Host& host) {
  const auto late = [](const Epoch& e) { return e.stage == Stage::logged; };
  const auto ended = [](const Epoch& e) { return e.stage != Stage::ahead; };
  while (beyond(kMostLate, late)) {
    Epoch& epoch = *std::ranges::find_if(epochs_, late);
    epoch.logs_awaited = 0;
    // As a rule, a child logs fewer epochs than this rank.
    epoch.left_out = epoch.left_out || rests_;
    advance(host);
  }
  // The facts, or the sums of children, did not arrive.
  while (beyond(2 * kMostLate + static_cast<std::size_t>(place_.depth), ended)) {
    finish_oldest(host);
    advance(host);
  }
}

/// A child sends its logs in their order. So with the log of a later epoch, it has left out those between.
void DigestNode::leave_out_until(std::uint64_t first, Rank child) {
  logged_by_.resize(place_.children.size());
  std::uint64_t& until =
      logged_by_[static_cast<std::size_t>(std::ranges::find(place_.children, child) - place_.children.begin())];
  for (Epoch& e : epochs_)
    if (e.first >= until && e.first < first && e.stage < Stage::passed) e.left_out = true;
  until = std::max(until, first == UINT64_MAX ? first : first + 1);
}

StandsFor DigestNode::stands_for(const Epoch& epoch) const {
  return {epoch.weight.epochs, epoch.weight.time, static_cast<std::uint32_t>(stride_), epoch.first};
}

void DigestNode::take_log(const PartHead& part, std::span<const char> samples, Rank from, Host& host) {
  if (rests_) leave_out_until(part.first, from);
  Epoch* epoch = find(part.first, false);
  if (!epoch && part.first >= facts_until_) {
    if (beyond(kMostAhead, [](const Epoch& e) { return e.stage == Stage::ahead; })) {
      lost_from_ = std::min(lost_from_, part.first);
      lost_until_ = std::max(lost_until_, part.first + 1);
      if (rests_) send_no_facts(part.first, host);  // this rank may not end the epoch
      return;
    }
    epoch = find(part.first, true);
  }
  if (!epoch || epoch->stage >= Stage::passed) return;  // too late
  if (epoch->logs_awaited > 0) --epoch->logs_awaited;
  epoch->note.merge(part.note);
  if (part.kind == PartKind::records) {
    merge_records(*epoch, std::span(records_).first(part.count), from);
    return;
  }
  if (epoch->digests.size() < part.count) epoch->digests.resize(part.count);
  for (std::size_t i = 0; i < part.count; ++i) epoch->digests[i].merge(digests_[i]);
  Unpacker in(samples);
  const auto valid = [&](std::int64_t column) {
    return SampleColumn::of(column).call < part.count && (with_exits_ || column % 4 != SampleColumn::exit);
  };
  if (!epoch->samples.unpack(in, valid, SampleBase{digests_})) epoch->samples.clear();
}

/// Takes the facts of an epoch. The parent has finished this epoch and all before, maybe without the logs of this rank.
void DigestNode::take_facts(const PartHead& head, std::span<const CallFacts> facts, std::span<const char> part,
                            std::span<const char> patterns, Host& host) {
  const std::uint64_t first = head.first;
  price_ = head.note.price;
  facts_until_ = std::max(facts_until_, first + 1);
  send_down(host, [&](Packer& out) { out.append(part); });
  Epoch* const epoch = find(first, false);
  if (epoch && epoch->stage != Stage::ahead) {
    epoch->weight = head.weight;
    if (epoch->stage != Stage::applied) apply(*epoch, facts, patterns, host);
  } else if (first >= finished_) {
    // Without the log of this rank, the leader knows no call of the epoch, so no rank has waits to add up.
    Epoch none;
    none.first = first;
    pass_sums(none, host);
  }
  for (Epoch& e : epochs_)
    if (e.stage != Stage::ahead && e.first < facts_until_) e.stage = Stage::applied;
}

void DigestNode::take_sums(std::uint64_t first, std::span<const CallSums> sums) {
  Epoch* const epoch = find(first, false);
  if (!epoch) return;
  if (epoch->sums_awaited > 0) --epoch->sums_awaited;
  if (epoch->sums.size() < sums.size()) epoch->sums.resize(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    epoch->sums[i].waited += sums[i].waited;
    epoch->sums[i].error += sums[i].error;
  }
}

bool DigestNode::take_message(std::span<const char> message, Host& host) {
  Unpacker head(message);
  if (head.plain() != identity_) return false;
  const auto from = static_cast<Rank>(head.number());
  if (!head.good || head.empty()) return false;
  const bool from_child = std::ranges::find(place_.children, from) != place_.children.end();
  for (std::span<const char> rest = head.left(); !rest.empty();) {
    Unpacker in(rest);
    const PartHead part = PartHead::unpack(in);
    if (!in.good || from_child == (part.kind == PartKind::facts) || (!from_child && from != place_.parent))
      return false;
    PackedEntries entries;
    std::span<const char> extra;
    if (part.kind == PartKind::records) entries.unpack(in, part.count, records_);
    else if (part.kind == PartKind::digests) entries.unpack(in, part.count, digests_);
    else if (part.kind == PartKind::facts) entries.unpack(in, part.count, facts_);
    else entries.unpack(in, part.count, sums_);
    if (part.kind != PartKind::sums) extra = in.take(in.number());
    if (!in.good) return false;
    const std::span<const char> whole = rest.first(rest.size() - in.left().size());
    rest = in.left();
    if (given_up_) continue;
    if (part.kind == PartKind::facts) take_facts(part, std::span(facts_).first(part.count), whole, extra, host);
    else if (part.kind == PartKind::sums) take_sums(part.first, std::span(sums_).first(part.count));
    else take_log(part, extra, from, host);
    advance(host);
  }
  return true;
}

void DigestNode::end_calls(Host& host) {
  ended_ = true;
  own_until_ = UINT64_MAX;
  if (rests_) advance(host);
  else if (children_ended_) drop_epochs_ahead();
  flush_parts(host);
}

void DigestNode::end_child(Rank child, Host& host) {
  if (!rests_ || given_up_) return;
  leave_out_until(UINT64_MAX, child);
  advance(host);
}

void DigestNode::end_children(Host& host) {
  children_ended_ = true;
  if (ended_ && !rests_) drop_epochs_ahead();
  for (Epoch& e : epochs_) e.await_nothing();
  advance(host);
}

void DigestNode::give_up() {
  given_up_ = true;
  epochs_.clear();
  up_.clear();
}

std::uint64_t DigestNode::counted_until(std::uint64_t next) const {
  for (const Epoch& e : epochs_)
    if (e.stage < Stage::passed) return e.first;
  return next;
}

}  // namespace latecomer::profiles
