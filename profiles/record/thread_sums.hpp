// SPDX-License-Identifier: BSD-3-Clause
// What the threads of a process that did not start MPI did in its calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/types.hpp"

namespace latecomer::profiles {

/// The parts of a thread's time in MPI.
enum class ThreadPart : std::uint8_t { collectives, messages, files, other };
inline constexpr std::size_t kThreadParts = 4;

/// The sums of a row: of one thread at a time. A later thread continues the row of one that has ended.
struct ThreadSums {
  std::uint64_t threads = 0, calls = 0;
  std::array<core::Nanoseconds, kThreadParts> time{};
  std::uint64_t shared = 0;  ///< 1: of the threads that found no row, of which several may run at a time
};

}  // namespace latecomer::profiles
