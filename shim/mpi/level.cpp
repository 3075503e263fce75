// SPDX-License-Identifier: BSD-3-Clause
// Tells the program's calls of PMPI functions from those of MPI itself, by the library that calls.
#include "shim/mpi/level.hpp"

#ifndef LATECOMER_ABI

#include <dlfcn.h>

#include <atomic>

#include "shim/mpi/names.hpp"

namespace latecomer::shim {

namespace {

/// Return addresses and their answers: the address, and 1 in the lowest bit of its shifted value if it counts. A
/// program has few calls of MPI that come through PMPI. Derived: 8 KiB.
constexpr std::size_t kPlaces = 1024;
std::atomic<std::uintptr_t> caller_answers[kPlaces];

bool look_up(const void* address) {
  Dl_info info;
  return !dladdr(address, &info) || !info.dli_fname || !is_inside_mpi(info.dli_fname);
}

}  // namespace

bool from_program(const void* return_address) {
  if (!Guard::program_calls()) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(return_address);
  std::atomic<std::uintptr_t>& place = caller_answers[(at ^ at >> 10) % kPlaces];
  const std::uintptr_t there = place.load(std::memory_order_relaxed);
  if (there >> 1 == at) [[likely]]
    return there & 1;
  const bool counts = look_up(return_address);
  place.store(at << 1 | counts, std::memory_order_relaxed);
  return counts;
}

}  // namespace latecomer::shim

#endif
