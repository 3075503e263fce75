/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sessions one after the other, without MPI_Init, with 20 allreduces each. The program has an attribute of its own
 * in the second one, and errors end it. Prints "right". */
#include <mpi.h>
#include <stdio.h>

static int use(int keyval) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int rank, size, sum, found = 0, wrong = 0;
  void* value = NULL;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS) return -1;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "latecomer-test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (keyval) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &wrong);
  }
  for (int i = 0; i < 20; ++i) {
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    wrong |= sum != size * (size - 1) / 2;
  }
  if (keyval) {
    MPI_Comm_get_attr(comm, keyval, &value, &found);
    wrong |= !found || value != &wrong;
    MPI_Comm_free_keyval(&keyval);
  }
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  return wrong ? -1 : rank;
}

int main(void) {
  const int first = use(0), second = use(1);
  if (first < 0 || second < 0) return 2;
  if (first == 0) puts("right");
  return 0;
}
