// SPDX-License-Identifier: BSD-3-Clause
// The level at which a family sees the program's calls. MPICH's Fortran bindings call the C functions MPI_*, and
// mpi_f08 has symbols of its own for a few, and calls PMPI_* in others. Open MPI's bindings call PMPI_* instead. The
// parts of MPI for files and a tool that is preloaded, too, call PMPI_* as well. So the family of Open MPI handles both
// names, and that of MPICH some. They count a call of PMPI only if that comes from the program or a Fortran binding.
// Open MPI's does not count one from a tool on the way of a call that counts, either.
#pragma once

#ifndef LATECOMER_ABI

#include "shim/guard.hpp"

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

/// Calls the next definition of PMPI_* for a call that does not count. MPI's callbacks beneath it are the program's.
template <typename Function, typename... Given>
auto call_uncounted(Function* next, Given... given) {
  const Guard guard(Layer::program);
  return next(given...);
}

}  // namespace latecomer::shim

#endif
