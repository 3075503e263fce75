// SPDX-License-Identifier: BSD-3-Clause
// Creates ranges by arithmetic only. This file must not call MPI or allocate (tests/mpi/range.py checks the object
// file).
#include <latecomer/range.h>

namespace {

/// The index of the place at `distance` from the first of `size` places, `stride` apart.
int place(int distance, int stride, int size) {
  const int r = distance / stride;
  return r * stride == distance && r >= 0 && r < size ? r : MPI_UNDEFINED;
}

}  // namespace

int latecomer_range_create(const latecomer_range* of, int first, int last, int stride, latecomer_range* range) {
  if (!of || !of->hub || !range) return MPI_ERR_COMM;
  if (first < 0 || first >= of->size || last < 0 || last >= of->size) return MPI_ERR_RANK;
  if (stride == 0 || (stride > 0 ? last < first : last > first)) return MPI_ERR_ARG;
  latecomer_range out = *of;
  out.first = of->first + first * of->stride;
  out.size = static_cast<int>((static_cast<long long>(last) - first) / stride) + 1;
  // A range of one rank has no direction. With more ranks the product stays within the communicator.
  out.stride = out.size == 1 ? 1 : stride * of->stride;
  out.depth = of->depth + 1;
  out.rank = of->rank == MPI_UNDEFINED ? MPI_UNDEFINED : place(of->rank - first, stride, out.size);
  *range = out;
  return MPI_SUCCESS;
}

int latecomer_range_with_context(const latecomer_range* of, int context, latecomer_range* range) {
  if (!of || !of->hub || !range) return MPI_ERR_COMM;
  *range = *of;
  range->context = context;
  return MPI_SUCCESS;
}

int latecomer_range_to_mpi(const latecomer_range* range, int r) {
  return range && r >= 0 && r < range->size ? range->first + r * range->stride : MPI_UNDEFINED;
}
int latecomer_range_from_mpi(const latecomer_range* range, int mpi_rank) {
  return range ? place(mpi_rank - range->first, range->stride, range->size) : MPI_UNDEFINED;
}
