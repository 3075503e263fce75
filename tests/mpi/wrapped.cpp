// SPDX-License-Identifier: BSD-3-Clause
// Collectives behind wrappers: a function with several callers, a shared library, an inlined function and a template
// with a long name. Rank 1 is late where `residual` calls. Usage: wrapped CALLS MICROSECONDS
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "wrapping.h"

namespace {
int rank = 0;
int late_us = 0;
}  // namespace

#define FRAME __attribute__((noinline, noclone, visibility("default")))
/// Prevents a tail call and the merging of functions.
#define STAYS(value, text) asm volatile("# " text : : "r"(value))

/// The wrapper of this program.
FRAME int all_sum(int value) {
  int all = 0;
  MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // line: all_sum
  STAYS(all, "all_sum");
  return all;
}

FRAME int assemble(int i) {
  const int all = all_sum(i);  // line: assemble
  STAYS(all, "assemble");
  return all;
}
FRAME int residual(int i) {
  if (rank == 1) usleep(static_cast<useconds_t>(late_us));
  const int all = all_sum(2 * i);  // line: residual
  STAYS(all, "residual");
  return all;
}
FRAME int dense(int i) {
  const int all = residual(i);
  STAYS(all, "dense");
  return all;
}
FRAME int sparse(int i) {
  const int all = residual(i);
  STAYS(all, "sparse");
  return all;
}

FRAME int first_user(int i) {
  const int all = library_sum(i, MPI_COMM_WORLD);  // line: first_user
  STAYS(all, "first_user");
  return all;
}
FRAME int second_user(int i) {
  const int all = library_sum(3 * i, MPI_COMM_WORLD);  // line: second_user
  STAYS(all, "second_user");
  return all;
}

FRAME int solve(int i) {
  const int all = inlined::norm(i, MPI_COMM_WORLD);  // line: solve
  STAYS(all, "solve");
  return all;
}

namespace elements::detail::implementation_of_assembly {
template <typename Key, typename Value>
struct Assembler {
  template <typename More>
  FRAME int operator()(const std::map<Key, std::vector<Value>>& of, More) const {
    const int all = inlined::sum(static_cast<int>(of.size()), MPI_COMM_WORLD);
    STAYS(all, "assembler");
    return all;
  }
};
}  // namespace elements::detail::implementation_of_assembly

extern "C" FRAME int plib_glmax(int i) __asm__("__plib_module_MOD_glmax_d");
extern "C" FRAME int plib_glmax(int i) {
  int all = 0;
  MPI_Allreduce(&i, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  STAYS(all, "glmax");
  return all;
}

namespace {
/// A function without a dynamic symbol.
__attribute__((noinline, noclone)) int concealed(int i) {
  int all = 0;
  MPI_Allreduce(&i, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  STAYS(all, "concealed");
  return all;
}
}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int calls = argc > 1 ? std::atoi(argv[1]) : 10;
  late_us = argc > 2 ? std::atoi(argv[2]) : 0;
  if (rank == 0) std::printf("at %p\n", reinterpret_cast<void*>(&all_sum));
  int sum = 0;
  for (int i = 0; i < calls; ++i) {
    sum += assemble(i) + assemble(i + 1) + dense(i) + sparse(i);
    sum += first_user(i) + second_user(i) + second_user(i + 1);
    sum += solve(i) + plib_glmax(i) + concealed(i);
    sum += elements::detail::implementation_of_assembly::Assembler<std::string, std::vector<double>>{}({{"one", {{}}}},
                                                                                                       sum);
    sum %= 1000;
  }
  if (rank == 0) std::printf("sum %d\n", sum);
  MPI_Finalize();
  return 0;
}
