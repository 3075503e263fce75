// SPDX-License-Identifier: BSD-3-Clause
// A process manager whose name service misbehaves as NAME_SERVICE says: `forgets` what is published, `invents` answers
// to unknown names, or `refuses` to publish. It `delays` the first answer of rank 1 by 3 s and is right otherwise.
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
int PMPI_Publish_name(const char* name, MPI_Info info, const char* port) {
  if (is("delays")) {
    if (strstr(name, "-here-1")) sleep(3);
    return ((Call)dlsym(RTLD_NEXT, "PMPI_Publish_name"))(name, info, port);
  }
  return is("refuses") ? MPI_ERR_SERVICE : MPI_SUCCESS;
}
int PMPI_Lookup_name(const char* name, MPI_Info info, char* port) {
  if (is("delays")) return ((Call)dlsym(RTLD_NEXT, "PMPI_Lookup_name"))(name, info, port);
  if (!is("invents")) return MPI_ERR_NAME;
  strcpy(port, "anything");
  return MPI_SUCCESS;
}
int PMPI_Unpublish_name(const char* name, MPI_Info info, const char* port) {
  if (is("delays")) return ((Call)dlsym(RTLD_NEXT, "PMPI_Unpublish_name"))(name, info, port);
  return MPI_SUCCESS;
}
