// SPDX-License-Identifier: BSD-3-Clause
// The standard error of a sum. Not std::hypot: that of Debian 12 needs glibc 2.35.
#pragma once

#include <cmath>

namespace latecomer::profiles::analysis {

/// Of two estimates that do not depend on each other.
inline double error_of_sum(double one, double other) { return std::sqrt(one * one + other * other); }

}  // namespace latecomer::profiles::analysis
