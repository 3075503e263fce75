// SPDX-License-Identifier: BSD-3-Clause
// Matches the ends of messages, and divides waits into kinds.
#include "profiles/record/message_ends.hpp"

#include <algorithm>

namespace latecomer::profiles {
namespace {

/// The ends that a level keeps.
std::vector<const MessageEnd*> kept_by(const StreamEnd& end, int level) {
  const MessageChoice choice(end.key.seed());
  std::vector<const MessageEnd*> out;
  for (const MessageEnd& one : end.kept)
    if (choice.level_of(one.number) >= level) out.push_back(&one);
  return out;
}

/// Whether the ends can be those of one message.
bool fit(const MessageEnd& send, const MessageEnd& receive) {
  if (send.number != receive.number) return false;
  if (send.bytes >= 0 && receive.bytes >= 0 && send.bytes != receive.bytes) return false;
  return !receive.waited() || plus(receive.wait_end, send.uncertainty + receive.uncertainty) >= send.posted;
}

/// Whether both ends count the same messages. A message that one rank did not see makes the numbers of all later ones
/// wrong. So the whole stream is in doubt.
bool fit(const StreamEnd& send, const StreamEnd& receive) {
  if (send.doubtful || receive.doubtful || send.messages != receive.messages) return false;
  const int level = std::max(send.level, receive.level);
  return std::ranges::equal(kept_by(send, level), kept_by(receive, level),
                            [](const MessageEnd* a, const MessageEnd* b) { return fit(*a, *b); });
}

std::uint64_t order_of(const StreamKey& key) { return core::mix64(key.seed()); }

}  // namespace

MessageKinds kinds_of(const MessageEnd& own, bool sends, const MessageEnd& other) {
  MessageKinds out;
  out.messages = out.matched = 1;
  const Nanoseconds whole = std::max<Nanoseconds>(0, plus(own.wait_end, own.wait_begin, -1));
  const Nanoseconds error = plus(own.uncertainty, other.uncertainty);
  const Nanoseconds earliest = plus(other.posted, error, -1), latest = plus(other.posted, error);
  if (sends && latest > own.wait_end) {  // a send that ended before the receive was posted did not wait for it
    (earliest > own.wait_end ? out.transfer : out.not_known) = whole;
    return out;
  }
  // What of the wait is before the other end began, at the least and at the most.
  const Nanoseconds least = std::clamp<Nanoseconds>(plus(earliest, own.wait_begin, -1), 0, whole);
  const Nanoseconds most = std::clamp<Nanoseconds>(plus(latest, own.wait_begin, -1), 0, whole);
  (sends ? out.late_receiver : out.late_sender) = least;
  (own.others_too != 0 ? out.not_known : out.transfer) = whole - most;
  out.not_known += most - least;
  return out;
}

void MessageMatches::add(const std::vector<StreamEnd>& ends, int per_row) {
  for (const StreamEnd& end : ends) take(StreamEnd(end), per_row);
  limit_ends(per_row);
  limit_sums();
}

void MessageMatches::merge(MessageMatches&& other, int per_row) {
  coarse_ = std::max(coarse_, other.coarse_);
  std::map<StreamKey, StreamEnd> own;
  if (other.streams_below_ < streams_below_) own.swap(open_);  // the other part has dropped some of these streams
  streams_below_ = std::min(streams_below_, other.streams_below_);
  for (const auto& [where, kinds] : other.sums_) add_sum(sums_, where, kinds);
  for (auto* const ends : {&own, &other.open_})
    for (auto& [key, end] : *ends) take(std::move(end), per_row);
  limit_ends(per_row);
  limit_sums();
}

MessageMatches::Sums MessageMatches::sums(int per_row) const {
  Sums out = sums_;
  for (const auto& [key, end] : open_) add_waits(end, nullptr, false, out, per_row);
  return out;
}

void MessageMatches::take(StreamEnd&& end, int per_row) {
  const StreamKey key = end.key;
  if (key.from < 0 || key.to < 0 || order_of(key) >= streams_below_)
    return add_waits(end, nullptr, false, sums_, per_row);
  const auto there = open_.find(key);
  if (there == open_.end()) {
    open_.emplace(key, std::move(end));
    return;
  }
  const StreamEnd& first = there->second;
  const bool matched = first.sends != end.sends && (end.sends ? fit(end, first) : fit(first, end));
  add_waits(first, &end, matched, sums_, per_row);
  add_waits(end, &first, matched, sums_, per_row);
  open_.erase(there);
}

void MessageMatches::add_waits(const StreamEnd& own, const StreamEnd* other, bool matched, Sums& to,
                               int per_row) const {
  const Rank rank = own.sends ? own.key.from : own.key.to, peer = own.sends ? own.key.to : own.key.from;
  const Rank row_rank = std::max(rank, 0);
  const auto add = [&](const MessageEnd& one, const MessageKinds& kinds) {
    if (!one.waited()) return;
    add_sum(to, {{one.site, one.call}, row_rank / per_row, peer}, kinds);
  };
  if (!matched) {
    for (const MessageEnd& one : own.kept) add(one, {.messages = 1});
    return;
  }
  // Messages that the other rank does not keep at its level are no part of the sample.
  const int level = std::max(own.level, other->level);
  const std::vector<const MessageEnd*> mine = kept_by(own, level), theirs = kept_by(*other, level);
  for (std::size_t i = 0; i < mine.size(); ++i) add(*mine[i], kinds_of(*mine[i], own.sends, *theirs[i]));
}

void MessageMatches::add_sum(Sums& to, Where where, const MessageKinds& kinds) const {
  if (coarse_ >= 1) where.peer = -1;
  if (coarse_ >= 2) where.row = -1;
  to[where].merge(kinds);
}

void MessageMatches::limit_ends(int per_row) {
  const auto fits = [&] {
    std::size_t ends = 0;
    for (const auto& [key, end] : open_) ends += 1 + end.kept.size();
    return ends <= kMostEnds;
  };
  // Half of the streams, the same ones on all nodes of a tree.
  while (!fits() && streams_below_ > 0) {
    streams_below_ /= 2;
    std::erase_if(open_, [&](const auto& entry) {
      if (order_of(entry.first) < streams_below_) return false;
      add_waits(entry.second, nullptr, false, sums_, per_row);
      return true;
    });
  }
}

void MessageMatches::limit_sums() {
  while (sums_.size() > kMostSums && coarse_ < 2) {
    ++coarse_;
    Sums all;
    for (const auto& [where, kinds] : sums_) add_sum(all, where, kinds);
    sums_ = std::move(all);
  }
}

}  // namespace latecomer::profiles
