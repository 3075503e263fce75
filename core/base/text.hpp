// SPDX-License-Identifier: BSD-3-Clause
// Parses numbers with units, suggests names for mistyped words, formats, hashes, and draws pseudo-random numbers. No
// function depends on the locale.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

/// Parses "50ms", "1.5us", "230ns" or "2s" to whole nanoseconds, rounded down. A unit is required unless the value is
/// 0.
Result<Nanoseconds> parse_duration(std::string_view text);

/// Parses "65536", "64KiB", "4MB" or "1GiB" to bytes. KB, MB, GB and TB are powers of 1000; KiB, MiB, GiB and TiB are
/// powers of 1024.
Result<Bytes> parse_bytes(std::string_view text);

/// Parses a non-negative integer that consists of digits only.
Result<std::int64_t> parse_integer(std::string_view text);

/// Parses a finite decimal number.
Result<double> parse_number(std::string_view text);

/// Parses a list such as "1-17,32" to its distinct values in ascending order.
Result<std::vector<int>> parse_list(std::string_view text);

/// Returns the candidate with the least edit distance from `word`; two neighbours that changed places are one edit.
/// Returns "" if every distance exceeds both 2 and half the length of `word`. Derived: 2 edits are two typing mistakes.
/// A candidate that shares less than half of the letters is another word, and suggestion() then lists all candidates.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

/// Returns ", did you mean 'X'?", or the list of candidates if nearest() finds none.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

/// The text with U+FFFD in place of each sequence of bytes that is not UTF-8. Names of files and hosts, arguments and
/// names in debug information may hold any bytes.
std::string utf8(std::string_view text);

/// The arrays and objects of a JSON text that latecomer reads may be nested this deep. Derived: a profile has 8 levels.
/// Each level of a value takes a frame of the stack in recursive functions, and a text of 600 kB could have 600,000.
inline constexpr int kMostNested = 64;
/// "line N: ..." if a JSON text is nested deeper, else "". Reads the text as JSON only as far as brackets need it.
std::string nested_too_deep(std::string_view json);

/// Shell-style match of `*` and `?`; no other character is special.
bool glob_match(std::string_view pattern, std::string_view text);

/// FNV-1a, 64 bits. Hashes are stored and compared between processes, so this function must never change.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed = 14695981039346656037ull) {
  for (char c : bytes) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return seed;
}

/// The finalizer of splitmix64: mixes all bits of x.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). The arrival pattern
/// `randlate:D:SEED` is defined by this generator, so its output must never change.
class SplitMix64 {
 public:
  constexpr explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
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

/// Formats 1234567 as "1,234,567".
std::string grouped(std::int64_t n);

/// Formats 2.5 with 2 decimals as "2.50", as printf's %.2f in the C locale.
std::string fixed(double value, int decimals);
/// Formats 2.5 with up to 3 digits as "2.5", as printf's %.3g in the C locale.
std::string significant(double value, int digits);

/// Formats 31 as "0x1f".
std::string hexadecimal(std::uint64_t n);
/// Formats 31 as "000000000000001f".
std::string hex16(std::uint64_t n);

/// The part of a path after its last slash.
std::string base_name(std::string_view path);

}  // namespace latecomer::core
