/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sessions one after the other, without MPI_Init, with 20 allreduces each. The program has an attribute of its own
 * in the second one, and errors end it. With an argument, MPI_Init, and before it a session on that rank alone. Prints
 * "right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

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

static int begin_on_one(int one) {
  MPI_Session session = MPI_SESSION_NULL;
  const char *mpich = getenv("PMI_RANK"), *text = mpich ? mpich : getenv("OMPI_COMM_WORLD_RANK");
  int rank, size, sum, wrong = 0;
  if (text && atoi(text) == one) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 20; ++i) {
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong |= sum != size * (size - 1) / 2;
  }
  MPI_Finalize();
  if (session != MPI_SESSION_NULL) MPI_Session_finalize(&session);
  return wrong ? -1 : rank;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    const int rank = begin_on_one(atoi(argv[1]));
    if (rank == 0) puts("right");
    return rank < 0;
  }
  const int first = use(0), second = use(1);
  if (first < 0 || second < 0) return 2;
  if (first == 0) puts("right");
  return 0;
}
