/* SPDX-License-Identifier: BSD-3-Clause
   Ranks with unequal work before calls that wait, and the same program with that cause removed.
   Usage: unequal KIND LATE EXCESS removed|there STEPS MS STEPS_PER_MS. "unequal calibrate" prints STEPS_PER_MS.
   KIND allreduce sends 8 B, and large 256 KiB. KIND chain is a reduce, then a bcast.
   KIND halo: messages with both neighbours, and an allreduce after ten of them.
   KIND send: from rank 0 to 1 to 2 and so on, and a barrier after ten.
   LATE rank1: it works longer by the part EXCESS. LATE sleep: it sleeps for that part.
   LATE bursts: rank 1 works longer by twenty times EXCESS in each twentieth step.
   LATE turn: another rank works longer in each step. LATE noise: each rank does, by up to twice EXCESS.
   removed: the same work is spread over all ranks, and nobody sleeps. turn and noise stay: work is equal there. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mpi/work.h"

enum { FLOATS = 65536 };
static float in[FLOATS], out[FLOATS];
static int rank, ranks;

static double part_of(const char* late, double excess, int step, int removed, unsigned* seed) {
  const double spread = excess / ranks;
  if (!strcmp(late, "rank1")) return removed ? spread : rank == 1 ? excess : 0;
  if (!strcmp(late, "bursts")) return removed ? spread : rank == 1 && step % 20 == 7 ? 20 * excess : 0;
  if (!strcmp(late, "turn")) return step % ranks == rank ? excess : 0;
  if (!strcmp(late, "noise")) return 2 * excess * rand_r(seed) / RAND_MAX;
  return 0;
}

static void meet(const char* kind, int step) {
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  if (!strcmp(kind, "allreduce")) MPI_Allreduce(in, out, 2, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(kind, "large")) MPI_Allreduce(in, out, FLOATS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(kind, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(kind, "chain") || !strcmp(kind, "reduce")) MPI_Reduce(in, out, 2, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (!strcmp(kind, "chain")) MPI_Bcast(in, 2, MPI_FLOAT, 0, MPI_COMM_WORLD);
  if (!strcmp(kind, "halo")) {
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Irecv(out, 256, MPI_FLOAT, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(out + 256, 256, MPI_FLOAT, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(in, 256, MPI_FLOAT, right, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(in + 256, 256, MPI_FLOAT, left, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    if (step % 10 == 9) MPI_Allreduce(in, out, 2, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (!strcmp(kind, "send")) {
    if (rank > 0) MPI_Recv(out, 256, MPI_FLOAT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank < ranks - 1) MPI_Send(in, 256, MPI_FLOAT, rank + 1, 0, MPI_COMM_WORLD);
    if (step % 10 == 9) MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && !strcmp(argv[1], "calibrate")) {
    calibrate();
    return printf("%.0f\n", steps_per_ms) < 0;
  }
  if (argc != 8) return 2;
  const char *kind = argv[1], *late = argv[2];
  const double excess = atof(argv[3]), ms = atof(argv[6]);
  const int removed = !strcmp(argv[4], "removed"), steps = atoi(argv[5]);
  steps_per_ms = atof(argv[7]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned seed = 7u * (unsigned)rank + 1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < steps; ++i) {
    compute(ms * (1 + part_of(late, excess, i, removed, &seed)));
    if (!strcmp(late, "sleep") && rank == 1 && !removed) nap(ms * excess);
    meet(kind, i);
  }
  return MPI_Finalize();
}
