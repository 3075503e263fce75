// SPDX-License-Identifier: BSD-3-Clause
// Exported symbols as stubs. A stub is one jump through a pointer. The target is a family's handler if the process runs
// an MPI library of that family, and otherwise the next definition, which gets every argument unchanged. So a disabled
// run, or a program on another MPI with other handles, pays only one jump. The targets are set at the first call, so
// this also holds for MPI that is loaded later.
#pragma once

namespace latecomer::front {

struct alignas(32) Stub {  // as Entry in family.hpp
  const char* name;
  void** target;  ///< of the stub's jump
  void* next;     ///< the next definition; nullptr: MPI has no such function
  void* stub;
};

/// All stubs, in no order.
Stub* stubs_begin();
Stub* stubs_end();

}  // namespace latecomer::front

extern "C" {
/// Sets all targets. A stub calls it until it has a target.
__attribute__((visibility("hidden"), used)) void latecomer_resolve();
}
