// SPDX-License-Identifier: BSD-3-Clause
// Exported symbols as stubs. A stub is one jump through a pointer. The target is a family's handler if the process runs
// an MPI library of that family, and otherwise the next definition, which gets every argument unchanged. So a disabled
// run, or a program on another MPI with other handles, pays only one jump. The targets are set at the first call, so
// this also holds for MPI that is loaded later.
#pragma once

#include <cstdint>

namespace latecomer::front {

struct alignas(64) Stub {  // as Entry in family.hpp
  const char* name;
  void** target;  ///< of the stub's jump
  void* next;     ///< the next definition; nullptr: none was found so far
  void* stub;
  std::uint32_t hash;  ///< of the name, as DT_GNU_HASH has it
  bool defined;        ///< by another library of the process: exports.cpp
};

// The linker makes these names.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
extern Stub __start_latecomer_stubs[] __attribute__((visibility("hidden")));
extern Stub __stop_latecomer_stubs[] __attribute__((visibility("hidden")));
}
// NOLINTEND(bugprone-reserved-identifier)

// Always inline: exports.cpp must not call code that a sanitizer has changed.
[[gnu::always_inline]] constexpr std::uint32_t hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

/// All stubs, in no order.
[[gnu::always_inline]] inline Stub* stubs_begin() { return __start_latecomer_stubs; }
[[gnu::always_inline]] inline Stub* stubs_end() { return __stop_latecomer_stubs; }

}  // namespace latecomer::front

extern "C" {
/// Sets the target of the stub, and those of all stubs if MPI is loaded. A stub calls it until it has a target.
__attribute__((visibility("hidden"), used)) void latecomer_resolve(latecomer::front::Stub* called);
}
