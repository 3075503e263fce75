// SPDX-License-Identifier: BSD-3-Clause
// The level at which a family sees the program's calls. MPICH's Fortran bindings call the C functions MPI_*, and
// mpi_f08 has symbols of its own for a few. Open MPI's bindings call PMPI_* instead, and so do its plugins for files
// and a tool that is preloaded, too. So the family of Open MPI handles both names. It counts a call of PMPI only if
// that comes from the program or a Fortran binding, and not from a tool on the way of a call that counts.
#pragma once

#include "shim/guard.hpp"
#include "shim/mpi/entry.hpp"

#ifdef OPEN_MPI

namespace latecomer::shim {

/// Whether a call of a PMPI function with that return address counts.
bool from_program(const void* return_address);

/// Calls the next definition of MPI_*. If that is another function than PMPI_*, it is a tool's, whose calls of PMPI_*
/// do not count.
template <typename Function, typename... Given>
auto call_behind(Function* next, Function* direct, Given... given) {
  if (next == direct) [[likely]]
    return next(given...);
  const Guard guard(Layer::tool);
  return next(given...);
}

}  // namespace latecomer::shim

#define LATECOMER_NEXT(symbol) [](auto... given) { return call_behind(next::symbol, next::P##symbol, given...); }

/// The handlers of MPI_* and PMPI_*. In the body, NEXT is the next definition.
#define LATECOMER_LEVELS(type, symbol, parameters, arguments, ...)        \
  namespace next {                                                        \
  extern type(*P##symbol) parameters;                                     \
  }                                                                       \
  LATECOMER_ENTRY(type, symbol, parameters) {                             \
    const auto NEXT = LATECOMER_NEXT(symbol);                             \
    __VA_ARGS__                                                           \
  }                                                                       \
  LATECOMER_ENTRY(type, P##symbol, parameters) {                          \
    const auto NEXT = next::P##symbol;                                    \
    if (!from_program(__builtin_return_address(0))) {                     \
      const Guard guard(Layer::program); /* MPI's callbacks beneath it */ \
      return NEXT arguments;                                              \
    }                                                                     \
    __VA_ARGS__                                                           \
  }
/// MPICH's symbols for mpi_f08: Open MPI has some of the same names, with other arguments.
#define LATECOMER_F08_ENTRY(type, symbol, parameters)         \
  namespace next {                                            \
  [[maybe_unused]] static type(*symbol) parameters = nullptr; \
  }                                                           \
  [[maybe_unused]] static type unused_##symbol parameters

#else

#define LATECOMER_NEXT(symbol) next::symbol
#define LATECOMER_LEVELS(type, symbol, parameters, arguments, ...) \
  LATECOMER_ENTRY(type, symbol, parameters) {                      \
    const auto NEXT = next::symbol;                                \
    __VA_ARGS__                                                    \
  }
#define LATECOMER_F08_ENTRY(type, symbol, parameters) LATECOMER_ENTRY(type, symbol, parameters)

#endif
