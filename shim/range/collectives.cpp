// SPDX-License-Identifier: BSD-3-Clause
// The collectives of latecomer/range.h.
#include <mpi.h>

#include "shim/range/calls.hpp"

namespace latecomer::range {
namespace {

using Kind = core::Collective;

int start(const latecomer_range* range, const Arguments& a, latecomer_range_request* request) {
  return inside([&] {
    if (!request) return MPI_ERR_REQUEST;
    *request = nullptr;
    if (const int rc = wrong_range(range); rc != MPI_SUCCESS) return rc;
    const bool root = range->rank == a.root, rooted = core::is_rooted(a.op);
    if (rooted && (a.root < 0 || a.root >= range->size)) return MPI_ERR_ROOT;
    if (core::is_reduction(a.op) && a.reduction == MPI_OP_NULL) return MPI_ERR_OP;
    // What is significant here: the side that has all blocks is so at the root only.
    const bool gathers = core::regular(a.op) == Kind::gather, scatters = core::regular(a.op) == Kind::scatter;
    const bool sends = a.op != Kind::barrier && !core::is_reduction(a.op) && a.op != Kind::bcast &&
                       a.send != MPI_IN_PLACE && (!scatters || root);
    const bool receives = a.op != Kind::barrier && a.recv != MPI_IN_PLACE && (!gathers || root);
    int rc = MPI_SUCCESS;
    if (sends) rc = wrong_data(a.send_count, a.send_type);
    if (rc == MPI_SUCCESS && receives) rc = wrong_data(a.recv_count, a.recv_type);
    const auto counted = [&](const MPI_Count* counts, const MPI_Aint* displacements) {
      if (!counts || !displacements) return MPI_ERR_ARG;
      for (int r = 0; r < range->size; ++r)
        if (counts[r] < 0) return MPI_ERR_COUNT;
      return MPI_SUCCESS;
    };
    const bool all_v = a.op == Kind::allgatherv || a.op == Kind::alltoallv;
    if (rc == MPI_SUCCESS && sends && (a.op == Kind::scatterv || a.op == Kind::alltoallv))
      rc = counted(a.send_counts, a.send_displacements);
    if (rc == MPI_SUCCESS && receives && (a.op == Kind::gatherv || all_v))
      rc = counted(a.recv_counts, a.recv_displacements);
    // MPI_IN_PLACE applies to the root only, or to all ranks of a collective without a root.
    if (a.send == MPI_IN_PLACE && (scatters || ((gathers || a.op == Kind::reduce) && !root))) rc = MPI_ERR_BUFFER;
    if (a.recv == MPI_IN_PLACE && !(scatters && root)) rc = MPI_ERR_BUFFER;
    if (rc != MPI_SUCCESS) return rc;
    *request = new Collective(*range, a);
    return MPI_SUCCESS;
  });
}

}  // namespace
}  // namespace latecomer::range

using namespace latecomer::range;

extern "C" {

int latecomer_range_ibarrier(const latecomer_range* range, latecomer_range_request* request) {
  Arguments a{Kind::barrier};
  return start(range, a, request);
}

int latecomer_range_ibcast(void* data, MPI_Count count, MPI_Datatype type, int root, const latecomer_range* range,
                           latecomer_range_request* request) {
  Arguments a{Kind::bcast, root};
  a.recv = data, a.recv_count = count, a.recv_type = type;
  return start(range, a, request);
}

#define LATECOMER_REDUCTION(name)                                                                          \
  int latecomer_range_i##name(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, \
                              const latecomer_range* range, latecomer_range_request* request) {            \
    Arguments a{Kind::name, 0, op, send, recv};                                                            \
    a.recv_count = count, a.recv_type = type;                                                              \
    return start(range, a, request);                                                                       \
  }
LATECOMER_REDUCTION(allreduce)
LATECOMER_REDUCTION(scan)
LATECOMER_REDUCTION(exscan)
LATECOMER_REDUCTION(reduce_scatter_block)
#undef LATECOMER_REDUCTION

int latecomer_range_ireduce(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                            const latecomer_range* range, latecomer_range_request* request) {
  Arguments a{Kind::reduce, root, op, send, recv};
  a.recv_count = count, a.recv_type = type;
  return start(range, a, request);
}

int latecomer_range_igather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                            MPI_Count recv_count, MPI_Datatype recv_type, int root, const latecomer_range* range,
                            latecomer_range_request* request) {
  return start(range, {Kind::gather, root, MPI_OP_NULL, send, recv, send_count, recv_count, send_type, recv_type},
               request);
}
int latecomer_range_iscatter(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                             MPI_Count recv_count, MPI_Datatype recv_type, int root, const latecomer_range* range,
                             latecomer_range_request* request) {
  return start(range, {Kind::scatter, root, MPI_OP_NULL, send, recv, send_count, recv_count, send_type, recv_type},
               request);
}
int latecomer_range_iallgather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                               MPI_Count recv_count, MPI_Datatype recv_type, const latecomer_range* range,
                               latecomer_range_request* request) {
  return start(range, {Kind::allgather, 0, MPI_OP_NULL, send, recv, send_count, recv_count, send_type, recv_type},
               request);
}
int latecomer_range_ialltoall(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                              MPI_Count recv_count, MPI_Datatype recv_type, const latecomer_range* range,
                              latecomer_range_request* request) {
  return start(range, {Kind::alltoall, 0, MPI_OP_NULL, send, recv, send_count, recv_count, send_type, recv_type},
               request);
}

int latecomer_range_igatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                             const MPI_Count* recv_counts, const MPI_Aint* displacements, MPI_Datatype recv_type,
                             int root, const latecomer_range* range, latecomer_range_request* request) {
  return start(range,
               {Kind::gatherv, root, MPI_OP_NULL, send, recv, send_count, 0, send_type, recv_type, nullptr, recv_counts,
                nullptr, displacements},
               request);
}
int latecomer_range_iscatterv(const void* send, const MPI_Count* send_counts, const MPI_Aint* displacements,
                              MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type,
                              int root, const latecomer_range* range, latecomer_range_request* request) {
  return start(range,
               {Kind::scatterv, root, MPI_OP_NULL, send, recv, 0, recv_count, send_type, recv_type, send_counts,
                nullptr, displacements, nullptr},
               request);
}
int latecomer_range_iallgatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                                const MPI_Count* recv_counts, const MPI_Aint* displacements, MPI_Datatype recv_type,
                                const latecomer_range* range, latecomer_range_request* request) {
  return start(range,
               {Kind::allgatherv, 0, MPI_OP_NULL, send, recv, send_count, 0, send_type, recv_type, nullptr, recv_counts,
                nullptr, displacements},
               request);
}
int latecomer_range_ialltoallv(const void* send, const MPI_Count* send_counts, const MPI_Aint* send_displacements,
                               MPI_Datatype send_type, void* recv, const MPI_Count* recv_counts,
                               const MPI_Aint* recv_displacements, MPI_Datatype recv_type, const latecomer_range* range,
                               latecomer_range_request* request) {
  return start(range,
               {Kind::alltoallv, 0, MPI_OP_NULL, send, recv, 0, 0, send_type, recv_type, send_counts, recv_counts,
                send_displacements, recv_displacements},
               request);
}
}
