// SPDX-License-Identifier: BSD-3-Clause
// Checks that a library which only the user has named has the binary interface that this family was compiled for. The
// libraries that come from MPICH share MPICH's, and their version texts differ.
#pragma once

namespace latecomer::shim {

/// Before MPI starts: the first symbol that every library of the family has and this one lacks; nullptr: none.
const char* lacked_mark();

/// After MPI has started: the first check that failed, or nullptr. Local: communicates with this process only.
const char* wrong_interface();

}  // namespace latecomer::shim
