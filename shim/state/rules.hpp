// SPDX-License-Identifier: BSD-3-Clause
// The settings of the user, and the rules that follow from them for the whole job. Written at the start only.
#pragma once

#include "core/policy/policy.hpp"
#include "shim/environment.hpp"

namespace latecomer::shim {

struct Rules {
  Environment environment;
  core::Policy policy;
  bool announces = false;          ///< mode apply, and a rule needs plans
  bool rooted_waits = false;       ///< rooted calls may ask for boundaries that wait (core::waits_for_leader)
  bool checks = false;             ///< LATECOMER_CHECK on rank 0
  bool courteous = false;          ///< some machine of the job has more ranks than cores
  bool nonblocking_waits = false;  ///< native blocking collectives run in their non-blocking form to wait courteously
  /// Idle epochs are possible: native calls wait in MPI's own form, and all rules decide through plans.
  bool may_idle = false;
  /// Mode observe with a budget: ranks leave out epochs.
  bool samples_epochs = false;
  bool decides = false;  ///< some native call may be replaced, so the reduction's operator matters
};

extern Rules* job_rules_instance __attribute__((visibility("hidden")));
inline Rules& job_rules() { return *job_rules_instance; }

}  // namespace latecomer::shim
