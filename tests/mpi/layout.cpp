// SPDX-License-Identifier: BSD-3-Clause
// Datatypes count as gapless if and only if they are in the order of memory, also with a reused handle. One process.
#include "shim/runner/layout.hpp"

#include <cstdio>

namespace {

int failures = 0;

/// Checks twice: the second answer comes from the cache.
void expect(const char* what, MPI_Datatype type, bool gapless) {
  for (int i = 0; i < 2; ++i) {
    latecomer::shim::Layout layout;
    if (layout.read_type(type) == MPI_SUCCESS && layout.gapless == gapless) continue;
    std::printf("%s: expected %s\n", what, gapless ? "gapless" : "not gapless");
    ++failures;
  }
}

/// Frees the type, so that the next type gets its handle.
void expect_once(const char* what, MPI_Datatype type, bool gapless) {
  expect(what, type, gapless);
  MPI_Type_free(&type);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int ones[] = {1, 1, 1}, forward[] = {0, 1, 2}, backward[] = {2, 1, 0}, overlapping[] = {0, 0, 2};
  const MPI_Aint places[] = {0, 4, 12}, gap[] = {0, 8, 16}, swapped[] = {8, 0, 12};
  const MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE, MPI_INT};
  MPI_Datatype type, outer;
  expect("int", MPI_INT, true);
  expect("float and int", MPI_FLOAT_INT, true);
  expect("double and int", MPI_DOUBLE_INT, false);
  MPI_Type_contiguous(5, MPI_INT, &type);
  expect_once("contiguous", type, true);
  MPI_Type_vector(4, 3, 3, MPI_INT, &type);
  expect_once("dense vector", type, true);
  MPI_Type_create_hvector(4, 1, 4, MPI_INT, &type);
  expect_once("dense hvector", type, true);
  MPI_Type_create_hvector(4, 1, 8, MPI_INT, &type);
  expect_once("hvector with gaps", type, false);
#if MPI_VERSION >= 4
  MPI_Type_contiguous_c(3'000'000'000, MPI_INT, &type);
  expect_once("large contiguous", type, true);
  MPI_Type_vector_c(1'000'000'000, 3, 3, MPI_INT, &type);
  expect_once("large dense vector", type, true);
  MPI_Type_create_hvector_c(4, 1, 4, MPI_INT, &type);
  expect_once("large dense hvector", type, true);
  MPI_Type_create_hvector_c(4, 1, 8, MPI_INT, &type);
  expect_once("large hvector with gaps", type, false);
#endif
  // One handle for several types that differ only in their order.
  for (int round = 0; round < 3; ++round) {
    MPI_Type_create_indexed_block(3, 1, forward, MPI_INT, &type);
    expect_once("blocks in order", type, true);
    MPI_Type_create_indexed_block(3, 1, backward, MPI_INT, &type);
    expect("reversed blocks", type, false);
    MPI_Type_contiguous(2, type, &outer);
    expect_once("contiguous of reversed blocks", outer, false);
    MPI_Type_dup(type, &outer);
    expect_once("duplicate of reversed blocks", outer, false);
    MPI_Type_free(&type);
    MPI_Type_create_indexed_block(3, 1, overlapping, MPI_INT, &type);
    expect_once("overlapping blocks", type, false);
  }
  MPI_Type_indexed(3, ones, forward, MPI_INT, &type);
  expect_once("indexed in order", type, true);
  MPI_Type_create_struct(3, ones, places, parts, &type);
  expect_once("dense struct", type, true);
  MPI_Type_create_struct(3, ones, gap, parts, &type);
  expect_once("struct with gaps", type, false);
  MPI_Type_create_struct(3, ones, swapped, parts, &type);
  expect_once("struct out of order", type, false);
  const int whole[] = {4, 6}, all[] = {4, 6}, zero[] = {0, 0};
  MPI_Type_create_subarray(2, whole, all, zero, MPI_ORDER_C, MPI_INT, &type);
  expect_once("whole array", type, true);
  std::printf("%d failures\n", failures);
  MPI_Finalize();
  return failures != 0;
}
