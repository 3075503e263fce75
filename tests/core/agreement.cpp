// SPDX-License-Identifier: BSD-3-Clause
// Tests the agreement rule on simulated ranks that make the same calls at different speeds. Under every interleaving,
// ranks act alike at the same call. A rank that hears an announcement never waits for the program of the leader.
#include "core/agreement/agreement.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/text.hpp"

using namespace latecomer::core;

namespace {

std::vector<Signature> random_program(SplitMix64& random, int calls) {
  std::vector<Signature> program;
  const Collective ops[] = {Collective::allreduce, Collective::bcast,     Collective::barrier,
                            Collective::reduce,    Collective::allgather, Collective::alltoallv};
  const int style = static_cast<int>(random.below(4));
  for (int i = 0; i < calls; ++i) {
    Signature s;
    s.op = style == 0 ? Collective::allreduce : style == 1 ? Collective::bcast : ops[random.below(6)];
    s.kind = style != 3 && random.below(8) == 0 ? CallKind::nonblocking
             : style == 3 && random.below(2)    ? CallKind::nonblocking
                                                : CallKind::blocking;
    s.bytes = s.op == Collective::alltoallv ? -1 : static_cast<Bytes>(random.below(3)) * 1000;
    s.root = is_rooted(s.op) ? static_cast<Rank>(random.below(2)) : -1;
    program.push_back(s);
  }
  return program;
}

struct Event {
  std::uint64_t n;
  bool hear, ends, announce, identify;
  bool operator==(const Event&) const = default;
};

}  // namespace

TEST_CASE("agreement: all ranks act alike at the same call", "[agreement]") {
  SplitMix64 random(42);
  std::uint64_t calls = 0;
  for (int round = 0; round < 60; ++round) {
    const int ranks = 2 + static_cast<int>(random.below(4));
    const auto program = random_program(random, 600);
    const bool plans = random.below(4) != 0;
    std::vector<std::vector<Event>> events(static_cast<std::size_t>(ranks));
    // A rank's state machine sees only the calls of its rank. The test interleaves the ranks at random.
    std::vector<Sequence> sequences(static_cast<std::size_t>(ranks));
    std::vector<std::size_t> at(static_cast<std::size_t>(ranks), 0);
    std::vector<char> identified(static_cast<std::size_t>(ranks), 0);
    for (std::size_t left = program.size() * static_cast<std::size_t>(ranks); left > 0;) {
      const auto r = static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(ranks)));
      if (at[r] == program.size()) continue;
      const Signature& s = program[at[r]++];
      const auto before = sequences[r].begin(s, plans, identified[r] != 0);
      const bool identify = sequences[r].end(s, identified[r] != 0);
      if (identify) identified[r] = 1;
      events[r].push_back({before.n, before.hear, before.ends_epoch, before.announce, identify});
      --left, ++calls;
    }
    for (const auto& e : events) REQUIRE(e == events[0]);
  }
  REQUIRE(calls > 60'000);
}

TEST_CASE("agreement: calls that a rank passes without a look change no boundary", "[agreement]") {
  SplitMix64 random(43);
  std::uint64_t passed = 0, heard = 0;
  for (int round = 0; round < 200; ++round) {
    const auto program = random_program(random, 3000);
    Sequence all, some;
    std::uint64_t pass_until = 0;
    for (std::uint64_t i = 0; i < program.size(); ++i) {
      const Signature& s = program[i];
      const auto before = all.begin(s, true, true);
      if (before.hear) all.lasts(i % 3 == 0 ? 200 : 0);
      all.end(s, true);
      if (i < pass_until) {
        REQUIRE_FALSE((before.hear || before.ends_epoch));
        ++passed;
        some.pass(1);
        continue;
      }
      const auto seen = some.begin(s, true, true);
      REQUIRE(std::tuple(seen.n, seen.hear, seen.ends_epoch, seen.announce) ==
              std::tuple(before.n, before.hear, before.ends_epoch, before.announce));
      heard += seen.hear;
      if (seen.hear) some.lasts(i % 3 == 0 ? 200 : 0);
      some.end(s, true);
      REQUIRE((some.next_number() == all.next_number() && some.next_boundary() == all.next_boundary()));
      if (some.settled() && some.next_boundary() > i + 1) pass_until = i + 1 + random.below(some.next_boundary() - i);
    }
  }
  CHECK(passed > 100'000);
  CHECK(heard > 1'000);
}

TEST_CASE("agreement: the leader has announced before any rank hears", "[agreement]") {
  SplitMix64 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto program = random_program(random, 2000);
    Sequence sequence;
    bool identified = true, outstanding = false;
    std::uint64_t announced_at = 0;
    bool forced = false;  // a completed call that depends on the leader began at or after the announcement
    for (const Signature& s : program) {
      const auto b = sequence.begin(s, true, identified);
      if (b.hear) {
        REQUIRE(outstanding);
        REQUIRE(forced);
        REQUIRE(s.kind == CallKind::blocking);
        REQUIRE(b.n > announced_at);
        outstanding = false;
      }
      if (b.announce) {
        REQUIRE_FALSE(outstanding);
        REQUIRE(s.kind == CallKind::blocking);
        outstanding = true, announced_at = b.n, forced = false;
      }
      // By the semantics of MPI, the leader (rank 0) calls it before any other rank can leave it.
      const bool from_leader = s.root == 0 && s.bytes > 0 && (s.op == Collective::bcast || s.op == Collective::scatter);
      if (s.kind == CallKind::blocking && (depends_on_all(s.op, s.bytes) || from_leader)) forced = outstanding;
      sequence.end(s, identified);
    }
  }
}

TEST_CASE("agreement: in mode observe no rank ever hears, and rooted programs have long epochs", "[agreement]") {
  Sequence sequence;
  Signature bcast;
  bcast.op = Collective::bcast, bcast.bytes = 8, bcast.root = 1;
  std::vector<std::uint64_t> ends;
  for (int i = 0; i < 3000; ++i) {
    const auto b = sequence.begin(bcast, false, true);
    REQUIRE_FALSE(b.hear);
    REQUIRE_FALSE(b.announce);
    if (b.ends_epoch) ends.push_back(b.n);
    REQUIRE_FALSE(sequence.end(bcast, true));
  }
  CHECK(ends == std::vector<std::uint64_t>{16, 32, 64, 128, 1152, 2176});
}

TEST_CASE("agreement: plans come into force where all data come from the leader", "[agreement]") {
  for (const Collective op : {Collective::bcast, Collective::scatter, Collective::gather}) {
    Sequence sequence;
    Signature s;
    s.op = op, s.bytes = 8, s.root = 0;
    std::vector<std::uint64_t> hears;
    for (int i = 0; i < 400; ++i) {
      if (const auto b = sequence.begin(s, true, true); b.hear) hears.push_back(b.n);
      REQUIRE_FALSE(sequence.end(s, false));  // no blocking agreement, because not all ranks are inside the call
    }
    // After a gather, only the root knows that other ranks have arrived.
    if (op == Collective::gather) CHECK(hears.empty());
    else CHECK(hears == std::vector<std::uint64_t>{32, 64, 128, 256, 384});
  }
}

TEST_CASE("agreement: boundaries of a program of allreduces", "[agreement]") {
  Sequence sequence;
  Signature s;
  s.op = Collective::allreduce, s.bytes = 8;
  std::vector<std::uint64_t> ends, hears;
  for (int i = 0; i < 500; ++i) {
    const auto b = sequence.begin(s, true, true);
    if (b.ends_epoch) ends.push_back(b.n);
    if (b.hear) hears.push_back(b.n);
    sequence.end(s, true);
  }
  CHECK(ends == std::vector<std::uint64_t>{16, 32, 64, 128, 256, 384});
  CHECK(hears == std::vector<std::uint64_t>{32, 64, 128, 256, 384});
}

TEST_CASE("agreement: an announcement sets the number of calls of the epoch that it begins", "[agreement]") {
  Sequence sequence;
  Signature s;
  s.op = Collective::allreduce, s.bytes = 8;
  std::vector<std::uint64_t> ends;
  for (int i = 0; i < 900; ++i) {
    const auto b = sequence.begin(s, true, true);
    if (b.ends_epoch) ends.push_back(b.n);
    if (b.hear) sequence.lasts(b.n == 32 ? 24 : b.n == 56 ? 500 : 0);
    CHECK(b.hear == (b.ends_epoch && b.n > 16));
    sequence.end(s, true);
  }
  CHECK(ends == std::vector<std::uint64_t>{16, 32, 56, 556, 684, 812});
}

TEST_CASE("agreement: early boundaries, and epochs in which a rank looks for an announcement after every call",
          "[agreement]") {
  Sequence sequence;
  sequence.begin_early();
  CHECK(sequence.brief());
  Signature s;
  s.op = Collective::allreduce, s.bytes = 8;
  std::vector<std::uint64_t> ends, brief;
  for (int i = 0; i < 200; ++i) {
    const auto b = sequence.begin(s, true, true);
    if (b.ends_epoch) ends.push_back(b.n);
    if (b.hear) sequence.lasts(b.n == 8 || b.n == 12 ? Sequence::kShortestEpoch : b.n == 16 ? 40 : 0);
    CHECK(b.hear == (b.ends_epoch && b.n > 4));
    if (b.ends_epoch && sequence.brief()) brief.push_back(b.n);
    sequence.end(s, true);
  }
  CHECK(ends == std::vector<std::uint64_t>{4, 8, 12, 16, 56, 112});
  CHECK(brief == std::vector<std::uint64_t>{4, 8, 12});
}

TEST_CASE("agreement: ranks agree on the identity once, after a call that depends on all", "[agreement]") {
  Sequence sequence;
  Signature s;
  s.op = Collective::allreduce, s.bytes = 8;
  int asked = 0;
  for (int i = 0; i < 15; ++i) sequence.begin(s, false, false), asked += sequence.end(s, false);
  CHECK(asked == 0);
  sequence.begin(s, false, false);
  CHECK(sequence.end(s, false));
  s.op = Collective::bcast;
  sequence.begin(s, false, false);
  CHECK_FALSE(sequence.end(s, false));
}

TEST_CASE("agreement: a rank that leaves calls by a jump acts like the others", "[agreement]") {
  // It does not reach end() of calls that prove something, and calls it before its next call.
  Signature all, leaders, other;
  all.op = Collective::allreduce, all.bytes = 8;
  leaders.op = other.op = Collective::bcast, leaders.bytes = other.bytes = 8;
  leaders.root = 0, other.root = 1;
  Sequence jumps, returns;
  bool agreed[2] = {};
  for (std::uint64_t n = 0; n < 600; ++n) {
    Signature s = n % 40 == 20 ? all : n % 40 == 37 ? leaders : other;
    if (n % 7 == 3) s.kind = CallKind::nonblocking;
    agreed[0] = jumps.end(s, agreed[0]) || agreed[0];
    CHECK((agreed[0] == agreed[1] || s.kind == CallKind::nonblocking));
    const auto a = jumps.begin(s, true, agreed[0]), b = returns.begin(s, true, agreed[1]);
    CHECK((a.hear == b.hear && a.ends_epoch == b.ends_epoch && a.announce == b.announce));
    if (s.op != Collective::allreduce && s.root != 0) agreed[0] = jumps.end(s, agreed[0]) || agreed[0];
    agreed[1] = returns.end(s, agreed[1]) || agreed[1];
  }
  CHECK((agreed[0] && agreed[1]));
}

TEST_CASE("agreement: a call that MPI refuses on all ranks has no number", "[agreement]") {
  Signature s;
  CHECK(counted(s));
  s.refused = true;
  CHECK_FALSE(counted(s));
  s = {};
  s.kind = CallKind::persistent;
  CHECK_FALSE(counted(s));
}
