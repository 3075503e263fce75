// SPDX-License-Identifier: BSD-3-Clause
// Both ends of messages that ranks keep, and what a wait was for, which only both ends together tell. This file must
// not know how a rank sees its messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "profiles/record/timed_site.hpp"

namespace latecomer::profiles {

using core::Rank;

/// The messages of one rank for another one, with one tag on one communicator. MPI matches them in their order: the
/// n-th send belongs to the n-th receive.
struct StreamKey {
  std::uint64_t communicator = 0;  ///< the same on all of its ranks
  Rank from = -1, to = -1;         ///< in MPI_COMM_WORLD; -1: messages of one rank whose stream is not known
  std::int32_t tag = 0;
  auto operator<=>(const StreamKey&) const = default;
  static auto members(auto& k) { return std::tie(k.communicator, k.from, k.to, k.tag); }
  std::uint64_t seed() const {
    return core::mix64(communicator ^
                       core::mix64(static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to))) ^
           static_cast<std::uint32_t>(tag);
  }
};

/// Which messages of a stream both ends keep, by their numbers alone. Level k keeps one of 2^k successive messages, at
/// random. Level k + 1 keeps one of two successive messages of level k.
class MessageChoice {
 public:
  static constexpr int kMostLevel = 40;
  explicit MessageChoice(std::uint64_t seed) : seed_(seed) {}
  /// The highest level that keeps the message.
  int level_of(std::uint64_t number) const {
    int level = 0;
    for (; level < kMostLevel && (number & 1) == second(number >> 1, level + 1); ++level) number >>= 1;
    return level;
  }
  /// The first message with a larger number that the level keeps.
  std::uint64_t after(std::uint64_t number, int level) const {
    const std::uint64_t here = in_block(number >> level, level);
    return here > number ? here : in_block((number >> level) + 1, level);
  }
  /// The first message that the level keeps.
  std::uint64_t first(int level) const { return in_block(0, level); }

 private:
  std::uint64_t second(std::uint64_t pair, int level) const {
    return core::mix64(seed_ + (pair << 6) + static_cast<std::uint64_t>(level)) >> 63;
  }
  std::uint64_t in_block(std::uint64_t block, int level) const {
    for (; level > 0; --level) block = 2 * block + second(block, level);
    return block;
  }
  std::uint64_t seed_;
};

/// One end of a message. Times are common ones.
struct MessageEnd {
  std::uint64_t number = 0;  ///< of the message, from 0 on
  Nanoseconds posted = 0;    ///< the begin of the call that sent it, or that posted the receive
  /// The call that waited for it.
  Nanoseconds wait_begin = 0, wait_end = 0;
  Nanoseconds uncertainty = 0;  ///< of the clock
  std::int64_t bytes = 0;       ///< -1: not known
  std::uint64_t site = 0;       ///< of the call that waited, with `call`: its TimedKey; 0: no such call is known
  std::uint32_t call = 0;
  std::uint32_t others_too = 0;  ///< 1: the call also waited for other messages, of which none is known to be the last
  bool waited() const { return site != 0; }
};

/// The end of a stream on one rank.
struct StreamEnd {
  StreamKey key;
  std::uint64_t messages = 0;
  std::int32_t level = 0;
  bool sends = false;
  bool doubtful = false;  ///< the numbers may be wrong
  std::vector<MessageEnd> kept;
  static auto members(auto& s) { return std::tie(s.key, s.messages, s.level, s.sends, s.doubtful, s.kept); }
};

/// The waits for a sample of messages. The times are of the matched ones, and add up to their waits.
struct MessageKinds {
  std::uint64_t messages = 0, matched = 0;
  Nanoseconds late_sender = 0;    ///< until the send began
  Nanoseconds late_receiver = 0;  ///< until the receive was posted, by a send that ended after that
  Nanoseconds transfer = 0;       ///< the rest
  Nanoseconds not_known = 0;      ///< within the uncertainty of the clocks, or for another message
  void merge(const MessageKinds& o) {
    messages += o.messages;
    matched += o.matched;
    late_sender = plus(late_sender, o.late_sender);
    late_receiver = plus(late_receiver, o.late_receiver);
    transfer = plus(transfer, o.transfer);
    not_known = plus(not_known, o.not_known);
  }
};

/// The kinds of the wait for a message by a call on one rank.
MessageKinds kinds_of(const MessageEnd& own, bool sends, const MessageEnd& other);

/// Brings both ends of the streams of a job together. Which data are dropped does not depend on the order.
class MessageMatches {
 public:
  /// Limits, per merged part. Derived: an end takes 80 bytes, a sum 100: 21 MiB together.
  static constexpr std::size_t kMostEnds = std::size_t{1} << 17, kMostSums = std::size_t{1} << 17;

  /// A wait's site, row of ranks, and the other rank. -1: several of them.
  struct Where {
    TimedKey site;
    std::int32_t row = 0;
    Rank peer = -1;
    auto operator<=>(const Where&) const = default;
    static auto members(auto& w) { return std::tie(w.site, w.row, w.peer); }
  };
  using Sums = std::map<Where, MessageKinds>;

  /// Adds the streams of one rank. `per_row`: ranks that share a row.
  void add(const std::vector<StreamEnd>& ends, int per_row);
  void merge(MessageMatches&& other, int per_row);
  /// All sums. Streams whose other end is missing count as not matched.
  Sums sums(int per_row) const;
  static auto members(auto& m) { return std::tie(m.open_, m.sums_, m.streams_below_, m.coarse_); }

 private:
  void take(StreamEnd&& end, int per_row);
  void add_waits(const StreamEnd& own, const StreamEnd* other, bool matched, Sums& to, int per_row) const;
  void add_sum(Sums& to, Where where, const MessageKinds& kinds) const;
  void limit_ends(int per_row);
  void limit_sums();

  std::map<StreamKey, StreamEnd> open_;  ///< the other end is not here yet
  Sums sums_;
  std::uint64_t streams_below_ = UINT64_MAX;  ///< streams from this hash on were dropped
  std::int32_t coarse_ = 0;                   ///< 1: sums of all peers; 2: of all ranks, too
};

}  // namespace latecomer::profiles
