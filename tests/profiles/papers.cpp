// SPDX-License-Identifier: BSD-3-Clause
// The programs that only the tables of publications need.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "profiles/papers/binary_times.hpp"

using namespace latecomer;
using namespace latecomer::profiles::papers;

TEST_CASE("papers: the times of binary trees in quadratic time are those of the cubic program", "[papers]") {
  std::srand(7);
  const auto any = [](int below) { return std::rand() % below; };
  int answered = 0;
  for (int i = 0; i < (LATECOMER_LONG_TESTS ? 4000 : 400); ++i) {
    core::TreeProblem p;
    const int most = any(2) ? 3 : 50, empty = any(4);
    for (int r = 0, ranks = 2 + any(20); r < ranks; ++r) p.sizes.push_back(any(4) < empty ? 0 : any(most));
    p.alpha = {static_cast<double>(any(2) ? any(3) : any(100))};
    p.beta = {static_cast<double>(1 + any(3))};
    p.gamma = {static_cast<double>(any(3))};
    const core::Rank root = any(p.ranks());
    const auto times = binary_times(p, root);
    INFO("instance " << i << ", root " << root);
    if (p.gamma[0] > p.beta[0]) CHECK(!times);
    if (!times) continue;
    ++answered;
    REQUIRE(times->given == core::trees::binary(p, root).cost);
    REQUIRE(times->free == core::trees::binary(p, -1).cost);
  }
  CHECK(answered > 100);
}
