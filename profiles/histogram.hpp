// SPDX-License-Identifier: BSD-3-Clause
// A histogram of fixed size over a logarithmic scale, two buckets per octave: adding allocates nothing,
// merging is exact, quantiles err by less than half a bucket (a factor of 2^(1/4)).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace latecomer::profiles {

class Histogram {
 public:
  /// Bucket 0 holds values below 2^5; bucket i in 1..kBuckets-2 holds [2^(4.5+i/2), 2^(5+i/2)); the last
  /// holds the rest, from 2^37 (137 s in nanoseconds).
  static constexpr int kBuckets = 66;

  void add(std::int64_t value) {
    value = std::max<std::int64_t>(value, 0);
    ++counts_[static_cast<std::size_t>(bucket_of(value))];
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    ++n_;
    const auto v = static_cast<double>(value);
    sum_ += v;
    squares_ += v * v;
  }
  void merge(const Histogram& other);
  std::uint64_t count() const { return n_; }
  double mean() const { return n_ ? sum_ / static_cast<double>(n_) : 0; }
  double stddev() const;
  std::int64_t max() const { return n_ ? max_ : 0; }
  std::int64_t min() const { return n_ ? min_ : 0; }
  /// q in [0, 1]; interpolated inside the bucket, never outside [min, max].
  double quantile(double q) const;
  /// Lower edge of bucket i, i in 0..kBuckets.
  static double edge(int i);

  /// {unit, scale, edges, counts, mean, p50, p90, p99, max}; values are divided by `divisor` (a factor
  /// stored in thousandths is written with divisor 1000). Only the occupied buckets are written.
  nlohmann::ordered_json to_json(const char* unit, double divisor = 1) const;
  /// Appends the same as text.
  void write_json(std::string& out, const char* unit, double divisor = 1) const;

 private:
  // What every call touches lies together; of the counts one line more.
  std::uint64_t n_ = 0;
  double sum_ = 0, squares_ = 0;
  std::int64_t min_ = INT64_MAX, max_ = INT64_MIN;
  std::array<std::uint32_t, kBuckets> counts_{};

  static int bucket_of(std::int64_t value) {
    if (value < 32) return 0;
    const auto v = static_cast<std::uint64_t>(value);
    const int octave = std::bit_width(v) - 1;  // 2^octave <= v
    // The upper half of the octave begins at 2^(octave + 1/2): compare with sqrt(2) as a 64-bit mantissa.
    const bool upper = (v << (63 - octave)) >= 0xb504f333f9de6485ull;
    return std::min(1 + 2 * (octave - 5) + (upper ? 1 : 0), kBuckets - 1);
  }
};

/// Appends a number in its shortest form that reads back the same.
void write_number(std::string& out, double value);

}  // namespace latecomer::profiles
