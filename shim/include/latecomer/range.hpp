// SPDX-License-Identifier: BSD-3-Clause
// Range communicators for C++: the functions of range.h as members. Errors are return values here, too.
//   latecomer::range::Comm world;
//   if (world.attach(MPI_COMM_WORLD) != MPI_SUCCESS) ...
//   const auto half = world.part(0, world.size() / 2 - 1);   // local, no communication
//   half.bcast(&x, 1, MPI_INT, 0);
#pragma once

#include <latecomer/range.h>

namespace latecomer::range {

using Request = latecomer_range_request;

class Comm {
 public:
  Comm() = default;
  explicit Comm(const latecomer_range& range) : range_(range) {}
  /// All ranks of an MPI communicator. The first call for a communicator is collective over it. Returns an MPI error
  /// class.
  int attach(MPI_Comm comm) { return latecomer_range_attach(comm, &range_); }

  /// Ranks first, first + stride, ..., up to last; an empty Comm if the arguments are wrong (create() returns the
  /// error).
  Comm part(int first, int last, int stride = 1) const {
    Comm out;
    create(first, last, stride, &out);
    return out;
  }
  int create(int first, int last, int stride, Comm* out) const {
    return latecomer_range_create(&range_, first, last, stride, &out->range_);
  }
  Comm with_context(int context) const {
    Comm out;
    latecomer_range_with_context(&range_, context, &out.range_);
    return out;
  }
  int rank() const { return range_.rank; }
  int size() const { return range_.size; }
  bool member() const { return range_.rank != MPI_UNDEFINED; }
  int to_mpi(int r) const { return latecomer_range_to_mpi(&range_, r); }
  int from_mpi(int mpi_rank) const { return latecomer_range_from_mpi(&range_, mpi_rank); }
  const latecomer_range* get() const { return &range_; }

  // All other functions: the C function of the same name without the range argument. latecomer_range_ibcast(data, ...,
  // &range, &request) is range.ibcast(data, ..., &request), latecomer_range_probe(from, tag, &range, &status) is
  // range.probe(from, tag, &status).
#define LATECOMER_RANGE_PLAIN(name)               \
  template <typename... A>                        \
  int name(A... a) const {                        \
    return latecomer_range_##name(a..., &range_); \
  }
#define LATECOMER_RANGE_LAST(name)                                                            \
  template <typename... A>                                                                    \
  int name(A... a) const {                                                                    \
    return insert([](auto... all) { return latecomer_range_##name(all...); }, &range_, a...); \
  }
  // clang-format indents every line of rows further than the line before.
  // clang-format off
  LATECOMER_RANGE_PLAIN(send) LATECOMER_RANGE_PLAIN(ssend) LATECOMER_RANGE_LAST(isend) LATECOMER_RANGE_LAST(issend)
  LATECOMER_RANGE_LAST(irecv) LATECOMER_RANGE_LAST(recv) LATECOMER_RANGE_LAST(sendrecv) LATECOMER_RANGE_LAST(probe)
  LATECOMER_RANGE_PLAIN(barrier) LATECOMER_RANGE_PLAIN(bcast) LATECOMER_RANGE_PLAIN(reduce)
  LATECOMER_RANGE_PLAIN(allreduce) LATECOMER_RANGE_PLAIN(scan) LATECOMER_RANGE_PLAIN(exscan)
  LATECOMER_RANGE_PLAIN(reduce_scatter_block) LATECOMER_RANGE_PLAIN(gather) LATECOMER_RANGE_PLAIN(scatter)
  LATECOMER_RANGE_PLAIN(allgather) LATECOMER_RANGE_PLAIN(alltoall) LATECOMER_RANGE_PLAIN(gatherv)
  LATECOMER_RANGE_PLAIN(scatterv) LATECOMER_RANGE_PLAIN(allgatherv) LATECOMER_RANGE_PLAIN(alltoallv)
  LATECOMER_RANGE_LAST(ibarrier) LATECOMER_RANGE_LAST(ibcast) LATECOMER_RANGE_LAST(ireduce)
  LATECOMER_RANGE_LAST(iallreduce) LATECOMER_RANGE_LAST(iscan) LATECOMER_RANGE_LAST(iexscan)
  LATECOMER_RANGE_LAST(ireduce_scatter_block) LATECOMER_RANGE_LAST(igather) LATECOMER_RANGE_LAST(iscatter)
  LATECOMER_RANGE_LAST(iallgather) LATECOMER_RANGE_LAST(ialltoall) LATECOMER_RANGE_LAST(igatherv)
  LATECOMER_RANGE_LAST(iscatterv) LATECOMER_RANGE_LAST(iallgatherv) LATECOMER_RANGE_LAST(ialltoallv)
#undef LATECOMER_RANGE_PLAIN
#undef LATECOMER_RANGE_LAST
  int iprobe(int from, int tag, int* flag, MPI_Status* status) const {
    return latecomer_range_iprobe(from, tag, &range_, flag, status);
  }
  // clang-format on
  int improbe(int from, int tag, int* flag, latecomer_range_message* message, MPI_Status* status) const {
    return latecomer_range_improbe(from, tag, &range_, flag, message, status);
  }
  int icomm_create(int tag, MPI_Comm* comm, Request* request) const {
    return latecomer_range_icomm_create(&range_, tag, comm, request);
  }

 private:
  // Inserts the range before the last argument by rotating the arguments.
  template <typename F, typename Last>
  static int insert(F f, const latecomer_range* range, Last last) {
    return f(range, last);
  }
  template <typename F, typename First, typename Second, typename... Rest>
  static int insert(F f, const latecomer_range* range, First first, Second second, Rest... rest) {
    return insert([&](auto... all) { return f(first, all...); }, range, second, rest...);
  }
  latecomer_range range_{nullptr, 0, 0, 1, 0, 0, MPI_UNDEFINED};
};

}  // namespace latecomer::range
