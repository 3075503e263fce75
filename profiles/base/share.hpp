// SPDX-License-Identifier: BSD-3-Clause
// The one place where parts are divided by a whole for people to read, and where per cent are written.
#pragma once

#include <cstdio>
#include <string>

namespace latecomer::profiles {

/// A part of a whole: from 0 to 1, or not known. No other value can be made, so no output can show more than 100%.
class Share {
 public:
  /// Not known.
  constexpr Share() = default;
  /// Not known if there is no whole, or if the part does not fit into it: then the two are not of the same span of
  /// time, or the file is damaged. A part that is too large by less than a digit shows is the whole.
  static constexpr Share of(double part, double whole) {
    constexpr double kDigit = 1.005;
    Share out;
    if (part >= 0 && whole > 0 && part <= kDigit * whole) out.value_ = part < whole ? part / whole : 1;
    return out;
  }
  constexpr bool known() const { return value_ >= 0; }
  /// For comparisons: 0 if it is not known.
  constexpr double value() const { return known() ? value_ : 0; }
  /// "23%", or `unknown`.
  std::string percent(int digits, const char* unknown) const {
    if (!known()) return unknown;
    char text[32];
    std::snprintf(text, sizeof text, "%.*f%%", digits, 100 * value_);
    return text;
  }

 private:
  double value_ = -1;
};

}  // namespace latecomer::profiles
