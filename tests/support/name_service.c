// SPDX-License-Identifier: BSD-3-Clause
// A process manager whose name service misbehaves as NAME_SERVICE says: it `forgets` what is published, `invents`
// answers to unknown names, `refuses` to publish, or `empties` all answers. It `deafens` rank 2, so that it finds no
// name, or `swallows` the names of rank 1. It `delays` the first answer of rank 1 by 3 s. Otherwise it is right.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*Call)(const char*, MPI_Info, const char*);

static int is(const char* kind) {
  const char* wanted = getenv("NAME_SERVICE");
  return wanted && strcmp(wanted, kind) == 0;
}
static int passes_on(void) { return is("delays") || is("deafens") || is("swallows"); }
static int rank(void) {
  const char* text = getenv("PMI_RANK");
  if (!text) text = getenv("OMPI_COMM_WORLD_RANK");
  return text ? atoi(text) : 0;
}

int PMPI_Publish_name(const char* name, MPI_Info info, const char* port) {
  if (is("delays") && strstr(name, "-here-1")) sleep(3);
  if (passes_on() && !(is("swallows") && rank() == 1))
    return ((Call)dlsym(RTLD_NEXT, "PMPI_Publish_name"))(name, info, port);
  return is("refuses") ? MPI_ERR_SERVICE : MPI_SUCCESS;
}
int PMPI_Lookup_name(const char* name, MPI_Info info, char* port) {
  if (passes_on() && !(is("deafens") && rank() == 2))
    return ((Call)dlsym(RTLD_NEXT, "PMPI_Lookup_name"))(name, info, port);
  if (!is("invents") && !is("empties")) return MPI_ERR_NAME;
  strcpy(port, is("empties") ? "" : "anything");
  return MPI_SUCCESS;
}
int PMPI_Unpublish_name(const char* name, MPI_Info info, const char* port) {
  if (passes_on()) return ((Call)dlsym(RTLD_NEXT, "PMPI_Unpublish_name"))(name, info, port);
  return MPI_SUCCESS;
}
