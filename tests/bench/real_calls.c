// SPDX-License-Identifier: BSD-3-Clause
// Prints the mean time in nanoseconds of an allreduce of 8 B, of a broadcast and of a round trip of one message. Rank 0
// measures. tests/bench/overhead runs it natively and observed, in turns.
#include <mpi.h>
#include <stdio.h>

enum { kCalls = 1000000, kTrips = 300000, kWarm = 1000 };  // chosen, not measured: less than a second each

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, token = 0;
  double in = 1, out = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double begin = 0;
  for (int i = -kWarm; i < kCalls; ++i) {
    if (i == 0) begin = MPI_Wtime();
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  const double allreduce = (MPI_Wtime() - begin) / kCalls;
  for (int i = -kWarm; i < kCalls; ++i) {
    if (i == 0) begin = MPI_Wtime();
    MPI_Bcast(&in, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }
  const double bcast = (MPI_Wtime() - begin) / kCalls;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = -kWarm; i < kTrips; ++i) {
    if (i == 0) begin = MPI_Wtime();
    if (rank == 0) {
      MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Request receive, send;
      MPI_Irecv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &receive);
      MPI_Wait(&receive, MPI_STATUS_IGNORE);
      MPI_Isend(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &send);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
  }
  const double trip = (MPI_Wtime() - begin) / kTrips;
  if (rank == 0) printf("%.0f %.0f %.0f\n", allreduce * 1e9, bcast * 1e9, trip * 1e9);
  MPI_Finalize();
  return 0;
}
