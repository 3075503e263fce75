// SPDX-License-Identifier: BSD-3-Clause
// Implements text.hpp independently of the locale.
#include "core/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

namespace latecomer::core {
namespace {

struct Split {
  double value;
  std::string_view unit;
};

Result<Split> split_unit(std::string_view text) {
  Split out{};
  const char* end = text.data() + text.size();
  const auto [rest, ec] = std::from_chars(text.data(), end, out.value, std::chars_format::fixed);
  if (ec != std::errc{} || !std::isfinite(out.value) || out.value < 0)
    return Error{"expected a non-negative number, got '" + std::string(text) + "'"};
  out.unit = std::string_view(rest, static_cast<std::size_t>(end - rest));
  return out;
}

}  // namespace

Result<Nanoseconds> parse_duration(std::string_view text) {
  const auto split = split_unit(text);
  if (!split) return Error{"expected a duration such as 50ms, got '" + std::string(text) + "'"};
  double scale = 0;
  if (split->unit == "ns" || (split->unit.empty() && split->value == 0)) scale = 1;
  else if (split->unit == "us") scale = 1e3;
  else if (split->unit == "ms") scale = 1e6;
  else if (split->unit == "s") scale = 1e9;
  else return Error{"expected a duration with a unit (ns, us, ms, s), got '" + std::string(text) + "'"};
  const double ns = split->value * scale;
  if (ns > 9e18) return Error{"duration out of range: '" + std::string(text) + "'"};
  // 0.1us must give 100 ns, not 99: the factor undoes the binary rounding of the decimal before floor().
  return static_cast<Nanoseconds>(std::floor(ns * (1 + 4 * std::numeric_limits<double>::epsilon())));
}

Result<Bytes> parse_bytes(std::string_view text) {
  const auto split = split_unit(text);
  const std::string shape = "expected a size such as 65536 or 64KiB, got '" + std::string(text) + "'";
  if (!split) return Error{shape};
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (const auto& [unit, scale] : kUnits) {
    if (split->unit != unit) continue;
    const double bytes = split->value * scale;
    if (bytes > 9e18) return Error{"size out of range: '" + std::string(text) + "'"};
    if (bytes != std::floor(bytes)) return Error{"not a whole number of bytes: '" + std::string(text) + "'"};
    return static_cast<Bytes>(bytes);
  }
  return Error{shape + " (units: B, KiB, MiB, GiB, KB, MB, GB)"};
}

Result<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || rest != text.data() + text.size() || value < 0)
    return Error{"expected an integer >= 0, got '" + std::string(text) + "'"};
  return value;
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [rest, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || rest != text.data() + text.size() || !std::isfinite(value))
    return Error{"expected a number, got '" + std::string(text) + "'"};
  return value;
}

Result<std::vector<int>> parse_list(std::string_view text) {
  std::vector<int> out;
  const Error shape{"expected a list such as 1-17,32, got '" + std::string(text) + "'"};
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string_view part = text.substr(start, comma - start);
    const std::size_t dash = part.find('-');
    const auto low = parse_integer(part.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : parse_integer(part.substr(dash + 1));
    // Derived: a million numbers take 4 MB. More is a mistake, such as a missing comma.
    if (!low || !high || *low > *high || *high > 1'000'000) return shape;
    for (std::int64_t v = *low; v <= *high; ++v) out.push_back(static_cast<int>(v));
    start = comma + 1;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const std::string_view candidate : candidates) {
    // The rows of three letters of `word`: two before, one before, and this one.
    std::vector<std::size_t> before, above(candidate.size() + 1), row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      before = std::exchange(above, row);
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (word[i - 1] != candidate[j - 1])});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1])
          row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  if (const std::string near = nearest(word, candidates); !near.empty()) return ", did you mean '" + near + "'?";
  std::string out = "; valid:";
  for (const std::string_view candidate : candidates) out.append(" ").append(candidate);
  return out;
}

namespace {

/// The length of the character at the begin of `text`, or 0 if there is no character of UTF-8 (RFC 3629). `bad` is then
/// the length of its longest valid beginning, at least 1.
std::size_t character_length(std::string_view text, std::size_t& bad) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  bad = 1;
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  for (std::size_t i = 1; i < length; ++i) {
    // The second byte excludes long forms, surrogates and numbers above 0x10ffff.
    const unsigned least = i > 1          ? 0x80
                           : lead == 0xe0 ? 0xa0
                           : lead == 0xf0 ? 0x90
                                          : 0x80,
                   most = i > 1          ? 0xbf
                          : lead == 0xed ? 0x9f
                          : lead == 0xf4 ? 0x8f
                                         : 0xbf;
    if (i == text.size() || byte(i) < least || byte(i) > most) return 0;
    bad = i + 1;
  }
  return length;
}

}  // namespace

std::string utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t bad = 0;
    const std::size_t length = character_length(text, bad);
    if (length > 0) out.append(text, 0, length);
    else out.append("\xef\xbf\xbd");  // U+FFFD
    text.remove_prefix(length > 0 ? length : bad);
  }
  return out;
}

std::string nested_too_deep(std::string_view json) {
  std::int64_t depth = 0, line = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '\n') ++line;
    else if (in_string && c == '\\') ++i;
    else if (c == '"') in_string = !in_string;
    else if (!in_string && (c == ']' || c == '}')) --depth;
    else if (!in_string && (c == '[' || c == '{') && ++depth > kMostNested)
      return "line " + std::to_string(line) + ": arrays and objects are nested more than " +
             std::to_string(kMostNested) + " deep";
  }
  return "";
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] == text[t] && pattern[p] != '*'))) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string grouped(std::int64_t n) {
  std::string out = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    out.insert(static_cast<std::size_t>(at), ",");
  return out;
}

namespace {

std::string formatted(double value, std::chars_format format, int precision) {
  char text[400];  // 309 digits before the point
  return {text, std::to_chars(text, text + sizeof text, value, format, precision).ptr};
}

}  // namespace

std::string fixed(double value, int decimals) { return formatted(value, std::chars_format::fixed, decimals); }
std::string significant(double value, int digits) { return formatted(value, std::chars_format::general, digits); }

std::string hexadecimal(std::uint64_t n) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(n));
  return text;
}

std::string hex16(std::uint64_t n) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(n));
  return text;
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

}  // namespace latecomer::core
