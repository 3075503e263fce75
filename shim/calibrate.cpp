// SPDX-License-Identifier: BSD-3-Clause
// latecomer-calibrate: an MPI program of its own that prints the network's figures as the policy's `network` object.
// Started by `latecomer calibrate`. Links MPI; no part of the preload.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

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
  static void reduce_local(const float* in, float* inout, int n) { MPI_Reduce_local(in, inout, n, MPI_FLOAT, MPI_SUM); }
  class Wait {
   public:
    explicit Wait(bool yielding) : yielding_(yielding) {}
    bool again() const {
      if (yielding_) sched_yield();
      return true;
    }

   private:
    bool yielding_;
  };
};

using Measurement = latecomer::shim::Measurement<Mpi>;
alignas(64) char buffers[2][Measurement::kHalf];

/// The number of each rank's host, by MPI's names of the processors.
std::vector<int> hosts_of_ranks(int size) {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::vector<char> names(static_cast<std::size_t>(size) * sizeof name);
  MPI_Allgather(name, sizeof name, MPI_CHAR, names.data(), sizeof name, MPI_CHAR, MPI_COMM_WORLD);
  std::map<std::string, int> numbers;
  std::vector<int> out;
  out.reserve(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r)
    out.push_back(
        numbers.try_emplace(&names[static_cast<std::size_t>(r) * sizeof name], static_cast<int>(numbers.size()))
            .first->second);
  return out;
}

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
  const bool yielding = argc > 1 && std::strcmp(argv[1], "yield") == 0;
  const std::vector<int> hosts = hosts_of_ranks(size);
  if (const auto n = Measurement(MPI_COMM_WORLD, rank, hosts, latecomer::shim::thorough(yielding),
                                 Measurement::Buffer(buffers[0]), Measurement::Buffer(buffers[1]))
                         .run()
                         .network) {
    for (const std::string& doubt : latecomer::core::implausible(*n))
      std::fprintf(stderr, "latecomer: calibrate: warning: %s\n", doubt.c_str());
    std::printf("%s\n", latecomer::core::network_text(*n).c_str());
    std::fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
