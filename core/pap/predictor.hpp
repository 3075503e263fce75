// SPDX-License-Identifier: BSD-3-Clause
// Forecasts of arrival patterns (DESIGN 4; 002, section 3.2 uses the moving average): four predictors run side by
// side over the same calls, each judged by how far it was off.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/pap/pattern.hpp"

namespace latecomer::core {

enum class PredictorKind : std::uint8_t { sma, ewma, median, last };
inline constexpr int kPredictors = 4;
inline constexpr std::string_view kPredictorNames[kPredictors] = {"sma", "ewma", "median", "last"};
constexpr std::string_view name_of(PredictorKind k) { return kPredictorNames[static_cast<int>(k)]; }

struct Forecast {
  PredictorKind kind = PredictorKind::sma;
  std::vector<Nanoseconds> offsets;  ///< [ranks], after the first arrival; empty: nothing was seen
  Nanoseconds spread = 0;            ///< between the first and the last of them
  Nanoseconds error = 0;             ///< recent mean absolute error of the worst-forecast rank
  /// Off by a third of what is forecast, or more: to be taken as flat. (One rank of four that is late at random is off
  /// by 3/8, whoever forecasts it.)
  bool uncertain() const { return offsets.empty() || 3 * error >= spread; }
  Rank last() const;
};

/// The predictors of one slot. add() allocates nothing once the window has filled.
class Predictor {
 public:
  /// window: calls that sma and median look back on; errors are averaged over four times as many, exponentially.
  Predictor(int ranks, int window);
  /// offsets: nanoseconds after the first arrival, shape [ranks]. Judges the forecasts for this call, then learns from
  /// it.
  void add(std::span<const Nanoseconds> offsets);
  int seen() const { return seen_; }
  /// By the predictor asked for, or by the one with the least recent error.
  Forecast forecast(std::optional<PredictorKind> wanted = {}) const;
  /// Begins as if this had been seen throughout.
  void seed(std::span<const Nanoseconds> offsets);

 private:
  double value(PredictorKind kind, int rank) const;
  int ranks_, window_, next_ = 0, filled_ = 0, seen_ = 0;
  std::vector<Nanoseconds> rows_;    // [window][ranks]
  std::vector<Nanoseconds> sorted_;  // [ranks][window], the same values: the median is asked for at every call
  std::vector<Nanoseconds> sums_;    // [ranks]
  std::vector<double> ewma_;         // [ranks]
  std::vector<double> errors_;       // [kPredictors][ranks]
};

}  // namespace latecomer::core
