// SPDX-License-Identifier: BSD-3-Clause
// MPI in an extension module: a program without MPI loads a library with MPI, with local scope. -DPLUGIN compiles the
// library, otherwise the program. Usage: plugin_host PLUGIN
#include <stdio.h>
#ifdef PLUGIN
#include <mpi.h>
__attribute__((visibility("default"))) int run_plugin(void);
int run_plugin(void) {
  int rank, size, bad = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 60; ++i) {
    int out = 0;
    MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    bad += out != size * (size - 1) / 2;
  }
  MPI_Finalize();
  if (rank == 0 && !bad) printf("right\n");
  return bad;
}
#else
#include <dlfcn.h>
int main(int argc, char** argv) {
  void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "run_plugin") : NULL;
  if (!run) {
    printf("%s\n", dlerror());
    return 2;
  }
  return run();
}
#endif
