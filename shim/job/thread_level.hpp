// SPDX-License-Identifier: BSD-3-Clause
// The thread level that the program asked for, and the one that the engine needs.
#pragma once

namespace latecomer::shim {

/// The thread level that the program was told, if MPI grants more for the engine. -1: MPI's own answer.
extern int told_level;

/// Whether the policy asks for an engine. Called before MPI starts, so each rank reads the policy itself. If a rank
/// cannot read it, no rank has an engine.
bool engine_wanted() noexcept;

/// The thread level that MPI_Init implies.
int default_level();

}  // namespace latecomer::shim
