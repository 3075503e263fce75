// SPDX-License-Identifier: BSD-3-Clause
// What earlier runs have learned, and what this run passes on.
#pragma once

#include <string>

namespace latecomer::shim {

/// Gives an earlier run's plan to every rank. Its arrival patterns stay on rank 0, the leader of MPI_COMM_WORLD.
void share_history();

/// Rank 0: puts what this run has learned into the file of the policy key `learn`.
void keep_history(const std::string& learned) noexcept;

}  // namespace latecomer::shim
