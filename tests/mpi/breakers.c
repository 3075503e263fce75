// SPDX-License-Identifier: BSD-3-Clause
// Programs that broke a prototype of the exchange, and programs whose ranks reach one collective from different lines.
// Each is legal MPI and must end as natively. Usage: breakers CASE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, bad = 0;
#define CHECK(condition) ((condition) ? 0 : (bad++, printf("rank %d: line %d: %s\n", rank, __LINE__, #condition)))

// Hangs if latecomer waits for a plan inside a non-blocking call.
static void nonblocking(void) {
  MPI_Request requests[40];
  int in[40], out[40], token = 7;
  for (int round = 0; round < 6; ++round) {
    if (rank == 0) MPI_Recv(&token, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 40; ++i) {
      in[i] = rank + i;
      MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    if (rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    MPI_Waitall(40, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 40; ++i) CHECK(out[i] == size * (size - 1) / 2 + size * i);
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
  }
}

// Hangs if latecomer drains the exchange inside MPI_Comm_free.
static void comm_free(void) {
  for (int round = 0; round < 5; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Request requests[16];
    int data[16] = {0}, token = 1, sum;
    for (int i = 0; i < 20 * round; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 16; ++i) {
      if (rank == 0) data[i] = i + 1;
      MPI_Ibcast(&data[i], 1, MPI_INT, 0, comm, &requests[i]);
    }
    if (rank == 0) {
      MPI_Comm freed = comm;
      MPI_Comm_free(&freed);
      MPI_Send(&token, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
      MPI_Waitall(16, requests, MPI_STATUSES_IGNORE);
    } else {
      MPI_Waitall(16, requests, MPI_STATUSES_IGNORE);
      MPI_Comm_free(&comm);
    }
    for (int i = 0; i < 16; ++i) CHECK(data[i] == i + 1);
  }
}

#if MPI_VERSION >= 4
// Ranks may start persistent operations in different orders.
static void persistent(void) {
  int a = rank, b = 2 * rank, sum_a, sum_b, data;
  MPI_Request first, second, between;
  MPI_Allreduce_init(&a, &sum_a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &first);
  MPI_Allreduce_init(&b, &sum_b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &second);
  for (int i = 0; i < 60; ++i) {
    data = rank == 0 ? i : -1;
    if (rank % 2) MPI_Start(&first);
    else MPI_Start(&second);
    MPI_Ibcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD, &between);
    if (rank % 2) MPI_Start(&second);
    else MPI_Start(&first);
    MPI_Request all[3] = {first, second, between};
    MPI_Waitall(3, all, MPI_STATUSES_IGNORE);
    CHECK(data == i && sum_a == size * (size - 1) / 2 && sum_b == size * (size - 1));
    int sum;
    MPI_Allreduce(&a, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == sum_a);
  }
  MPI_Request_free(&first);
  MPI_Request_free(&second);
}
#else
static void persistent(void) {}
#endif

// A root runs 40 broadcasts ahead of a late leader. No rank may wait for a message meanwhile.
static void run_ahead(void) {
  for (int round = 0; round < 4; ++round) {
    if (rank == 0) usleep(200000);
    for (int i = 0; i < 40; ++i) {
      int data = rank == size - 1 ? i : -1;
      MPI_Bcast(&data, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
      CHECK(data == i);
    }
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
}

// Rank 0 calls its last allreduce before MPI_Finalize, the other ranks call the matching one in a callback of
// MPI_Finalize.
static int last_call(MPI_Comm comm, int keyval, void* attribute, void* extra) {
  (void)comm;
  (void)keyval;
  (void)attribute;
  (void)extra;
  double in[500], out[500];
  for (int i = 0; i < 500; ++i) in[i] = rank;
  MPI_Allreduce(in, out, 500, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  CHECK(out[499] == size * (size - 1) / 2);
  if (bad) MPI_Abort(MPI_COMM_WORLD, 9);
  return MPI_SUCCESS;
}
static void finalize(void) {
  int sum, keyval;
  for (int i = 0; i < 100; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_call, &keyval, NULL);
  if (rank == 0) last_call(MPI_COMM_SELF, 0, NULL, NULL);
  else MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
}

// MPI_Finalize calls the callback after the end of the background engine. The callback's collectives must not use the
// engine.
static int last_movement(MPI_Comm comm, int keyval, void* value, void* extra) {
  int data[64], all[64 * 64];
  (void)comm;
  (void)keyval;
  (void)value;
  (void)extra;
  for (int i = 0; i < 64; ++i) data[i] = rank == 0 ? i : -1;
  MPI_Bcast(data, 64, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(data[63] == 63);
  for (int r = 0; r < size; ++r) all[r] = 3 * r;
  MPI_Scatter(all, 1, MPI_INT, data, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(data[0] == 3 * rank);
  MPI_Gather(data, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(rank != 0 || all[size - 1] == 3 * (size - 1));
  return MPI_SUCCESS;
}
static void finalize_movement(void) {
  int keyval;
  for (int i = 0; i < 20; ++i) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_movement, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
}

// Thousands of communicators, most of them short-lived, with recycled handles.
static void communicators(void) {
  for (int i = 0; i < 3000; ++i) {
    MPI_Comm comm;
    int sum, part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, i % 3 ? rank : -rank, &comm);
    MPI_Comm_size(comm, &part);
    for (int k = 0; k < (i % 100 == 0 ? 40 : 2); ++k) MPI_Allreduce(&part, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == part * part);
    MPI_Comm_free(&comm);
  }
}

// One operation, from different lines on different ranks.
static void divergent(void) {
  double in[300], out[300];
  for (int i = 0; i < 400; ++i) {
    int data = rank == 0 ? i : -1;
    if (rank == 0) MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
    else MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(data == i);
    for (int k = 0; k < 300; ++k) in[k] = rank + k;
    if ((rank + i) % 3 == 0) MPI_Allreduce(in, out, 300, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else if ((rank + i) % 3 == 1) {
      memcpy(out, in, sizeof in);
      // The same operation from another line. Not in place: all ranks must agree on that.
      MPI_Allreduce(in, out, 300, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else {
#if MPI_VERSION >= 4
      MPI_Allreduce_c(in, out, 300, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#else
      PMPI_Allreduce(in, out, 300, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
    }
    CHECK(out[299] == size * (size - 1) / 2 + size * 299.0);
    if (rank == i % size) usleep(300);
  }
}

// Empty messages, one rank, in place with MPI_DATATYPE_NULL, inter-communicators. Wrong arguments are not tested:
// Debian's MPICH does not check them and crashes.
static void edges(void) {
  int in = 1, out = 0;
  for (int i = 0; i < 40; ++i) {
    CHECK(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && out == size);
    CHECK(MPI_Allreduce(&in, &out, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF) == MPI_SUCCESS && out == 1);
  }
  int gathered[64];
  for (int i = 0; i < 40; ++i) {
    gathered[rank] = rank;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INT, MPI_COMM_WORLD);
    CHECK(gathered[size - 1] == size - 1);
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : &rank, 1, rank == 0 ? MPI_DATATYPE_NULL : MPI_INT, gathered, 1, MPI_INT, 0,
               MPI_COMM_WORLD);
  }
  if (size < 2) return;
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 3, &inter);
  for (int i = 0; i < 40; ++i) MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, inter);
  CHECK(out == (rank % 2 ? (size + 1) / 2 : size / 2));
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"nonblocking", nonblocking},
               {"comm_free", comm_free},
               {"persistent", persistent},
               {"run_ahead", run_ahead},
               {"communicators", communicators},
               {"divergent", divergent},
               {"edges", edges},
               {"finalize", finalize},
               {"finalize_movement", finalize_movement}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int known = 0;
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; ++i)
    if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
      cases[i].run();
      known = 1;
    }
  if (!known) {
    printf("no such case\n");
    bad++;
  }
  MPI_Finalize();
  if (rank == 0 && !bad) printf("right\n");
  return bad != 0;
}
