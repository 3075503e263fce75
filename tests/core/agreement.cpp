// SPDX-License-Identifier: BSD-3-Clause
// Tests the agreement rule on simulated ranks that make the same calls at different speeds. Under every interleaving,
// ranks act alike at the same call. No rank needs an announcement before all ranks have met inside one call.
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
  bool hear, ends, announce, identify, meet;
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
      const auto before = sequences[r].begin_call(s, plans, identified[r] != 0);
      const auto after = sequences[r].end_call(identified[r] != 0);
      if (after.identify) identified[r] = 1;
      events[r].push_back({before.n, before.hear, before.ends_epoch, before.announce, after.identify, after.meet});
      --left;
      ++calls;
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
      const auto before = all.begin_call(s, true, true);
      if (before.hear) all.set_epoch_length(i % 3 == 0 ? 200 : 0);
      all.end_call(true);
      if (i < pass_until) {
        REQUIRE_FALSE((before.hear || before.ends_epoch));
        ++passed;
        some.pass_calls(1);
        continue;
      }
      const auto seen = some.begin_call(s, true, true);
      REQUIRE(std::tuple(seen.n, seen.hear, seen.ends_epoch, seen.announce) ==
              std::tuple(before.n, before.hear, before.ends_epoch, before.announce));
      heard += seen.hear;
      if (seen.hear) some.set_epoch_length(i % 3 == 0 ? 200 : 0);
      some.end_call(true);
      REQUIRE((some.next_number() == all.next_number() && some.next_boundary() == all.next_boundary()));
      if (some.settled() && some.next_boundary() > i + 1)
        pass_until = i + 1 + random.below(some.next_boundary() - i - 1);
    }
  }
  CHECK(passed > 100'000);
  CHECK(heard > 1'000);
}

TEST_CASE("agreement: all ranks have met in a call that depends on all before any of them hears", "[agreement]") {
  SplitMix64 random(7);
  std::uint64_t heard = 0;
  for (int round = 0; round < 200; ++round) {
    const auto program = random_program(random, 2000);
    Sequence sequence;
    bool outstanding = false, met = false;
    for (const Signature& s : program) {
      const auto b = sequence.begin_call(s, true, true);
      if (b.hear) {
        REQUIRE((outstanding && met && !b.waits));
        REQUIRE(s.kind == CallKind::blocking);
        outstanding = false;
        ++heard;
      }
      if (b.announce) {
        REQUIRE_FALSE(outstanding);
        REQUIRE(s.kind == CallKind::blocking);
        outstanding = true;
        met = false;
      }
      if (!sequence.end_call(true).meet) continue;
      REQUIRE((outstanding && !met));
      // By the semantics of MPI, no rank leaves it before all have called it.
      REQUIRE((s.kind == CallKind::blocking && depends_on_all(s.op, s.bytes)));
      met = true;
    }
  }
  CHECK(heard > 1'000);
}

TEST_CASE("agreement: in mode observe no rank ever hears, and rooted programs have long epochs", "[agreement]") {
  Sequence sequence;
  Signature bcast;
  bcast.op = Collective::bcast;
  bcast.bytes = 8;
  bcast.root = 1;
  std::vector<std::uint64_t> ends;
  for (int i = 0; i < 3000; ++i) {
    const auto b = sequence.begin_call(bcast, false, true);
    REQUIRE_FALSE(b.hear);
    REQUIRE_FALSE(b.announce);
    if (b.ends_epoch) ends.push_back(b.n);
    const auto after = sequence.end_call(true);
    REQUIRE_FALSE((after.identify || after.meet));
  }
  CHECK(ends == std::vector<std::uint64_t>{16, 32, 64, 128, 1152, 2176});
}

TEST_CASE("agreement: without a call that depends on all ranks no plan comes into force, and full logs go up",
          "[agreement]") {
  for (const Collective op : {Collective::bcast, Collective::scatter, Collective::gather}) {
    Sequence sequence;
    Signature s;
    s.op = op;
    s.bytes = 8;
    s.root = 0;
    std::vector<std::uint64_t> ends, announcements;
    for (int i = 0; i < 2100; ++i) {
      const auto b = sequence.begin_call(s, true, true);
      REQUIRE_FALSE(b.hear);
      if (b.ends_epoch) ends.push_back(b.n);
      if (b.announce) announcements.push_back(b.n);
      const auto after = sequence.end_call(false);
      REQUIRE_FALSE((after.identify || after.meet));  // not all ranks are inside the call
    }
    CHECK(ends == std::vector<std::uint64_t>{16, 1040, 2064});
    CHECK(announcements == std::vector<std::uint64_t>{16});
  }
}

TEST_CASE("agreement: boundaries of a program of allreduces", "[agreement]") {
  Sequence sequence;
  Signature s;
  s.op = Collective::allreduce;
  s.bytes = 8;
  std::vector<std::uint64_t> ends, hears;
  for (int i = 0; i < 500; ++i) {
    const auto b = sequence.begin_call(s, true, true);
    if (b.ends_epoch) ends.push_back(b.n);
    if (b.hear) hears.push_back(b.n);
    sequence.end_call(true);
  }
  CHECK(ends == std::vector<std::uint64_t>{16, 32, 64, 128, 256, 384});
  CHECK(hears == std::vector<std::uint64_t>{32, 64, 128, 256, 384});
}

TEST_CASE("agreement: an announcement sets the number of calls of the epoch that it begins", "[agreement]") {
  Sequence sequence;
  Signature s;
  s.op = Collective::allreduce;
  s.bytes = 8;
  std::vector<std::uint64_t> ends;
  for (int i = 0; i < 900; ++i) {
    const auto b = sequence.begin_call(s, true, true);
    if (b.ends_epoch) ends.push_back(b.n);
    if (b.hear) sequence.set_epoch_length(b.n == 32 ? 24 : b.n == 56 ? 500 : 0);
    CHECK(b.hear == (b.ends_epoch && b.n > 16));
    sequence.end_call(true);
  }
  CHECK(ends == std::vector<std::uint64_t>{16, 32, 56, 556, 684, 812});
}

TEST_CASE("agreement: early boundaries, and epochs in which a rank looks for an announcement after every call",
          "[agreement]") {
  Sequence sequence;
  sequence.begin_early();
  CHECK(sequence.has_brief_epoch());
  Signature s;
  s.op = Collective::allreduce;
  s.bytes = 8;
  std::vector<std::uint64_t> ends, brief;
  for (int i = 0; i < 200; ++i) {
    const auto b = sequence.begin_call(s, true, true);
    if (b.ends_epoch) ends.push_back(b.n);
    if (b.hear) sequence.set_epoch_length(b.n == 8 || b.n == 12 ? Sequence::kShortestEpoch : b.n == 16 ? 40 : 0);
    CHECK(b.hear == (b.ends_epoch && b.n > 4));
    if (b.ends_epoch && sequence.has_brief_epoch()) brief.push_back(b.n);
    sequence.end_call(true);
  }
  CHECK(ends == std::vector<std::uint64_t>{4, 8, 12, 16, 56, 112});
  CHECK(brief == std::vector<std::uint64_t>{4, 8, 12});
}

TEST_CASE("agreement: ranks agree on the identity once, after a call that depends on all", "[agreement]") {
  Sequence sequence;
  Signature s;
  s.op = Collective::allreduce;
  s.bytes = 8;
  int asked = 0;
  for (int i = 0; i < 15; ++i) {
    sequence.begin_call(s, false, false);
    asked += sequence.end_call(false).identify;
  }
  CHECK(asked == 0);
  sequence.begin_call(s, false, false);
  CHECK(sequence.end_call(false).identify);
  s.op = Collective::bcast;
  sequence.begin_call(s, false, false);
  CHECK_FALSE(sequence.end_call(false).identify);
}

TEST_CASE("agreement: a rank that leaves calls by a jump acts like the others", "[agreement]") {
  // It does not reach end_call() of calls that prove something, and calls it before its next call.
  Signature all, leaders, other;
  all.op = Collective::allreduce;
  all.bytes = 8;
  leaders.op = other.op = Collective::bcast;
  leaders.bytes = other.bytes = 8;
  leaders.root = 0;
  other.root = 1;
  Sequence jumps, returns;
  bool agreed[2] = {};
  int met[2] = {};
  for (std::uint64_t n = 0; n < 600; ++n) {
    Signature s = n % 40 == 20 ? all : n % 40 == 37 ? leaders : other;
    if (n % 7 == 3) s.kind = CallKind::nonblocking;
    const auto end = [&](Sequence& sequence, int rank) {
      const auto after = sequence.end_call(agreed[rank]);
      agreed[rank] = agreed[rank] || after.identify;
      met[rank] += after.meet;
    };
    end(jumps, 0);
    CHECK((agreed[0] == agreed[1] && met[0] == met[1]));
    const auto a = jumps.begin_call(s, true, agreed[0]), b = returns.begin_call(s, true, agreed[1]);
    CHECK((a.hear == b.hear && a.ends_epoch == b.ends_epoch && a.announce == b.announce));
    if (s.op != Collective::allreduce && s.root != 0) end(jumps, 0);
    end(returns, 1);
  }
  CHECK(met[0] > 0);
  CHECK((agreed[0] && agreed[1]));
}

TEST_CASE("agreement: a call that MPI refuses on all ranks has no number", "[agreement]") {
  Signature s;
  CHECK(is_counted(s));
  s.refused = true;
  CHECK_FALSE(is_counted(s));
  s = {};
  s.kind = CallKind::persistent;
  CHECK_FALSE(is_counted(s));
}
