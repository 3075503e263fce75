// SPDX-License-Identifier: BSD-3-Clause
// The natural logarithm for what every rank decides by itself. libm's is not the same everywhere: glibc takes other
// code on processors that fuse multiplications and additions, its last bit may differ, and two ranks that round two
// ways choose two numbers of segments.
#pragma once

#include <cmath>

namespace latecomer::core {

/// Of x > 0, to some units in the last place; additions, multiplications and divisions only, so the same to the last
/// bit wherever the same library runs.
inline double logarithm(double x) {
  constexpr double kRootOfHalf = 0.70710678118654752, kOfTwo = 0.69314718055994531;
  constexpr int kTerms = 12;  // |y| is 0.172 at most
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kRootOfHalf) m *= 2, --exponent;
  // 2 artanh y.
  const double y = (m - 1) / (m + 1);
  double sum = 0;
  for (int k = 2 * kTerms - 1; k > 0; k -= 2) sum = sum * y * y + 1.0 / k;
  return 2 * y * sum + exponent * kOfTwo;
}

}  // namespace latecomer::core
