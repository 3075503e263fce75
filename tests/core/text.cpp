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

TEST_CASE("text that is not UTF-8 is replaced, and nothing else", "[text]") {
  for (const char* good : {"", "plain", "caf\u00e9", "\u20ac \U0001f600", "\u0800\ud7ff\ue000\U0010ffff", "a\n\t"})
    CHECK(utf8(good) == good);
  CHECK(utf8(std::string_view("a\0b", 3)) == std::string_view("a\0b", 3));
  const std::pair<const char*, const char*> bad[] = {
      {"caf\xe9", "caf\ufffd"},
      {"\xe9t\xe9", "\ufffdt\ufffd"},
      {"cut \xe2\x82", "cut \ufffd"},                    // of three bytes
      {"\xf0\x9f\x98!", "\ufffd!"},                      // of four
      {"\xc0\xaf", "\ufffd\ufffd"},                      // a long form of '/'
      {"\xe0\x80\xaf", "\ufffd\ufffd\ufffd"},            // another
      {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},            // a surrogate
      {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},  // above 0x10ffff
      {"\x80\xff", "\ufffd\ufffd"}};
  for (const auto& [text, expected] : bad) CHECK(utf8(text) == expected);
}

TEST_CASE("JSON that is nested too deep", "[text]") {
  const auto nested = [](int depth) { return std::string(static_cast<std::size_t>(depth), '['); };
  CHECK(nested_too_deep(nested(kMostNested)).empty());
  CHECK(nested_too_deep("{\n\n" + nested(kMostNested)) == "line 3: arrays and objects are nested more than 64 deep");
  CHECK(nested_too_deep("[\"" + nested(1000) + "\\\"" + nested(1000) + "\"]").empty());  // in a string
  std::string flat = "[";
  for (int i = 0; i < 1000; ++i) flat += "[{}],";
  CHECK(nested_too_deep(flat + "0]").empty());
}

TEST_CASE("figures do not depend on the locale", "[text]") {
  CHECK(fixed(2.5, 2) == "2.50");
  CHECK(fixed(-1e300, 0).size() == 302);
  CHECK(significant(0.0058, 9) == "0.0058");
  CHECK(significant(1234567, 3) == "1.23e+06");
  CHECK(significant(0, 9) == "0");
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
  constexpr std::string_view options[] = {"--help", "--html"};
  CHECK(nearest("--htlm", options) == "--html");  // two letters that changed places are one mistake
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
