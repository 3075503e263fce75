// SPDX-License-Identifier: BSD-3-Clause
// The functions that a program gives to MPI: operators, those that copy and delete attributes, and those of generalized
// requests. MPI gets a function of latecomer instead, which calls the program's. So the time in it counts as the
// program's, and not as that of the call of MPI beneath which it runs.
#pragma once

#include "shim/causes/waiting_calls.hpp"

namespace latecomer::shim {

/// The function that MPI gets for one of the program; the same one if it is one of MPI, or if there are too many.
void* callback_of(void* function) noexcept;

/// Of a call that gives `functions` to MPI.
template <typename Native, typename... Function>
int give_callbacks(Native native, Function*&... functions) {
  if (times_this_call())
    ((functions = reinterpret_cast<Function*>(callback_of(reinterpret_cast<void*>(functions)))), ...);
  return native();
}

}  // namespace latecomer::shim
