// SPDX-License-Identifier: BSD-3-Clause
// From a call to its plan, and from the plan to one rank's schedule.
#pragma once

#include "core/algorithms/exchange/plan.hpp"

namespace latecomer::core::exchange {

/// The roles in an exchange: see the members of Problem with these names.
struct Roles {
  Rank source = -1;
  Rank sink = -1;
  bool ordered = false;
};

/// The problem that a call poses. A network without figures counts as `fdr`.
Problem problem_for(const Instance& instance, const Roles& roles);

/// The schedule of rank `me`. All ranks share the plan, which the first of them makes.
Schedule carry_out(const Instance& instance, Rank me, const Roles& roles);

}  // namespace latecomer::core::exchange
