// SPDX-License-Identifier: BSD-3-Clause
// A natural logarithm that gives the same bits on every processor. Every rank computes decisions that depend on a
// logarithm by itself, for example the number of segments. The last bit of glibc's logarithm depends on whether the
// processor fuses multiplications and additions, so two ranks could decide differently.
#pragma once

#include <cmath>

namespace latecomer::core {

/// ln(x) for x > 0, accurate to a few units in the last place. Uses only additions, multiplications and divisions,
/// so the same build of the library gives the same bits on every processor.
inline double logarithm(double x) {
  constexpr double kRootOfHalf = 0.70710678118654752, kOfTwo = 0.69314718055994531;
  constexpr int kTerms = 12;  // derived: |y| <= 0.172, so the first omitted term, y^25 / 25, is below 2^-53 of the sum
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kRootOfHalf) {
    m *= 2;
    --exponent;
  }
  // ln(m) = 2 artanh(y), by its power series.
  const double y = (m - 1) / (m + 1);
  double sum = 0;
  for (int k = 2 * kTerms - 1; k > 0; k -= 2) sum = sum * y * y + 1.0 / k;
  return 2 * y * sum + exponent * kOfTwo;
}

}  // namespace latecomer::core
