// SPDX-License-Identifier: BSD-3-Clause
// The arguments that one rank sees alone: its buffers and its datatypes. Arguments that all ranks know are part of
// U(n), and a mistake there leaves the call to MPI on all ranks (docs/explanation/agreement.md).
#pragma once

#include "core/agreement/agreement.hpp"
#include "shim/runner/operands.hpp"

namespace latecomer::shim {

/// Checks the arguments of a call that an algorithm serves: MPI_IN_PLACE or a null pointer where MPI allows none, one
/// buffer for input and output, an uncommitted datatype. Local. Returns MPI's error class, or MPI_SUCCESS.
int check_arguments(const core::Signature& signature, Rank rank, const Operands& operands);

/// The operands, with MPI_IN_PLACE if input and output are one buffer and this MPI library runs such a call as if in
/// place. Local.
Operands with_in_place(const core::Signature& signature, Rank rank, const Operands& operands);

}  // namespace latecomer::shim
