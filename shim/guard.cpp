// SPDX-License-Identifier: BSD-3-Clause
// The flag that tells latecomer's own MPI calls from the program's. This file owns the variable only.
#include "shim/guard.hpp"

namespace latecomer::shim {

constinit thread_local bool inside = false;

}  // namespace latecomer::shim
