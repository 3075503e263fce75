// SPDX-License-Identifier: BSD-3-Clause
// The choice of messages, the matching of their ends, and the kinds of waits.
#include "profiles/record/message_ends.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "core/base/text.hpp"
#include "profiles/record/bytes.hpp"

using namespace latecomer::profiles;
namespace core = latecomer::core;

namespace {

constexpr std::uint64_t kSendSite = 7, kReceiveSite = 9;
using Sums = MessageMatches::Sums;

/// One end of a stream from rank 0 to rank 1 as a rank keeps it, in which message n begins at `begin(n)` and takes
/// `wait(n)`.
template <typename Begin, typename Wait>
StreamEnd end_of(bool sends, std::uint64_t messages, int level, Begin begin, Wait wait, StreamKey key = {1, 0, 1, 5}) {
  StreamEnd out{key, messages, level, sends, false, {}};
  const MessageChoice choice(key.seed());
  for (std::uint64_t n = choice.first(level); n < messages; n = choice.after(n, level)) {
    MessageEnd one;
    one.number = n;
    one.posted = one.wait_begin = begin(n);
    one.wait_end = one.posted + wait(n);
    one.bytes = static_cast<std::int64_t>(n);
    one.site = sends ? kSendSite : kReceiveSite;
    out.kept.push_back(one);
  }
  return out;
}

constexpr auto kBegin = [](std::uint64_t n) { return static_cast<Nanoseconds>(1000 * n); };
constexpr auto kWait = [](std::uint64_t) { return Nanoseconds{100}; };

Sums match(const StreamEnd& a, const StreamEnd& b) {
  MessageMatches all;
  all.add({a}, 1);
  all.add({b}, 1);
  return all.sums(1);
}

MessageKinds at(const Sums& sums, std::uint64_t site) {
  MessageKinds out;
  for (const auto& [where, kinds] : sums)
    if (where.site.site == site) out.merge(kinds);
  return out;
}

MessageEnd wait_of(Nanoseconds begin, Nanoseconds end, Nanoseconds uncertainty = 0) {
  MessageEnd out;
  out.posted = out.wait_begin = begin;
  out.wait_end = end;
  out.uncertainty = uncertainty;
  return out;
}

}  // namespace

TEST_CASE("messages: a level keeps one of each block, among those of the level below", "[messages]") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const MessageChoice choice(core::mix64(seed));
    for (int level = 0; level < 8; ++level) {
      std::set<std::uint64_t> kept;
      for (std::uint64_t n = choice.first(level); n < 512; n = choice.after(n, level)) kept.insert(n);
      std::vector<int> in_block(512 >> level);
      for (std::uint64_t n = 0; n < 512; ++n) {
        CHECK(kept.contains(n) == (choice.level_of(n) >= level));
        in_block[n >> level] += kept.contains(n);
        const std::uint64_t next = choice.after(n, level);
        CHECK(next > n);
        if (next < 512) CHECK(std::distance(kept.upper_bound(n), kept.find(next)) == 0);
      }
      CHECK(std::ranges::all_of(in_block, [](int kept_here) { return kept_here == 1; }));
    }
  }
}

TEST_CASE("messages: kinds of a wait", "[messages]") {
  const auto receive = [](const MessageEnd& own, const MessageEnd& send) { return kinds_of(own, false, send); };
  const auto send = [](const MessageEnd& own, const MessageEnd& received) { return kinds_of(own, true, received); };
  const auto same = [](const MessageKinds& k, Nanoseconds sender, Nanoseconds receiver, Nanoseconds transfer,
                       Nanoseconds unknown) {
    return k.late_sender == sender && k.late_receiver == receiver && k.transfer == transfer && k.not_known == unknown;
  };
  CHECK(same(receive(wait_of(100, 900), wait_of(700, 710)), 600, 0, 200, 0));
  CHECK(same(receive(wait_of(100, 900), wait_of(50, 60)), 0, 0, 800, 0));
  CHECK(same(send(wait_of(100, 900), wait_of(700, 910)), 0, 600, 200, 0));
  CHECK(same(send(wait_of(100, 900), wait_of(50, 910)), 0, 0, 800, 0));
  CHECK(same(send(wait_of(100, 900), wait_of(1000, 1100)), 0, 0, 800, 0));  // it ended before
  // Clocks that differ by up to 30.
  CHECK(same(receive(wait_of(100, 900, 10), wait_of(700, 710, 20)), 570, 0, 170, 60));
  CHECK(same(send(wait_of(100, 900, 10), wait_of(700, 910, 20)), 0, 570, 170, 60));
  CHECK(same(send(wait_of(100, 900, 10), wait_of(890, 910, 20)), 0, 0, 0, 800));
  CHECK(same(send(wait_of(100, 900, 10), wait_of(940, 950, 20)), 0, 0, 800, 0));
  MessageEnd shared = wait_of(100, 900);
  shared.others_too = 1;
  CHECK(same(receive(shared, wait_of(700, 710)), 600, 0, 0, 200));
}

TEST_CASE("messages: both ends of a stream match at the coarser level", "[messages]") {
  const auto late = [](std::uint64_t n) { return kBegin(n) + 60; };
  for (int sender = 0; sender < 4; ++sender)
    for (int receiver = 0; receiver < 4; ++receiver) {
      const Sums sums = match(end_of(true, 64, sender, late, kWait), end_of(false, 64, receiver, kBegin, kWait));
      const std::uint64_t kept = 64u >> std::max(sender, receiver);
      CHECK(at(sums, kReceiveSite).messages == kept);
      CHECK(at(sums, kReceiveSite).matched == kept);
      CHECK(at(sums, kReceiveSite).late_sender == static_cast<Nanoseconds>(60 * kept));
      CHECK(at(sums, kReceiveSite).transfer == static_cast<Nanoseconds>(40 * kept));
      CHECK(at(sums, kSendSite).transfer == static_cast<Nanoseconds>(100 * kept));
      CHECK(sums.begin()->first.peer == 1);
    }
}

TEST_CASE("messages: any doubt leaves the whole stream without kinds", "[messages]") {
  const StreamEnd send = end_of(true, 64, 1, kBegin, kWait), receive = end_of(false, 64, 1, kBegin, kWait);
  const auto matched = [](const StreamEnd& a, const StreamEnd& b) {
    const Sums sums = match(a, b);
    CHECK(at(sums, kSendSite).messages == a.kept.size());
    CHECK(at(sums, kReceiveSite).messages == b.kept.size());
    return at(sums, kSendSite).matched + at(sums, kReceiveSite).matched;
  };
  CHECK(matched(send, receive) == 64);
  StreamEnd other = receive;
  other.doubtful = true;
  CHECK(matched(send, other) == 0);
  other = receive;
  ++other.messages;
  CHECK(matched(send, other) == 0);
  other = receive;
  other.kept.erase(other.kept.begin() + 3);
  CHECK(matched(send, other) == 0);
  other = receive;
  ++other.kept[3].bytes;
  CHECK(matched(send, other) == 0);
  other.kept[3].bytes = -1;
  CHECK(matched(send, other) == 64);
  other = receive;
  other.kept[3].wait_end = send.kept[3].posted - 1;  // received before it was sent
  CHECK(matched(send, other) == 0);
  other.kept[3].uncertainty = 1;
  CHECK(matched(send, other) == 64);
  // The other end is missing, or the stream is not known.
  MessageMatches alone;
  StreamEnd unknown = receive;
  unknown.key.from = -1;
  alone.add({send, unknown}, 1);
  CHECK(at(alone.sums(1), kSendSite).messages == send.kept.size());
  CHECK(at(alone.sums(1), kReceiveSite).messages == receive.kept.size());
  CHECK(at(alone.sums(1), kSendSite).matched + at(alone.sums(1), kReceiveSite).matched == 0);
}

TEST_CASE("messages: the sums are the same in any order of merging", "[messages]") {
  constexpr int kRanks = 12;
  const auto ends = [](int rank) {
    std::vector<StreamEnd> out;
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      const std::uint64_t messages = 10 + static_cast<std::uint64_t>(rank + peer);
      const bool doubtful = (rank * peer) % 5 == 1;
      for (const bool sends : {true, false}) {
        const StreamKey key{1, sends ? rank : peer, sends ? peer : rank, 3};
        out.push_back(end_of(
            sends, messages, rank % 3, [&](std::uint64_t n) { return kBegin(n) + rank; }, kWait, key));
        out.back().doubtful = doubtful && sends;
      }
    }
    return out;
  };
  const auto merged = [&](core::SplitMix64& random) {
    std::vector<MessageMatches> parts(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) parts[static_cast<std::size_t>(rank)].add(ends(rank), 2);
    while (parts.size() > 1) {
      const std::size_t to = random.below(parts.size() - 1);
      std::string bytes;
      ByteWriter(bytes).write(parts.back());
      MessageMatches read;
      ByteReader reader(bytes);
      reader.read(read);
      REQUIRE(reader.good);
      parts.pop_back();
      parts[to].merge(std::move(read), 2);
    }
    std::string bytes;
    for (const auto& [where, kinds] : parts[0].sums(2)) ByteWriter(bytes, true).write(where, kinds);
    return bytes;
  };
  core::SplitMix64 random(1);
  const std::string once = merged(random);
  CHECK(once.size() > 1000);
  for (int i = 0; i < 20; ++i) CHECK(merged(random) == once);
}

TEST_CASE("messages: merged parts have limits", "[messages]") {
  // Each rank sends to ranks that never answer, and has a wait for each.
  MessageMatches all;
  constexpr int kRanks = 280;
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<StreamEnd> out;
    for (int peer = 0; peer < 500; ++peer)
      out.push_back(end_of(true, 1, 0, kBegin, kWait, {1, rank, kRanks + peer, 3}));
    all.add(out, 1);
  }
  std::string bytes;
  ByteWriter(bytes).write(all);
  CHECK(bytes.size() < 200 * (MessageMatches::kMostEnds + MessageMatches::kMostSums));
  CHECK(at(all.sums(1), kSendSite).messages == 500u * kRanks);
  CHECK(at(all.sums(1), kSendSite).matched == 0);
}
