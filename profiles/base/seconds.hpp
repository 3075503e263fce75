// SPDX-License-Identifier: BSD-3-Clause
// Times as the kernel takes them.
#pragma once

#include <cmath>
#include <ctime>

namespace latecomer::profiles {

/// `seconds`: at least 0.
inline timespec in_timespec(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<long>(1e9 * (seconds - whole))};
}

}  // namespace latecomer::profiles
