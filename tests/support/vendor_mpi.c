// SPDX-License-Identifier: BSD-3-Clause
// Gives the process's MPI library the name of a vendor that latecomer does not know.
#include <mpi.h>
#include <string.h>

int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
int PMPI_Get_library_version(char* text, int* length) {
  strcpy(text, "Vendor MPI 7.1");
  *length = (int)strlen(text);
  return MPI_SUCCESS;
}
