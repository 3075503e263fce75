// SPDX-License-Identifier: BSD-3-Clause
// Logarithmic histogram.
#include "profiles/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <nlohmann/json.hpp>

namespace latecomer::profiles {
namespace {

int bucket_of(std::int64_t value) {
  if (value < 32) return 0;
  const auto v = static_cast<std::uint64_t>(value);
  const int octave = std::bit_width(v) - 1;  // 2^octave <= v
  // The upper half of the octave begins at 2^(octave + 1/2).
  const bool upper = static_cast<double>(v) >= std::ldexp(std::numbers::sqrt2, octave);
  return std::min(1 + 2 * (octave - 5) + (upper ? 1 : 0), Histogram::kBuckets - 1);
}

}  // namespace

double Histogram::edge(int i) { return i <= 0 ? 0 : std::exp2(4.5 + i / 2.0); }

void Histogram::add(std::int64_t value) {
  value = std::max<std::int64_t>(value, 0);
  ++counts_[static_cast<std::size_t>(bucket_of(value))];
  min_ = n_ == 0 ? value : std::min(min_, value);
  max_ = n_ == 0 ? value : std::max(max_, value);
  ++n_;
  sum_ += static_cast<double>(value);
  squares_ += static_cast<double>(value) * static_cast<double>(value);
}

void Histogram::merge(const Histogram& o) {
  if (o.n_ == 0) return;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += o.counts_[i];
  min_ = n_ == 0 ? o.min_ : std::min(min_, o.min_);
  max_ = n_ == 0 ? o.max_ : std::max(max_, o.max_);
  n_ += o.n_;
  sum_ += o.sum_;
  squares_ += o.squares_;
}

double Histogram::stddev() const {
  if (n_ < 2) return 0;
  const double m = mean();
  return std::sqrt(std::max(0.0, squares_ / static_cast<double>(n_) - m * m));
}

double Histogram::quantile(double q) const {
  if (n_ == 0) return 0;
  const double rank = q * static_cast<double>(n_);
  double below = 0;
  for (int i = 0; i < kBuckets; ++i) {
    const double here = counts_[static_cast<std::size_t>(i)];
    if (here > 0 && below + here >= rank) {
      const double low = edge(i), high = i == kBuckets - 1 ? static_cast<double>(max_) : edge(i + 1);
      const double value = low + (high - low) * std::max(0.0, rank - below) / here;
      return std::clamp(value, static_cast<double>(min_), static_cast<double>(max_));
    }
    below += here;
  }
  return static_cast<double>(max_);
}

nlohmann::ordered_json Histogram::to_json(const char* unit, double divisor) const {
  int first = 0, last = kBuckets - 1;
  while (first < last && counts_[static_cast<std::size_t>(first)] == 0) ++first;
  while (last > first && counts_[static_cast<std::size_t>(last)] == 0) --last;
  nlohmann::ordered_json edges = nlohmann::ordered_json::array(), counts = edges;
  if (n_ > 0) {
    for (int i = first; i <= last; ++i) {
      edges.push_back(edge(i) / divisor);
      counts.push_back(counts_[static_cast<std::size_t>(i)]);
    }
    edges.push_back(std::max(edge(last + 1), static_cast<double>(max_)) / divisor);
  }
  return {{"unit", unit}, {"scale", "log"}, {"edges", edges}, {"counts", counts}, {"mean", mean() / divisor},
          {"p50", quantile(0.5) / divisor}, {"p90", quantile(0.9) / divisor}, {"p99", quantile(0.99) / divisor},
          {"max", static_cast<double>(max()) / divisor}};
}

}  // namespace latecomer::profiles
