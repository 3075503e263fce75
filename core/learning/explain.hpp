// SPDX-License-Identifier: BSD-3-Clause
// The decision for one slot and its reason, for reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/learning/slot.hpp"

namespace latecomer::core {

struct SlotReport {
  Signature signature;
  std::uint64_t site = 0, calls = 0;
  int algorithm = -1;
  int rule_line = 0;  ///< 0: no rule matched
  Forecast forecast;
  double predicted_ns = -1, native_predicted_ns = -1;  ///< by the model, in terms of the objective; -1: not modelled
  double measured_ns = -1, native_measured_ns = -1;    ///< medians; -1: too few calls
  bool model_fits = true;             ///< false: native's modelled and measured times differ too much (is_forecast)
  std::vector<Candidate> candidates;  ///< of `auto`, best first; empty: none was modelled
  std::int64_t messages = 0;          ///< messages that were modelled to compare the candidates
  std::string reason;                 ///< follows "because"
};

/// Describes the present decision of a slot.
SlotReport report_slot(const LearningTerms& terms, const Slot& slot);

}  // namespace latecomer::core
