// SPDX-License-Identifier: BSD-3-Clause
// What may serve a call under a forecast, by the model: the question behind `auto` and `latecomer advise`.
#pragma once

#include <vector>

#include "core/model/simulate.hpp"
#include "core/policy/policy.hpp"

namespace latecomer::core {

/// A modelled time above this share of native's is no gain worth another rounding and a rebuilt schedule.
inline constexpr double kWorthTrying = 0.95;

struct Candidate {
  int algorithm = -1;     ///< index in the catalogue
  int segments = 0;       ///< 0: the algorithm's own choice
  double modelled_ns = 0; ///< in terms of the objective
  bool lost = false;      ///< was tried and did not win
};

struct Candidates {
  double native_ns = -1;               ///< of the algorithm that stands for native; -1: none does
  std::vector<Candidate> list;         ///< best first
};

/// Messages that modelling a call's candidates takes.
long candidate_messages(const Call& call, const Network& network);

/// Models every algorithm of the collective under the pattern, pattern-aware segmented ones with more segments, too.
/// `known`: schedules are built for the pattern; else for none, and the pattern just happens. `sizes`: as in Parameters.
Candidates model_candidates(const Call& call, const Pattern& pattern, const Network& network, Objective objective, bool known = true, const std::vector<Bytes>& sizes = {});

}  // namespace latecomer::core
