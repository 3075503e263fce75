/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program sleep beneath calls of MPI: an operator, those that copy and delete an attribute, and those
 * of a generalized request. Rank 0 prints the call, and the nanoseconds of sleep in these functions. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { ROUNDS = 12, MS = 4, SHORT = 500 };
static double spent, count;
static volatile int passed; /* set behind the calls, so that none of them is a jump */

static void work(void) {
  nap(MS);
  spent += MS; /* and the time in which it is ready again, but without a core */
}
static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
  if (*type != MPI_INT) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 0; i < *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
  work();
}
static void add_fast(void* in, void* inout, int* n, MPI_Datatype* type) {
  if (*type != MPI_INT) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 0; i < *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
  ++count;
}
static int copy(MPI_Comm from, int key, void* state, void* value, void* made, int* flag) {
  work();
  *(void**)made = value;
  *flag = 1;
  return from == MPI_COMM_NULL || key == MPI_KEYVAL_INVALID || state != &spent ? MPI_ERR_OTHER : MPI_SUCCESS;
}
static int delete (MPI_Comm from, int key, void* value, void* state) {
  work();
  return from == MPI_COMM_NULL || key == MPI_KEYVAL_INVALID || value != &count || state != &spent ? MPI_ERR_OTHER
                                                                                                  : MPI_SUCCESS;
}
static int query(void* state, MPI_Status* status) {
  work();
  MPI_Status_set_elements(status, MPI_INT, 3);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = 7;
  return state == &spent ? MPI_SUCCESS : MPI_ERR_OTHER;
}
static int end(void* state) { return state == &spent ? MPI_SUCCESS : MPI_ERR_OTHER; }
static int cancel(void* state, int complete) { return state && complete ? MPI_SUCCESS : MPI_ERR_OTHER; }

static void say(const char* call) {
  printf("%s %.0f\n", call, 1e6 * spent);
  spent = 0;
}
static void check(int right) {
  if (!right) MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char** argv) {
  int rank, ranks, sum, key;
  MPI_Op op, fast;
  MPI_Comm comm, copied;
  MPI_Request request;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Op_create(add, 1, &op);
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    check(sum == ranks * (ranks - 1) / 2);
  }
  if (rank == 0) say("MPI_Allreduce");
  spent = 0;
  MPI_Op_create(add_fast, 1, &fast);
  for (int i = 0; i < SHORT; ++i) {
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, fast, MPI_COMM_WORLD);
    check(sum == ranks * (ranks - 1) / 2);
  }
  check(count > 0);
  MPI_Comm_create_keyval(copy, delete, &key, &spent);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_attr(comm, key, &count);
  for (int i = 0; i < ROUNDS; ++i) {
    void* value;
    int flag;
    MPI_Comm_dup(comm, &copied);
    MPI_Comm_get_attr(copied, key, &value, &flag);
    check(flag && value == &count);
    const double copying = spent;
    MPI_Comm_free(&copied);
    check(spent > copying);
  }
  MPI_Comm_free(&comm);
  if (rank == 0) say("MPI_Comm_dup,MPI_Comm_free");
  spent = 0;
  MPI_Comm_free_keyval(&key);
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Grequest_start(query, end, cancel, &spent, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    check(status.MPI_SOURCE == 7 && status.MPI_TAG == 7);
  }
  if (rank == 0) say("MPI_Wait");
  passed = sum;
  MPI_Op_free(&op);
  MPI_Op_free(&fast);
  MPI_Finalize();
  return 0;
}
