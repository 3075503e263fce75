// SPDX-License-Identifier: BSD-3-Clause
// Tests the tree of the exchange.
#include "core/agreement/tree.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

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
