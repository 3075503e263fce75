// SPDX-License-Identifier: BSD-3-Clause
// A program of rooted collectives only. In every iteration one rank is late. Results are checked.
// Usage: rooted_edges ITERATIONS LATE EDGE WHERE OP...
//   LATE   the rank that is always late, or -1: another one in every iteration
//   EDGE   0: no edge calls; 1: all ranks make one half-way; 2: all but the last rank do
//   WHERE  world, halves (the ranks' two halves), ahead (no rank is late: non-roots run ahead of their root) or
//          late_root (it arrives 12 s late at its 13th call)
//   OP     reduce, gather, scatter, bcast, gatherv, scatterv
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Half of the lateness in us: more than a time slice of another process. */
enum { kCount = 600, kMost = 64, kLate = 3000 };
static int all[kMost * 2 * kCount], one[2 * kCount], out[kMost * 2 * kCount], counts[kMost], places[kMost];
static MPI_Comm comm;
static int rank, size, bad, count = kCount; /* elements per rank */

static void call(const char* op, int i) {
  const int root = 0;
  for (int r = 0, at = 0; r < size; ++r) {
    counts[r] = count + 40 * (r % 16);
    places[r] = at;
    at += counts[r];
  }
  if (strcmp(op, "reduce") == 0) {
    for (int k = 0; k < count; ++k) one[k] = rank + k + i;
    MPI_Reduce(one, out, count, MPI_INT, MPI_SUM, root, comm);
    for (int k = 0; rank == root && k < count; ++k) bad |= out[k] != size * (size - 1) / 2 + size * (k + i);
  } else if (strcmp(op, "bcast") == 0) {
    for (int k = 0; k < count; ++k) one[k] = rank == root ? k - i : -1;
    MPI_Bcast(one, count, MPI_INT, root, comm);
    for (int k = 0; k < count; ++k) bad |= one[k] != k - i;
  } else if (strcmp(op, "gather") == 0) {
    for (int k = 0; k < count; ++k) one[k] = rank * count + k + i;
    MPI_Gather(one, count, MPI_INT, all, count, MPI_INT, root, comm);
    for (int k = 0; rank == root && k < size * count; ++k) bad |= all[k] != k + i;
  } else if (strcmp(op, "scatter") == 0) {
    for (int k = 0; k < size * count; ++k) all[k] = rank == root ? k + i : -1;
    MPI_Scatter(all, count, MPI_INT, one, count, MPI_INT, root, comm);
    for (int k = 0; k < count; ++k) bad |= one[k] != rank * count + k + i;
  } else if (strcmp(op, "gatherv") == 0) {
    for (int k = 0; k < counts[rank]; ++k) one[k] = places[rank] + k + i;
    MPI_Gatherv(one, counts[rank], MPI_INT, all, counts, places, MPI_INT, root, comm);
    for (int k = 0; rank == root && k < places[size - 1] + counts[size - 1]; ++k) bad |= all[k] != k + i;
  } else {
    for (int k = 0; k < places[size - 1] + counts[size - 1]; ++k) all[k] = rank == root ? k + i : -1;
    MPI_Scatterv(all, counts, places, MPI_INT, one, counts[rank], MPI_INT, root, comm);
    for (int k = 0; k < counts[rank]; ++k) bad |= one[k] != places[rank] + k + i;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int world, world_rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (argc < 6 || world > kMost) MPI_Abort(MPI_COMM_WORLD, 2);
  const int iterations = atoi(argv[1]), always = atoi(argv[2]), edge = atoi(argv[3]);
  const char* where = argv[4];
  comm = MPI_COMM_WORLD;
  if (strcmp(where, "halves") == 0) MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &comm);
  if (strcmp(where, "late_root") == 0) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    count = 10; /* MPI sends it at once, so that the other ranks run ahead of their root */
  }
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  unsigned shared = 12345;
  for (int i = 0; i < iterations; ++i) {
    shared = shared * 1103515245u + 12345u;
    const int late = always >= 0 ? always : (int)(shared >> 16) % size;
    const int says = edge == 1 || (edge == 2 && rank != size - 1);
    if (strcmp(where, "ahead") == 0) {
      if (rank == 0 && i % 100 == 99) usleep(3000);
    } else if (strcmp(where, "late_root") == 0) {
      if (rank == 0 && i == 12) sleep(12);
    } else {
      usleep(rank == late ? kLate : 100);
      if (says) MPI_Pcontrol(5711, 0.5);
      usleep(rank == late ? kLate : 100);
    }
    for (int o = 5; o < argc; ++o) call(argv[o], i);
  }
  if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
  if (bad) printf("rank %d wrong\n", world_rank);
  MPI_Finalize();
  if (world_rank == 0 && !bad) printf("right\n");
  return bad;
}
