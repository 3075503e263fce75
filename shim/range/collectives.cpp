// SPDX-License-Identifier: BSD-3-Clause
// The collectives of latecomer/range.h.
#include <mpi.h>

#include "shim/range/calls.hpp"
#include "shim/range/straight.hpp"

namespace latecomer::range {
namespace {

using Kind = core::Collective;

Straight& straight() {
  static Straight* const instance = new Straight;  // must outlive exit handlers
  return *instance;
}

int wrong_arguments(const latecomer_range* range, const Arguments& a) {
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
  return rc;
}

int start(const latecomer_range* range, const Arguments& a, latecomer_range_request* request) {
  return inside([&] {
    if (!request) return MPI_ERR_REQUEST;
    *request = nullptr;
    if (const int rc = wrong_arguments(range, a); rc != MPI_SUCCESS) return rc;
    *request = new RangeCollective(*range, a);
    return MPI_SUCCESS;
  });
}

/// The blocking form.
int run_call(const latecomer_range* range, const Arguments& a) {
  bool straight_ran = false;
  // The lock would have no other holder.
  const int rc = library().alone() ? guarded([&] {
    int out = wrong_arguments(range, a);
    straight_ran = out != MPI_SUCCESS || straight().run_collective(*range, a, &out);
    return out;
  })
                                   : MPI_SUCCESS;
  if (straight_ran || rc != MPI_SUCCESS) return rc;
  latecomer_range_request request = nullptr;
  const int begun = start(range, a, &request);
  return begun == MPI_SUCCESS ? latecomer_range_wait(&request, MPI_STATUS_IGNORE) : begun;
}

/// The arguments of each function of latecomer/range.h.
Arguments bcast_of(void* data, MPI_Count count, MPI_Datatype type, int root) {
  Arguments a{Kind::bcast, root};
  a.recv = data;
  a.recv_count = count;
  a.recv_type = type;
  return a;
}
Arguments reduction_of(Kind kind, const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                       int root = 0) {
  Arguments a{kind, root, op, send, recv};
  a.recv_count = count;
  a.recv_type = type;
  return a;
}

}  // namespace
}  // namespace latecomer::range

using namespace latecomer::range;

// The non-blocking and the blocking form of each collective. `parameters` and `arguments` are in parentheses.
#define LATECOMER_OPEN(...) __VA_ARGS__
#define LATECOMER_COLLECTIVE(name, parameters, arguments)                               \
  int latecomer_range_i##name(LATECOMER_OPEN parameters, const latecomer_range* range,  \
                              latecomer_range_request* request) {                       \
    return start(range, arguments, request);                                            \
  }                                                                                     \
  int latecomer_range_##name(LATECOMER_OPEN parameters, const latecomer_range* range) { \
    return run_call(range, arguments);                                                  \
  }
// clang-format off
#define LATECOMER_BLOCKS const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv, MPI_Count recv_count, MPI_Datatype recv_type
#define LATECOMER_VECTORS const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op
// clang-format on

extern "C" {

int latecomer_range_ibarrier(const latecomer_range* range, latecomer_range_request* request) {
  return start(range, Arguments{Kind::barrier}, request);
}
int latecomer_range_barrier(const latecomer_range* range) { return run_call(range, Arguments{Kind::barrier}); }

LATECOMER_COLLECTIVE(bcast, (void* data, MPI_Count count, MPI_Datatype type, int root),
                     bcast_of(data, count, type, root))
LATECOMER_COLLECTIVE(reduce, (LATECOMER_VECTORS, int root),
                     reduction_of(Kind::reduce, send, recv, count, type, op, root))
LATECOMER_COLLECTIVE(allreduce, (LATECOMER_VECTORS), reduction_of(Kind::allreduce, send, recv, count, type, op))
LATECOMER_COLLECTIVE(scan, (LATECOMER_VECTORS), reduction_of(Kind::scan, send, recv, count, type, op))
LATECOMER_COLLECTIVE(exscan, (LATECOMER_VECTORS), reduction_of(Kind::exscan, send, recv, count, type, op))
LATECOMER_COLLECTIVE(reduce_scatter_block, (LATECOMER_VECTORS),
                     reduction_of(Kind::reduce_scatter_block, send, recv, count, type, op))
LATECOMER_COLLECTIVE(gather, (LATECOMER_BLOCKS, int root),
                     (Arguments{Kind::gather, root, MPI_OP_NULL, send, recv, send_count, recv_count, send_type,
                                recv_type}))
LATECOMER_COLLECTIVE(scatter, (LATECOMER_BLOCKS, int root),
                     (Arguments{Kind::scatter, root, MPI_OP_NULL, send, recv, send_count, recv_count, send_type,
                                recv_type}))
LATECOMER_COLLECTIVE(allgather, (LATECOMER_BLOCKS),
                     (Arguments{Kind::allgather, 0, MPI_OP_NULL, send, recv, send_count, recv_count, send_type,
                                recv_type}))
LATECOMER_COLLECTIVE(alltoall, (LATECOMER_BLOCKS),
                     (Arguments{Kind::alltoall, 0, MPI_OP_NULL, send, recv, send_count, recv_count, send_type,
                                recv_type}))
LATECOMER_COLLECTIVE(gatherv,
                     (const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                      const MPI_Count* recv_counts, const MPI_Aint* displacements, MPI_Datatype recv_type, int root),
                     (Arguments{Kind::gatherv, root, MPI_OP_NULL, send, recv, send_count, 0, send_type, recv_type,
                                nullptr, recv_counts, nullptr, displacements}))
LATECOMER_COLLECTIVE(scatterv,
                     (const void* send, const MPI_Count* send_counts, const MPI_Aint* displacements,
                      MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root),
                     (Arguments{Kind::scatterv, root, MPI_OP_NULL, send, recv, 0, recv_count, send_type, recv_type,
                                send_counts, nullptr, displacements, nullptr}))
LATECOMER_COLLECTIVE(allgatherv,
                     (const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                      const MPI_Count* recv_counts, const MPI_Aint* displacements, MPI_Datatype recv_type),
                     (Arguments{Kind::allgatherv, 0, MPI_OP_NULL, send, recv, send_count, 0, send_type, recv_type,
                                nullptr, recv_counts, nullptr, displacements}))
LATECOMER_COLLECTIVE(alltoallv,
                     (const void* send, const MPI_Count* send_counts, const MPI_Aint* send_displacements,
                      MPI_Datatype send_type, void* recv, const MPI_Count* recv_counts,
                      const MPI_Aint* recv_displacements, MPI_Datatype recv_type),
                     (Arguments{Kind::alltoallv, 0, MPI_OP_NULL, send, recv, 0, 0, send_type, recv_type, send_counts,
                                recv_counts, send_displacements, recv_displacements}))
}
