// SPDX-License-Identifier: BSD-3-Clause
// Implements the distributions of block sizes, with integer division as in the paper's program.
#include "core/trees/distributions.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

using Integer = std::int64_t;

/// glibc's rand(): the additive feedback generator x[n] = x[n-3] + x[n-31], without its lowest bit.
class GlibcRand {
 public:
  explicit GlibcRand(std::int32_t seed) {
    std::int64_t word = seed;
    for (auto& w : state_) {
      w = static_cast<std::uint32_t>(word);
      word = 16807 * word % 2147483647;
      if (word < 0) word += 2147483647;
    }
    for (int i = 0; i < 310; ++i) operator()();
  }
  Integer operator()() {
    const std::size_t at = next_++ % 31;
    state_[at] += state_[(at + 28) % 31];
    return state_[at] >> 1;
  }

 private:
  std::uint32_t state_[31];
  std::size_t next_ = 3;
};

struct SizeShape {
  Integer i, p, b, rho;
};
constexpr std::string_view kDistributionNames[] = {"same",        "random", "random_down", "random_up",
                                                   "bucket",      "spikes", "decreasing",  "increasing",
                                                   "alternating", "skewed", "two_blocks"};

Integer size_of(std::string_view name, const SizeShape& s, GlibcRand& rand) {
  if (name == "same") return s.b;
  if (name.starts_with("random")) return rand() % (2 * s.b) + 1;
  if (name == "bucket") return s.b / 2 + rand() % s.b;
  if (name == "spikes") return rand() % s.rho == 0 ? s.rho * s.b : 1;
  if (name == "decreasing") return 2 * s.b * (s.p - s.i) / s.p + 1;
  if (name == "increasing") return 2 * s.b * (s.i + 1) / s.p + 1;
  if (name == "alternating") return s.i % 2 == 0 ? s.b + s.b / 2 : s.b - s.b / 2;
  if (name == "skewed") return s.i < s.rho ? s.p * s.b / s.rho : 1;
  return s.i == 0 || s.i == s.p - 1 ? s.p * s.b / 2 : 0;
}

}  // namespace

Result<std::vector<double>> parse_distribution(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  if (std::find(std::begin(kDistributionNames), std::end(kDistributionNames), name) == std::end(kDistributionNames))
    return Error{"unknown distribution '" + std::string(name) + "'" + suggestion(name, kDistributionNames)};
  SizeShape shape{0, 0, 1000, 5};
  Integer* const figures[] = {&shape.p, &shape.b, &shape.rho};
  std::string_view rest = spec.substr(name.size());
  for (Integer* figure : figures) {
    if (rest.empty()) break;
    rest.remove_prefix(1);
    const std::string_view text = rest.substr(0, rest.find(':'));
    const auto number = parse_integer(text);
    // Derived: products of two such numbers fit in 63 bits.
    if (!number || *number < 1 || *number > 1'000'000'000)
      return Error{"'" + std::string(text) + "': expected a number from 1 to 1000000000, as in " + std::string(name) +
                   ":2000:1000:5"};
    *figure = *number;
    rest.remove_prefix(text.size());
  }
  if (!rest.empty() || shape.p == 0 || shape.p > 1 << 20)
    return Error{"'" + std::string(spec) + "': expected " + std::string(name) + ":P[:B[:RHO]] with P from 1 to " +
                 std::to_string(1 << 20)};
  GlibcRand rand(1);
  std::vector<double> out;
  for (shape.i = 0; shape.i < shape.p; ++shape.i) out.push_back(static_cast<double>(size_of(name, shape, rand)));
  if (name == "random_down") std::sort(out.begin(), out.end(), std::greater<>());
  if (name == "random_up") std::sort(out.begin(), out.end());
  return out;
}

}  // namespace latecomer::core
