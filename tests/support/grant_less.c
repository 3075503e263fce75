// SPDX-License-Identifier: BSD-3-Clause
// A system that grants less. MPI grants at most MPI_THREAD_SERIALIZED on the ranks in GRANT_LESS, and C++ gets no
// thread on the ranks in GRANT_NO_THREAD ("all" or one rank).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int is_named(const char* variable) {
  const char* who = getenv(variable);
  const char* rank = getenv(getenv("PMI_RANK") ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
  return who && (strcmp(who, "all") == 0 || (rank && strcmp(who, rank) == 0));
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int less = is_named("GRANT_LESS") && required > MPI_THREAD_SERIALIZED;
  return PMPI_Init_thread(argc, argv, less ? MPI_THREAD_SERIALIZED : required, provided);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static Create* next = NULL;
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "pthread_create");
  Dl_info caller;
  // MPI's own threads are in C.
  if (is_named("GRANT_NO_THREAD") && dladdr(__builtin_return_address(0), &caller) &&
      strstr(caller.dli_fname, "libstdc++"))
    return EAGAIN;
  return next(thread, attributes, run, argument);
}
