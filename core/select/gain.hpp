// SPDX-License-Identifier: BSD-3-Clause
// The run time that a call of another algorithm saves, as a range: the difference between native and the candidate in
// the model, corrected by measurements. docs/explanation/gain.md derives it.
#pragma once

#include <optional>

#include "core/select/candidates.hpp"

namespace latecomer::core {

/// A range of errors of the model: measured over modelled time after the last arrival.
struct Errors {
  double least = 1, likely = 1, most = 1;
};

/// The errors of a candidate. `native`: the error of native at this site; empty: too few of its calls were measured.
/// `own`: the error of the candidate itself, where it ran; empty: it did not.
Errors errors_of_candidate(std::optional<double> native, std::optional<double> own);

/// Nanoseconds of the run time that one call saves. Negative: it costs time.
struct Gain {
  double least = 0, likely = 0, most = 0;
};

/// The observations of a call.
struct Observed {
  Pattern arrivals;
  /// Schedules are built for the arrivals.
  bool known = true;
  /// Mean time of native after the last arrival. Empty: too few calls were measured.
  std::optional<double> native_ns;
  /// As above.
  std::optional<double> own_error;
};

/// `native` and `candidate`: from one search for this call. Empty: one of them cannot be modelled.
std::optional<Gain> gain_of(const Call& call, const Candidate& native, const Candidate& candidate,
                            const Observed& observed, const Parameters& parameters);

}  // namespace latecomer::core
