// SPDX-License-Identifier: BSD-3-Clause
// The checks of a library that only the user has named. They depend on nothing but the library, so that all ranks of a
// job get the same answer.
#include "shim/mpi/interface.hpp"

#include <initializer_list>

#include "shim/mpi/entry.hpp"

namespace latecomer::shim {

#ifdef LATECOMER_ABI

// The front takes a library for this family's only if it says that it has the standard ABI.
const char* lacked_mark() { return nullptr; }
const char* wrong_interface() { return nullptr; }

#elif defined(OPEN_MPI)

// The front takes no library for Open MPI's that lacks its objects, and start_family() asks for all of them.
const char* lacked_mark() { return nullptr; }
const char* wrong_interface() { return nullptr; }

#else

const char* lacked_mark() {
  for (const char* name : {"MPIR_Dup_fn", "MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_F_STATUS_IGNORE"})
    if (!find_function(name)) return name;
  return nullptr;
}

namespace {

bool has_size(MPI_Datatype type, MPI_Count expected) {
  MPI_Count size = -1;
  return PMPI_Type_size_x(type, &size) == MPI_SUCCESS && size == expected;
}

/// On a communicator of this process alone.
const char* wrong_communication(MPI_Comm alone) {
  int rank = -1, size = -1, sum = 7, told = 0;
  if (PMPI_Comm_rank(alone, &rank) != MPI_SUCCESS || PMPI_Comm_size(alone, &size) != MPI_SUCCESS || rank != 0 ||
      size != 1)
    return "a communicator of one process";
  constexpr int kTag = 5711, kUntouched = -77;
  const double sent[3] = {1, 2, 3};
  double received[4] = {0, 0, 0, 4};
  struct {
    MPI_Status status;
    int behind[8];
  } room;
  for (int& word : room.behind) word = kUntouched;
  room.status.MPI_SOURCE = room.status.MPI_TAG = room.status.MPI_ERROR = kUntouched;
  if (PMPI_Sendrecv_c(sent, 3, MPI_DOUBLE, 0, kTag, received, 4, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, alone,
                      &room.status) != MPI_SUCCESS ||
      received[0] != 1 || received[2] != 3 || received[3] != 4)
    return "a message to itself";
  if (room.status.MPI_SOURCE != 0 || room.status.MPI_TAG != kTag || room.status.MPI_ERROR != kUntouched)
    return "the places of source, tag and error in MPI_Status";
  for (const int word : room.behind)
    if (word != kUntouched) return "the size of MPI_Status";
  if (PMPI_Get_count(&room.status, MPI_DOUBLE, &told) != MPI_SUCCESS || told != 3) return "the count in MPI_Status";
  if (PMPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, alone) != MPI_SUCCESS || sum != 7) return "MPI_IN_PLACE";
  return nullptr;
}

}  // namespace

const char* wrong_interface() {
  int initialized = 0;
  if (PMPI_Initialized(&initialized) != MPI_SUCCESS || !initialized) return "it has sessions without MPI_Init";
  if (!has_size(MPI_BYTE, 1) || !has_size(MPI_CHAR, 1) || !has_size(MPI_INT, sizeof(int)) ||
      !has_size(MPI_LONG, sizeof(long)) || !has_size(MPI_FLOAT, sizeof(float)) ||
      !has_size(MPI_DOUBLE, sizeof(double)) || !has_size(MPI_LONG_DOUBLE, sizeof(long double)) ||
      !has_size(MPI_DOUBLE_INT, sizeof(double) + sizeof(int)) || !has_size(MPI_UINT64_T, 8))
    return "the sizes of predefined datatypes";
  for (const MPI_Op op : {MPI_SUM, MPI_MAX, MPI_BOR, MPI_MINLOC})
    if (int commutes = 0; PMPI_Op_commutative(op, &commutes) != MPI_SUCCESS || !commutes)
      return "whether predefined operators commute";
  int *most = nullptr, has = 0;
  if (PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &has) != MPI_SUCCESS || !has || !most || *most < 32767)
    return "the attribute MPI_TAG_UB";
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm alone = MPI_COMM_NULL;
  if (PMPI_Comm_group(MPI_COMM_SELF, &group) != MPI_SUCCESS || group == MPI_GROUP_NULL ||
      PMPI_Comm_create(MPI_COMM_SELF, group, &alone) != MPI_SUCCESS || alone == MPI_COMM_NULL)
    return "a communicator of one process";
  PMPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
  const char* const wrong = wrong_communication(alone);
  PMPI_Group_free(&group);
  if (const auto free = reinterpret_cast<int (*)(MPI_Comm*)>(find_function("PMPI_Comm_free"))) free(&alone);
  return wrong;
}

#endif

}  // namespace latecomer::shim
