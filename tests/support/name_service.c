// SPDX-License-Identifier: BSD-3-Clause
// A process manager whose name service misbehaves as NAME_SERVICE says: `forgets` what is published, `invents` answers
// to unknown names, or `refuses` to publish.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int is(const char* kind) {
  const char* wanted = getenv("NAME_SERVICE");
  return wanted && strcmp(wanted, kind) == 0;
}
int PMPI_Publish_name(const char* name, MPI_Info info, const char* port) {
  (void)name, (void)info, (void)port;
  return is("refuses") ? MPI_ERR_SERVICE : MPI_SUCCESS;
}
int PMPI_Lookup_name(const char* name, MPI_Info info, char* port) {
  (void)name, (void)info;
  if (!is("invents")) return MPI_ERR_NAME;
  strcpy(port, "anything");
  return MPI_SUCCESS;
}
int PMPI_Unpublish_name(const char* name, MPI_Info info, const char* port) {
  (void)name, (void)info, (void)port;
  return MPI_SUCCESS;
}
