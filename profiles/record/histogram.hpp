// SPDX-License-Identifier: BSD-3-Clause
// A histogram of fixed size on a logarithmic scale with two buckets per octave. Adding a value allocates nothing, and
// merging is exact. A quantile errs by at most half a bucket, a factor of 2^(1/4).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace latecomer::profiles {

class Histogram {
 public:
  /// Bucket 0 holds values below 2^5. Bucket i in 1..kBuckets-2 holds [2^(4.5+i/2), 2^(5+i/2)). The last bucket holds
  /// the values from 2^37 on, in nanoseconds 137 s. Hence 1 + 2 * (37 - 5) + 1 buckets.
  static constexpr int kBuckets = 66;

  void add(std::int64_t value) { add(value, 1, 1); }
  /// Adds a value that stands for `times` values, whose sum is `sums` times this one. Where that is less, rare large
  /// values are in the sample more often than in all.
  void add(std::int64_t value, std::uint32_t times, double sums) {
    value = std::max<std::int64_t>(value, 0);
    counts_[static_cast<std::size_t>(bucket_of(value))] += times;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    n_ += times;
    const double v = static_cast<double>(value), sum = v * sums;
    sum_ += sum;
    squares_ += v * sum;
  }
  void merge(const Histogram& other);
  std::uint64_t count() const { return n_; }
  double mean() const { return n_ ? sum_ / static_cast<double>(n_) : 0; }
  double stddev() const;
  std::int64_t max() const { return n_ ? max_ : 0; }
  std::int64_t min() const { return n_ ? min_ : 0; }
  /// The quantile q in [0, 1], interpolated inside its bucket and clamped to [min, max].
  double quantile(double q) const;
  /// Lower edge of bucket i, i in 0..kBuckets.
  static double edge(int i);

  /// Appends the JSON object {unit, scale, edges, counts, mean, p50, p90, p99, max}. All values are divided by
  /// `divisor`: a factor stored in thousandths is written with divisor 1000. Writes the range of occupied buckets only.
  void write_json(std::string& out, const char* unit, double divisor = 1) const;

 private:
  // add() touches these members and one cache line of counts_: keep them together.
  std::uint64_t n_ = 0;
  double sum_ = 0, squares_ = 0;
  std::int64_t min_ = INT64_MAX, max_ = INT64_MIN;
  // A site of a long run has more than 2^32 calls: at 0.35 us per call after 25 minutes, and in a job of 4,300 ranks
  // after a million calls per rank.
  std::array<std::uint64_t, kBuckets> counts_{};

  static int bucket_of(std::int64_t value) {
    if (value < 32) return 0;
    const auto v = static_cast<std::uint64_t>(value);
    const int octave = std::bit_width(v) - 1;  // 2^octave <= v
    // The upper half of the octave begins at 2^(octave + 1/2). The constant is sqrt(2) as a 64-bit mantissa.
    const bool upper = (v << (63 - octave)) >= 0xb504f333f9de6485ull;
    return std::min(1 + 2 * (octave - 5) + (upper ? 1 : 0), kBuckets - 1);
  }
};

/// Appends the shortest text that reads back as the same number.
void write_number(std::string& out, double value);
/// Appends a text, such as a key, and the number.
void write_number(std::string& out, std::string_view before, double value);

}  // namespace latecomer::profiles
