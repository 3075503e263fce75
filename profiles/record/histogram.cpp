// SPDX-License-Identifier: BSD-3-Clause
// Quantiles, merging and the JSON form of the logarithmic histogram.
#include "profiles/record/histogram.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace latecomer::profiles {
double Histogram::edge(int i) { return i <= 0 ? 0 : std::exp2(4.5 + i / 2.0); }

void Histogram::merge(const Histogram& o) {
  if (o.n_ == 0) return;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += o.counts_[i];
  min_ = std::min(min_, o.min_);
  max_ = std::max(max_, o.max_);
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
    const auto here = static_cast<double>(counts_[static_cast<std::size_t>(i)]);
    if (here > 0 && below + here >= rank) {
      const double low = edge(i), high = i == kBuckets - 1 ? static_cast<double>(max_) : edge(i + 1);
      const double value = low + (high - low) * std::max(0.0, rank - below) / here;
      return std::clamp(value, static_cast<double>(min_), static_cast<double>(max_));
    }
    below += here;
  }
  return static_cast<double>(max_);
}

void write_number(std::string& out, double value) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void write_number(std::string& out, std::string_view before, double value) {
  out += before;
  write_number(out, value);
}

void Histogram::write_json(std::string& out, const char* unit, double divisor) const {
  int first = 0, last = kBuckets - 1;
  while (first < last && counts_[static_cast<std::size_t>(first)] == 0) ++first;
  while (last > first && counts_[static_cast<std::size_t>(last)] == 0) --last;
  ((out += "{\"unit\":\"") += unit) += "\",\"scale\":\"log\",\"edges\":[";
  if (n_ > 0) {
    for (int i = first; i <= last; ++i) write_number(out, i > first ? "," : "", edge(i) / divisor);
    write_number(out, ",", std::max(edge(last + 1), static_cast<double>(max())) / divisor);
  }
  out += "],\"counts\":[";
  for (int i = first; n_ > 0 && i <= last; ++i) {
    if (i > first) out += ',';
    out += std::to_string(counts_[static_cast<std::size_t>(i)]);
  }
  const std::pair<const char*, double> figures[] = {{"],\"mean\":", mean()},
                                                    {",\"p50\":", quantile(0.5)},
                                                    {",\"p90\":", quantile(0.9)},
                                                    {",\"p99\":", quantile(0.99)},
                                                    {",\"max\":", static_cast<double>(max())}};
  for (const auto& [name, value] : figures) write_number(out, name, value / divisor);
  out += '}';
}

}  // namespace latecomer::profiles
