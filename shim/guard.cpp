// SPDX-License-Identifier: BSD-3-Clause
// Whose code calls MPI on this thread.
#include "shim/guard.hpp"

namespace latecomer::shim {

constinit thread_local std::uintptr_t Guard::word_ = 0;

Layer Guard::check() {
  // Derived: between a guard and the calls that it is about lie the frames of latecomer, a tool, and MPI. They take
  // some KiB; MPI's largest buffers on the stack 64 KiB.
  constexpr std::uintptr_t kDeepest = 1 << 20;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t guard = word_ & ~kLayer;
  if (here < guard && guard - here < kDeepest) return static_cast<Layer>(word_ & kLayer);
  word_ = 0;
  return Layer::program;
}

}  // namespace latecomer::shim
