// SPDX-License-Identifier: BSD-3-Clause
// Reading numbers with units, and finding the nearest valid name for a mistyped one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

/// "50ms", "1.5us", "230ns", "2s" as whole nanoseconds (rounded down); a unit is required unless the value is 0.
Result<Nanoseconds> parse_duration(std::string_view text);

/// "65536", "64KiB", "4MB", "1GiB" as bytes; KB, MB, GB are powers of 1000, KiB, MiB, GiB of 1024.
Result<Bytes> parse_bytes(std::string_view text);

/// A non-negative integer written in digits only.
Result<std::int64_t> parse_integer(std::string_view text);

/// A finite decimal number.
Result<double> parse_number(std::string_view text);

/// "1-17,32" as the sorted list of distinct values it names.
Result<std::vector<int>> parse_list(std::string_view text);

/// The candidate of least edit distance, or "" when none is close enough to be meant.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

/// ", did you mean 'X'?" or the list of candidates when nothing is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

/// Shell-style match of `*` and `?`; no other character is special.
bool glob_match(std::string_view pattern, std::string_view text);

/// FNV-1a, 64 bits. Used where a hash is stored or compared between processes, so it must never change.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed = 14695981039346656037ull) {
  for (char c : bytes) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return seed;
}

/// Finaliser of splitmix64: mixes all bits of x.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014): the generator INTERFACE fixes for `randlate`.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    const std::uint64_t out = mix64(state_);
    state_ += 0x9e3779b97f4a7c15ull;
    return out;
  }
  /// Uniform in [0, 1): the upper 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in [0, bound), bound >= 1.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

/// 1234567 as "1,234,567".
std::string grouped(std::int64_t n);

}  // namespace latecomer::core
