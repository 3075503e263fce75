// SPDX-License-Identifier: BSD-3-Clause
// Measures the network's figures if the policy asks for it.
#include "core/model/plausible.hpp"
#include "shim/job/parts.hpp"
#include "shim/log.hpp"
#include "shim/measure.hpp"

namespace latecomer::shim {
namespace {

struct MeasureWithPmpi {
  static void isend(const void* data, int bytes, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    PMPI_Isend(data, bytes, MPI_BYTE, to, tag, comm, request);
  }
  static void irecv(void* data, int bytes, int from, int tag, MPI_Comm comm, MPI_Request* request) {
    PMPI_Irecv_c(data, bytes, MPI_BYTE, from, tag, comm, request);
  }
  static void test(MPI_Request* request, int* done) { PMPI_Test(request, done, MPI_STATUS_IGNORE); }
  static void ibarrier(MPI_Comm comm, MPI_Request* request) { PMPI_Ibarrier(comm, request); }
  static void processor_name(char* name, int* length) { PMPI_Get_processor_name(name, length); }
  static void allgather(const void* mine, void* all, int bytes, MPI_Comm comm) {
    PMPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm);
  }
  static void reduce_local(const float* in, float* inout, int n) {
    PMPI_Reduce_local_c(in, inout, n, MPI_FLOAT, MPI_SUM);
  }
};

}  // namespace

void measure_network(Job& j) {
  // The budget is 1.5 s of MPI_Init, a quarter of kMostSeconds, with two partners and a quarter of the rounds. A
  // smaller number makes MPI_Init longer, a larger one leaves a single partner.
  constexpr int kHurry = 4;
  core::Network n = Measurement<MeasureWithPmpi>(j.comm, j.rank, j.size, j.courteous, kHurry).run();
  PMPI_Bcast(&n, sizeof n, MPI_BYTE, 0, j.comm);
  j.policy.network = n;
  j.policy.network_given = true;
  if (j.rank != 0) return;
  for (const std::string& doubt : core::implausible(n)) say(1, "network measured: %s", doubt.c_str());
  say(1, "network measured: alpha %.3f us, beta %.4f ns/B, latency %.2f us, eager to %lld B", n.alpha_ns / 1e3,
      n.beta_ns_per_byte, n.latency_ns / 1e3, static_cast<long long>(n.eager_bytes));
}

}  // namespace latecomer::shim
