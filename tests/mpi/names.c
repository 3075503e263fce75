// SPDX-License-Identifier: BSD-3-Clause
// Asks for functions by weak references and by dlsym(), and prints which are there. Usage: names [inter]; with `inter`
// it ends with an error on an inter-communicator. -DLATE: a program without MPI that loads it. Usage: names_late
// LIBRARY [progress]; with `progress` it uses UCX before.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SOME(ROW) \
  ROW(MPI_Init) ROW(MPI_Allreduce) ROW(MPI_Session_init) ROW(MPI_Allreduce_init) ROW(MPI_Allreduce_c) ROW(MPI_Isend_c)

#ifdef LATE
#ifdef OPEN_MPI  // handles are addresses of the library's variables
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) ((type)dlsym(RTLD_DEFAULT, #global))
#endif
typedef int (*Any)();

static void load(const char* library) {
  if (dlopen(library, RTLD_LAZY | RTLD_GLOBAL)) return;
  printf("%s\n", dlerror());
  exit(2);
}
static Any find(const char* name) {
  Any found = (Any)dlsym(RTLD_DEFAULT, name);
  if (!found) printf("%s\n", dlerror());
  return found;
}
static void ask(void) {
#define ASK(name) printf("%s %s\n", #name, dlsym(RTLD_DEFAULT, #name) ? "is there" : dlerror());
  SOME(ASK)
  ASK(ucp_worker_progress)
}

/// As UCX-Py does, without UCX's header.
static void use_ucx(void) {
  const uint64_t features[64] = {1, 1}, nothing[64] = {0};
  void *context = NULL, *worker = NULL;
  load("libucp.so.0");
  if (find("ucp_init_version")(1, 5, features, NULL, &context) != 0) exit(3);
  if (find("ucp_worker_create")(context, nothing, &worker) != 0) exit(3);
  Any progress = find("ucp_worker_progress");
  for (int i = 0; i < 3; ++i) printf("progress %d\n", progress(worker));
}

int main(int argc, char** argv) {
  int one = 1, sum = 0;
  if (argc < 2) return 2;
  ask();
  if (argc > 2) use_ucx();
  load(argv[1]);
  ask();
  find("MPI_Init")(NULL, NULL);
  for (int i = 0; i < 20; ++i) find("MPI_Allreduce")(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("sum %d\n", sum);
  ask();
  return find("MPI_Finalize")();
}
#else
// Under other names, because mpi.h may declare some of them.
#define WEAK(name) extern int weak_##name(void) __asm__(#name) __attribute__((weak));
SOME(WEAK)
#define ASK(name) printf("%s %d %d\n", #name, weak_##name != NULL, dlsym(RTLD_DEFAULT, #name) != NULL);

int main(int argc, char** argv) {
  int rank, sum = 0;
  SOME(ASK)
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 20; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SOME(ASK)
  if (argc > 1) {
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter);
    MPI_Send(&sum, 1, MPI_INT, 77, 0, inter);  // no such rank
  }
  return MPI_Finalize();
}
#endif
