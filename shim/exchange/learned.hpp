// SPDX-License-Identifier: BSD-3-Clause
// Keeps what the leader of MPI_COMM_WORLD has learned for the profile and for the file of the policy key `learn`.
#pragma once

#include "core/learning/learner.hpp"

namespace latecomer::shim {

/// Notes the winners at the end of MPI_COMM_WORLD. On rank 0.
void note_learned(const core::Learner::Outcome& outcome);

}  // namespace latecomer::shim
