// SPDX-License-Identifier: BSD-3-Clause
// latecomer-calibrate: an MPI program of its own that prints the network's figures as the policy's `network` object.
// Started by `latecomer calibrate`. Links MPI; no part of the preload.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/model/plausible.hpp"
#include "shim/measure.hpp"

namespace {

struct Mpi {
  static void isend(const void* data, int bytes, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    MPI_Isend(data, bytes, MPI_BYTE, to, tag, comm, request);
  }
  static void irecv(void* data, int bytes, int from, int tag, MPI_Comm comm, MPI_Request* request) {
    MPI_Irecv(data, bytes, MPI_BYTE, from, tag, comm, request);
  }
  static void test(MPI_Request* request, int* done) { MPI_Test(request, done, MPI_STATUS_IGNORE); }
  static void ibarrier(MPI_Comm comm, MPI_Request* request) { MPI_Ibarrier(comm, request); }
  static void processor_name(char* name, int* length) { MPI_Get_processor_name(name, length); }
  static void allgather(const void* mine, void* all, int bytes, MPI_Comm comm) {
    MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm);
  }
  static void reduce_local(const float* in, float* inout, int n) { MPI_Reduce_local(in, inout, n, MPI_FLOAT, MPI_SUM); }
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) {
    if (rank == 0) std::fprintf(stderr, "latecomer-calibrate: needs at least two ranks\n");
    MPI_Finalize();
    return 2;
  }
  auto n =
      latecomer::shim::Measurement<Mpi>(MPI_COMM_WORLD, rank, size, argc > 1 && std::strcmp(argv[1], "yield") == 0, 1)
          .run();
  if (rank == 0)
    for (const std::string& doubt : latecomer::core::implausible(n))
      std::fprintf(stderr, "latecomer: calibrate: warning: %s\n", doubt.c_str());
  if (rank == 0) {
    // Repeated measurements agree in two digits.
    for (const auto& time : latecomer::core::kNetworkTimes) {
      char text[32];
      std::snprintf(text, sizeof text, "%.4g", n.*time.value);
      n.*time.value = std::strtod(text, nullptr);
    }
    std::printf("%s\n", latecomer::core::network_text(n).c_str());
    std::fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
