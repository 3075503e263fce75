// SPDX-License-Identifier: BSD-3-Clause
// Tests the tree of the exchange, and the proofs that an announcement has come down it.
#include "core/agreement/tree.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "core/agreement/agreement.hpp"
#include "core/base/text.hpp"

using namespace latecomer::core;

namespace {

std::vector<int> blocks(int hosts, int ranks_per_host) {
  std::vector<int> out;
  for (int h = 0; h < hosts; ++h) out.insert(out.end(), static_cast<std::size_t>(ranks_per_host), h);
  return out;
}

struct Shape {
  int depth = 0;
  std::size_t widest = 0, across = 0;  ///< most children of a node; edges between hosts
};

/// The shape of a whole tree, after a check that the places of all ranks make one.
Shape shape_of(const std::vector<int>& hosts) {
  const auto size = static_cast<Rank>(hosts.size());
  const std::vector<TreePlace> places = places_in_tree(hosts);
  for (const Rank r : {0, size / 2, size - 1}) {
    const TreePlace one = place_in_tree(hosts, r), &same = places[static_cast<std::size_t>(r)];
    REQUIRE((one.parent == same.parent && one.children == same.children && one.level == same.level));
    REQUIRE(one.depth == same.depth);
  }
  Shape out;
  std::size_t edges = 0;
  int deepest = 0;
  for (Rank r = 0; r < size; ++r) {
    const TreePlace& place = places[static_cast<std::size_t>(r)];
    REQUIRE((place.parent < 0) == (r == 0));
    REQUIRE(place.depth == places[0].depth);
    deepest = std::max(deepest, place.level);
    out.widest = std::max(out.widest, place.children.size());
    for (const Rank child : place.children) {
      const TreePlace& below = places[static_cast<std::size_t>(child)];
      REQUIRE(below.parent == r);
      REQUIRE(below.level == place.level + 1);
      ++edges;
      out.across += hosts[static_cast<std::size_t>(child)] != hosts[static_cast<std::size_t>(r)];
    }
  }
  REQUIRE(edges + 1 == hosts.size());
  REQUIRE(deepest == places[0].depth);
  out.depth = deepest;
  return out;
}

}  // namespace

TEST_CASE("tree: up to 33 ranks are children of the leader, whatever their hosts", "[tree]") {
  for (int ranks = 2; ranks <= 33; ++ranks) {
    std::vector<int> hosts;
    for (int r = 0; r < ranks; ++r) hosts.push_back(r % 3);
    const Shape shape = shape_of(hosts);
    CHECK(shape.depth == 1);
    CHECK(shape.widest == static_cast<std::size_t>(ranks) - 1);
  }
  CHECK(shape_of({0}).depth == 0);
}

TEST_CASE("tree: hosts are below one of their ranks where that costs no level", "[tree]") {
  CHECK(shape_of(blocks(4, 16)).across == 3);
  CHECK(shape_of(blocks(4, 16)).depth == 2);
  CHECK(shape_of(blocks(16, 8)).across == 15);
  CHECK(shape_of(blocks(30, 33)).depth == 2);
  CHECK(shape_of(blocks(8, 128)).depth == 2);
  std::vector<int> cyclic;
  for (int r = 0; r < 64; ++r) cyclic.push_back(r % 4);
  CHECK(shape_of(cyclic).across == 3);
}

TEST_CASE("tree: no node has more than 32 children, and three levels hold 16,384 ranks", "[tree]") {
  const Shape large = shape_of(blocks(32, 32));
  CHECK(large.depth == 2);
  CHECK(large.widest <= kFanOut);
  SplitMix64 random(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<int> hosts;
    const int count = 1 + static_cast<int>(random.below(60));
    for (int h = 0; h < count; ++h) hosts.insert(hosts.end(), 1 + static_cast<std::size_t>(random.below(40)), h);
    if (round % 2)  // in any order
      for (std::size_t i = hosts.size(); i > 1; --i) std::swap(hosts[i - 1], hosts[random.below(i)]);
    const Shape shape = shape_of(hosts);
    CHECK(shape.widest <= kFanOut);
    CHECK(shape.depth <= (hosts.size() <= 33 ? 1 : hosts.size() <= 1057 ? 2 : 3));
  }
  const Shape largest = shape_of(blocks(128, 128));
  CHECK(largest.depth == 3);
  CHECK(largest.widest <= kFanOut);
}

namespace {

enum class Variant { sound, one_proof_less, any_proof };

/// Ranks of a tree that make random calls, some far ahead of others. An announcement is sent down hop by hop. Returns
/// the number of announcements that came into force, or nothing if a rank had to have an announcement that its parent
/// had not sent.
std::optional<int> announcements(const std::vector<int>& hosts, int calls, SplitMix64& random, Variant variant) {
  const auto size = hosts.size();
  const std::vector<TreePlace> places = places_in_tree(hosts);
  const int depth = places[0].depth;
  std::vector<Signature> program;
  for (int i = 0; i < calls; ++i) {
    Signature s;
    const auto kind = random.below(10);
    s.op = kind < 5 ? Collective::allreduce : kind < 8 ? Collective::bcast : Collective::gather;
    s.bytes = 8, s.root = s.op == Collective::allreduce ? -1 : static_cast<Rank>(random.below(3) % size);
    s.kind = random.below(9) == 0 ? CallKind::nonblocking : CallKind::blocking;
    program.push_back(s);
  }
  struct State {
    Sequence sequence;
    std::size_t at = 0;
    bool inside = false;
    int sent = 0, has = 0;  ///< announcements that it has sent to its children, and that it has
  };
  std::vector<State> ranks(size);
  int announced = 0, in_force = 0;
  for (State& r : ranks) r.sequence.deepen(variant == Variant::one_proof_less ? depth - 1 : depth);
  const auto receive = [&](std::size_t me, int number) {
    State& r = ranks[me];
    if (r.has >= number) return true;
    const int there = me == 0 ? announced : ranks[static_cast<std::size_t>(places[me].parent)].sent;
    if (there < number) return false;
    r.has = r.sent = number;
    return true;
  };
  std::vector<int> heard(size);
  std::vector<std::size_t> entered(program.size());  // ranks that are inside a call, or were
  for (std::size_t left = size * program.size(); left > 0;) {
    const auto me = static_cast<std::size_t>(random.below(size));
    State& r = ranks[me];
    for (auto steps = 1 + random.below(30); steps > 0 && r.at < program.size(); --steps) {
      const Signature& s = program[r.at];
      if (!r.inside) {
        const auto before = r.sequence.begin(s, true, true);
        if (before.hear) {
          if (!receive(me, ++heard[me])) return {};
          if (me == 0) ++in_force;
          r.sequence.lasts(heard[me] % 3 == 0 ? 1 : heard[me] % 3 == 1 ? 5 : 24);
        }
        if (before.announce && me == 0) ++announced, ranks[0].has = ranks[0].sent = announced;
        r.inside = true, ++entered[r.at];
      }
      if (s.kind == CallKind::blocking) {
        const bool all =
            s.op == Collective::allreduce || (s.op == Collective::gather && static_cast<Rank>(me) == s.root);
        if (all && entered[r.at] < size) break;
        if (s.op == Collective::bcast)
          if (const State& root = ranks[static_cast<std::size_t>(s.root)]; root.at + root.inside <= r.at) break;
      }
      r.sequence.end(s, true);
      const int level = variant == Variant::any_proof ? 1 : places[me].level;
      if (places[me].inner() && r.sequence.due(level) && !receive(me, heard[me] + 1)) return {};
      r.inside = false;
      ++r.at, --left;
    }
  }
  return in_force;
}

}  // namespace

TEST_CASE("tree: every announcement has come down when it is due", "[tree]") {
  SplitMix64 random(11);
  int in_force = 0;
  for (int round = 0; round < 60; ++round) {
    const std::vector<int> hosts =
        blocks(1 + static_cast<int>(random.below(4)), 10 + static_cast<int>(random.below(10)));
    const auto found = announcements(hosts, 400, random, Variant::sound);
    REQUIRE(found.has_value());
    in_force += *found;
  }
  CHECK(in_force > 500);
  // A million calls on 64 ranks, and calls of large jobs.
  struct Job {
    int hosts, ranks_per_host, calls;
  };
  for (const Job job : {Job{4, 16, LATECOMER_LONG_TESTS ? 1'000'000 : 50'000}, Job{64, 16, 10'000},
                        Job{128, 128, LATECOMER_LONG_TESTS ? 10'000 : 200}}) {
    const auto found = announcements(blocks(job.hosts, job.ranks_per_host), job.calls, random, Variant::sound);
    REQUIRE(found.has_value());
    CHECK(*found > job.calls / 100);
  }
}

TEST_CASE("tree: an announcement in force after one proof less is caught", "[tree]") {
  SplitMix64 random(12);
  int caught = 0;
  for (int round = 0; round < 40; ++round)
    caught += !announcements(blocks(4, 16), 400, random, Variant::one_proof_less).has_value();
  CHECK(caught > 0);
}

TEST_CASE("tree: a node that takes the leader's proof for its parent's is caught", "[tree]") {
  SplitMix64 random(13);
  int caught = 0;
  for (int round = 0; round < 5; ++round)
    caught += !announcements(blocks(36, 32), 200, random, Variant::any_proof).has_value();
  CHECK(caught > 0);
}
