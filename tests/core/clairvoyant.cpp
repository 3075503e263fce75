// SPDX-License-Identifier: BSD-3-Clause
// The Clairvoyant planner: the worked examples of the paper, generators that agree on ten thousand random instances,
// and plans that pass the verifier. The golden instances are tried through the command (tests/cli.py).
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "core/verify/verify.hpp"
#include "profiles/papers/generators/generators.hpp"

using namespace latecomer::core;
using namespace latecomer::core::clairvoyant;

namespace {

struct Made {
  std::vector<Nanoseconds> arrivals;
  Problem problem;
};

/// Ties, late roots, tiny and huge round times, arrivals that fall on the borders of rounds.
Made random_problem(std::mt19937_64& random) {
  Made out;
  const int ranks = 1 + static_cast<int>(random() % 64);
  constexpr Nanoseconds kRounds[] = {1, 3, 10, 1000, 1'000'000, 1'000'000'000'000};
  Problem& p = out.problem;
  p.segments = static_cast<int>(random() % 41);
  p.root = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
  p.round_ns = kRounds[random() % 6];
  const auto kind = random() % 5;
  for (int r = 0; r < ranks; ++r) {
    Nanoseconds a = 0;
    if (kind == 1) a = static_cast<Nanoseconds>(random() % 10);
    if (kind == 2) a = static_cast<Nanoseconds>(random() % 1000);
    if (kind == 3) a = static_cast<Nanoseconds>(random() % 1'000'000);
    if (kind == 4) a = static_cast<Nanoseconds>(random() % 4) * p.round_ns;
    out.arrivals.push_back(a);
  }
  if (random() % 4 == 0) out.arrivals[static_cast<std::size_t>(p.root)] += 5000;
  return out;
}

/// Plays a plan: every rule of a round that does not depend on how it was found. Returns what is wrong.
std::string play(const Problem& p, const std::vector<Message>& messages) {
  const auto ranks = static_cast<std::size_t>(p.ranks()), segments = static_cast<std::size_t>(p.segments);
  std::vector<std::vector<std::set<Rank>>> held(ranks, std::vector<std::set<Rank>>(segments));
  for (std::size_t r = 0; r < ranks; ++r)
    for (auto& share : held[r]) share = {static_cast<Rank>(r)};
  for (std::size_t i = 0; i < messages.size();) {
    const auto round = messages[i].round;
    std::set<Rank> senders, receivers;
    std::set<std::pair<Rank, int>> received;
    for (; i < messages.size() && messages[i].round == round; ++i) {
      const Message& m = messages[i];
      const auto s = static_cast<std::size_t>(m.src), d = static_cast<std::size_t>(m.dst),
                 j = static_cast<std::size_t>(m.segment);
      if (m.src == m.dst) return "a message to itself";
      if (!senders.insert(m.src).second) return "two sends in a round";
      if (!receivers.insert(m.dst).second) return "two receives in a round";
      if (received.count({m.src, m.segment})) return "sends what it received in this round";
      if (held[s][j].empty()) return "sends what it does not hold";
      received.insert({m.dst, m.segment});
      for (const Rank r : held[s][j])
        if (!held[d][j].insert(r).second) return "a contribution twice";
      held[s][j].clear();
    }
    if (i < messages.size() && messages[i].round < round) return "rounds out of order";
  }
  for (std::size_t r = 0; r < ranks; ++r)
    for (const auto& share : held[r])
      if (share.size() != (static_cast<Rank>(r) == p.root ? ranks : 0))
        return "rank " + std::to_string(r) + " ends with " + std::to_string(share.size()) + " contributions";
  return "";
}

}  // namespace

TEST_CASE("clairvoyant: the paper's example and its skipped rounds", "[clairvoyant]") {
  const std::vector<Nanoseconds> arrivals{0, 0, 0, 1'100'000}, stairs{0, 1'000'000'000, 2'000'000'000, 3'000'000'000};
  for (const auto& [name, generate] : kGenerators) {
    INFO(name);
    auto messages = *plan({4, 0, 1'000'000, arrivals}, *generate);
    REQUIRE(messages.size() == 15);
    CHECK(messages[0] == Message{0, 1, 0, 0});
    CHECK(messages[1] == Message{0, 0, 1, 1});
    CHECK(messages[2] == Message{1, 2, 0, 0});
    CHECK(messages[3] == Message{1, 3, 1, 1});
    CHECK(messages.back() == Message{5, 3, 0, 3});
    CHECK(*plan({1, 0, 1'000'000, stairs}, *generate) ==
          std::vector<Message>{{1000, 1, 0, 0}, {2000, 2, 0, 0}, {3000, 3, 0, 0}});
  }
}

TEST_CASE("clairvoyant: ten thousand random instances, all generators, one plan", "[clairvoyant]") {
  std::mt19937_64 random(5);
  for (int i = 0; i < (LATECOMER_LONG_TESTS ? 10'000 : 500); ++i) {
    Made made = random_problem(random);
    made.problem.arrivals = made.arrivals;
    const auto expected = *plan(made.problem, plan_plain);
    INFO("instance " << i << ": " << made.problem.ranks() << " ranks, " << made.problem.segments << " segments, round "
                     << made.problem.round_ns);
    REQUIRE(play(made.problem, expected) == "");
    for (const auto& [name, generate] : kGenerators) {
      INFO(name);
      REQUIRE(*plan(made.problem, *generate) == expected);
    }
  }
}

TEST_CASE("clairvoyant: sizes beyond one vector of bits", "[clairvoyant]") {
  std::mt19937_64 random(9);
  for (const auto& [ranks, segments] :
       std::map<int, int>{{3, 600}, {70, 65}, {130, 300}, {257, 129}, {512, 64}, {40, 512}, {513, 20}}) {
    for (const std::uint64_t latest : {100'000, 1'000, 1}) {  // a few at a time, many at a time, all at once
      std::vector<Nanoseconds> arrivals;
      for (int r = 0; r < ranks; ++r) arrivals.push_back(static_cast<Nanoseconds>(random() % latest));
      const Problem p{segments, ranks / 2, 700, arrivals};
      const auto expected = *plan(p, plan_segment_tree);
      INFO(ranks << " ranks, " << segments << " segments, latest " << latest);
      CHECK(play(p, expected) == "");
      CHECK(*plan(p, plan_rows) == expected);
      CHECK(*plan(p, plan_heaps) == expected);
    }
  }
}

TEST_CASE("clairvoyant: an allreduce's plan reaches everybody", "[clairvoyant]") {
  std::mt19937_64 random(11);
  for (int i = 0; i < (LATECOMER_LONG_TESTS ? 2000 : 200); ++i) {
    Made made = random_problem(random);
    made.problem.arrivals = made.arrivals;
    const auto ranks = static_cast<std::size_t>(made.problem.ranks()),
               segments = static_cast<std::size_t>(made.problem.segments);
    std::vector<PairExchange> plan;
    REQUIRE(plan_everywhere(made.problem, [&](const PairExchange& m) { plan.push_back(m); }) == "");
    std::vector<std::vector<std::set<Rank>>> held(ranks, std::vector<std::set<Rank>>(segments));
    for (std::size_t r = 0; r < ranks; ++r)
      for (auto& share : held[r]) share = {static_cast<Rank>(r)};
    std::set<std::pair<std::int64_t, Rank>> sent, received;
    std::size_t deliveries = 0;
    for (const PairExchange& m : plan) {
      auto& from = held[static_cast<std::size_t>(m.src)][static_cast<std::size_t>(m.segment)];
      auto& to = held[static_cast<std::size_t>(m.dst)][static_cast<std::size_t>(m.segment)];
      REQUIRE(sent.insert({m.round, m.src}).second);
      REQUIRE(received.insert({m.round, m.dst}).second);
      if (m.finished) {
        REQUIRE(from.size() == ranks);
        REQUIRE(to.empty());
        to = from;
        ++deliveries;
      } else {
        for (const Rank r : from) REQUIRE(to.insert(r).second);
        from.clear();
      }
    }
    for (const auto& mine : held)
      for (const auto& share : mine) REQUIRE(share.size() == ranks);
    REQUIRE(deliveries == (ranks - 1) * segments);
  }
}

TEST_CASE("clairvoyant: schedules of random patterns pass the verifier", "[clairvoyant]") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    Made made = random_problem(random);
    const int ranks = std::min<int>(static_cast<int>(made.arrivals.size()), 24);
    made.arrivals.resize(static_cast<std::size_t>(ranks));
    for (const Collective op : {Collective::reduce, Collective::allreduce}) {
      Call call{op,
                ranks,
                op == Collective::reduce ? made.problem.root % ranks : 0,
                static_cast<Elements>(random() % 100),
                8,
                random() % 2 == 0,
                true};
      Parameters parameters;
      parameters.segments = made.problem.segments;
      parameters.overlap = random() % 2 == 0;
      parameters.network.alpha_ns = static_cast<double>(made.problem.round_ns);
      const Instance instance(call, Pattern(made.arrivals), parameters);
      const ScheduleVerdict verdict = verify(call, materialize(*find_algorithm(op, "clairvoyant"), instance));
      INFO(i << ": " << name_of(op) << ", " << ranks << " ranks, " << verdict.what);
      REQUIRE(verdict.ok());
    }
  }
}

TEST_CASE("clairvoyant: what is out of range is named", "[clairvoyant]") {
  const std::vector<Nanoseconds> two{0, 5}, negative{0, -1}, none;
  CHECK(plan({1, 2, 10, two}).error().find("root") == 0);
  CHECK(plan({1, 0, 0, two}).error().find("round time") == 0);
  CHECK(plan({-1, 0, 1, two}).error().find("segments") == 0);
  CHECK(plan({1, 0, 1, negative}).error().find("arrivals") == 0);
  CHECK(plan({1, 0, 1, none}).error() == "no ranks");
}
