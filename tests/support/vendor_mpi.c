// SPDX-License-Identifier: BSD-3-Clause
// Gives the process's MPI library the name of a vendor that latecomer does not know. With ABI_MAJOR it tells that
// version of the standard ABI. VENDOR_FAULT names a check that the library does not pass. Its file's name may say that
// it has the standard ABI (libmpi_abi*).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
int PMPI_Get_library_version(char* text, int* length) {
  strcpy(text, "Vendor MPI 7.1");
  *length = (int)strlen(text);
  return MPI_SUCCESS;
}
#ifdef ABI_MAJOR
int PMPI_Abi_get_version(int* major, int* minor);
int PMPI_Abi_get_version(int* major, int* minor) {
  *major = ABI_MAJOR;
  *minor = 0;
  return MPI_SUCCESS;
}
#endif
#ifndef OPEN_MPI
static int is(const char* fault) {
  const char* given = getenv("VENDOR_FAULT");
  return given && strcmp(given, fault) == 0;
}
#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count* size) {
  const int rc = NEXT(PMPI_Type_size_x)(type, size);
  if (is("size")) *size += 1;
  return rc;
}
int PMPI_Op_commutative(MPI_Op op, int* commutes) {
  const int rc = NEXT(PMPI_Op_commutative)(op, commutes);
  if (is("operator")) *commutes = 0;
  return rc;
}
int PMPI_Get_count(const MPI_Status* status, MPI_Datatype type, int* count) {
  const int rc = NEXT(PMPI_Get_count)(status, type, count);
  if (is("count")) *count += 1;
  return rc;
}
#endif
