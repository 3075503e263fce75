// SPDX-License-Identifier: BSD-3-Clause
// Implements the order of arrival and the syntax of `--arrivals`.
#include "core/pap/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string>

#include "core/base/file.hpp"
#include "core/base/text.hpp"

namespace latecomer::core {

Nanoseconds Pattern::first() const { return flat() ? 0 : *std::min_element(arrivals_.begin(), arrivals_.end()); }
Nanoseconds Pattern::last() const { return flat() ? 0 : *std::max_element(arrivals_.begin(), arrivals_.end()); }

std::vector<Rank> Pattern::order(int ranks) const {
  std::vector<Rank> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  if (!flat()) std::stable_sort(order.begin(), order.end(), [&](Rank a, Rank b) { return arrival(a) < arrival(b); });
  return order;
}

namespace {

constexpr std::string_view kShapes[] = {"balanced", "onelate", "randlate", "ascending", "descending", "file"};

std::vector<std::string_view> fields(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t colon = std::min(text.find(':', start), text.size());
    out.push_back(text.substr(start, colon - start));
    start = colon + 1;
  }
  return out;
}

Result<Pattern> read_pattern(const std::string& path, int ranks) {
  const auto text = read_file(path);
  if (!text) return Error{"arrivals: " + text.error()};
  std::istringstream in(*text);
  std::vector<Nanoseconds> a;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    line.erase(0, line.find_first_not_of(" \t\r"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const auto seconds = parse_duration(line + "s");
    if (!seconds)
      return Error{path + ":" + std::to_string(number) + ": expected a time in seconds, got '" + line + "'"};
    a.push_back(*seconds);
  }
  if (a.size() != static_cast<std::size_t>(ranks))
    return Error{"arrivals: '" + path + "' has " + std::to_string(a.size()) + " times for " + std::to_string(ranks) +
                 " ranks"};
  return Pattern(std::move(a));
}

}  // namespace

Result<Pattern> parse_arrivals(std::string_view spec, int ranks) {
  const auto part = fields(spec);
  const std::string_view shape = part[0];
  const auto usage = [&](const char* form) {
    return Error{"arrivals: expected " + std::string(form) + ", got '" + std::string(spec) + "'"};
  };
  if (shape == "file") {
    if (spec.size() <= 5) return usage("file:PATH");
    return read_pattern(std::string(spec.substr(5)), ranks);
  }
  std::vector<Nanoseconds> a(static_cast<std::size_t>(ranks), 0);
  if (shape == "balanced") {
    if (part.size() != 1) return usage("balanced");
  } else if (shape == "onelate") {
    if (part.size() != 3) return usage("onelate:RANK:50ms");
    const auto rank = parse_integer(part[1]);
    const auto delay = parse_duration(part[2]);
    if (!rank || *rank >= ranks)
      return Error{"arrivals: onelate: expected a rank from 0 to " + std::to_string(ranks - 1) + ", got '" +
                   std::string(part[1]) + "'"};
    if (!delay) return Error{"arrivals: onelate: " + delay.error()};
    a[static_cast<std::size_t>(*rank)] = *delay;
  } else if (shape == "randlate") {
    if (part.size() != 3) return usage("randlate:50ms:SEED");
    const auto delay = parse_duration(part[1]);
    const auto seed = parse_integer(part[2]);
    if (!delay) return Error{"arrivals: randlate: " + delay.error()};
    if (!seed) return Error{"arrivals: randlate: seed: " + seed.error()};
    SplitMix64 random(static_cast<std::uint64_t>(*seed));
    for (auto& t : a) t = static_cast<Nanoseconds>(std::floor(static_cast<double>(*delay) * random.uniform()));
  } else if (shape == "ascending" || shape == "descending") {
    if (part.size() != 2) return usage("ascending:50ms or descending:50ms");
    const auto delay = parse_duration(part[1]);
    if (!delay) return Error{"arrivals: " + std::string(shape) + ": " + delay.error()};
    for (int i = 0; i < ranks && ranks > 1; ++i) {
      const int at = shape == "ascending" ? i : ranks - 1 - i;
      a[static_cast<std::size_t>(at)] = static_cast<Nanoseconds>(static_cast<__int128>(*delay) * i / (ranks - 1));
    }
  } else {
    return Error{"arrivals: unknown shape '" + std::string(shape) + "'" + suggestion(shape, kShapes)};
  }
  return Pattern(std::move(a));
}

}  // namespace latecomer::core
