// SPDX-License-Identifier: BSD-3-Clause
// Tests the parsers of units, lists and networks, glob matching, name suggestions, and the logarithm.
#include "core/base/text.hpp"

#include <catch2/catch.hpp>

#include "core/base/logarithm.hpp"
#include "core/network/network.hpp"

using namespace latecomer::core;

TEST_CASE("units", "[text]") {
  CHECK(*parse_duration("50ms") == 50'000'000);
  CHECK(*parse_duration("0.1us") == 100);
  CHECK(*parse_duration("1.0000000005s") == 1'000'000'000);
  CHECK(*parse_duration("0") == 0);
  for (const char* bad : {"", "50", "-1ms", "ms", "5 ms", "nan", "1e400s"}) CHECK_FALSE(parse_duration(bad));
  CHECK(*parse_bytes("64KiB") == 65536);
  CHECK(*parse_bytes("4MB") == 4'000'000);
  CHECK(*parse_bytes("17") == 17);
  for (const char* bad : {"", "KiB", "1 MB", "1.5", "-4", "4Kb", "99999999TiB"}) CHECK_FALSE(parse_bytes(bad));
}

TEST_CASE("lists", "[text]") {
  CHECK(*parse_list("1-3,32,2") == std::vector<int>{1, 2, 3, 32});
  for (const char* bad : {"", "3-1", "a", "1,,2", "1-"}) CHECK_FALSE(parse_list(bad));
}

TEST_CASE("globs", "[text]") {
  CHECK(glob_match("solver.cpp:*", "solver.cpp:12"));
  CHECK(glob_match("*a?c*", "xxabcxx"));
  CHECK_FALSE(glob_match("a?", "a"));
  CHECK(glob_match("*", ""));
}

TEST_CASE("nearest names", "[text]") {
  constexpr std::string_view names[] = {"ring", "rabenseifner", "slt"};
  CHECK(nearest("rign", names) == "ring");
  CHECK(nearest("rabenseifer", names) == "rabenseifner");
  CHECK(nearest("quicksort", names).empty());
}

TEST_CASE("network specifications", "[text]") {
  const auto n = parse_network(
      "alpha=25us,beta=8ns/B,gamma=0.3ns/B,ports=link,latency=50us,rendezvous_latency=340us,eager=64KiB,copy=0.1ns/"
      "B,overhead=0.5us");
  REQUIRE(n);
  CHECK(n->alpha_ns == 25'000);
  CHECK(n->beta_ns_per_byte == 8);
  CHECK(n->ports == 0);
  CHECK(n->flight_ns(65536) == 50'000);
  CHECK(n->flight_ns(65537) == 340'000);
  CHECK(parse_network("eth1g,gamma=1ns/B")->gamma_ns_per_byte == 1);
  CHECK(parse_network("tryton").error().find("tryton2018") != std::string::npos);
  CHECK(parse_network("alpa=1us").error().find("alpha") != std::string::npos);
  for (const char* bad : {"alpha=1", "beta=1us", "ports=0", "alpha=1us,eth1g", ""}) CHECK_FALSE(parse_network(bad));
}

TEST_CASE("logarithm: within a few units in the last place of libm, exact for powers of two", "[text]") {
  for (double x = 1e-9; x < 1e12; x *= 1.0137) {
    INFO(x);
    CHECK(std::abs(logarithm(x) - std::log(x)) <= 4e-16 * std::max(1.0, std::abs(std::log(x))));
  }
  CHECK(logarithm(1) == 0);
  for (int k = 1; k <= 40; ++k) CHECK(logarithm(std::ldexp(1, k)) == k * logarithm(2));
}
