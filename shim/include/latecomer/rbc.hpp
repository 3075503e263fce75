// SPDX-License-Identifier: BSD-3-Clause
// The names of RBC, the library of Axtmann, Wiebigke and Sanders 2018, over latecomer/range.hpp. A program that was
// written for RBC includes this file in place of RBC.hpp. docs/guide/range_communicators.md lists the differences.
//
// Functions return MPI error classes. status.MPI_SOURCE is the rank in the MPI communicator, as in RBC. A non-blocking
// collective with the parameter `tag` is isolated from those with other tags, so members may begin them in any order.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <iostream>  // RBC.hpp includes it, too, and programs rely on that
#include <latecomer/range.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace RBC {

/// A range communicator. A copy is the same communicator.
class Comm {
 public:
  Comm() = default;
  Comm(const latecomer::range::Comm& range, MPI_Comm mpi) : range_(range), mpi_(mpi) {}
  int getSize() const { return range_.size(); }
  int getRank() const { return range_.rank(); }
  int getMpiFirst() const { return range_.get()->first; }
  int getMpiLast() const { return range_.to_mpi(range_.size() - 1); }
  int getStride() const { return range_.get()->stride; }
  int MpiRankToRangeRank(int mpi_rank) const { return range_.from_mpi(mpi_rank); }
  int RangeRankToMpiRank(int range_rank) const { return range_.to_mpi(range_rank); }
  bool includesMpiRank(int mpi_rank) const { return range_.from_mpi(mpi_rank) != MPI_UNDEFINED; }
  bool isEmpty() const { return range_.size() == 0; }
  MPI_Comm get() const { return mpi_; }
  bool useMPICollectives() const { return false; }
  bool splitMPIComm() const { return false; }
  bool useCommCreate() const { return false; }
  const latecomer::range::Comm& range() const { return range_; }
  /// The MPI communicator, and first, last and stride.
  friend std::ostream& operator<<(std::ostream& out, const Comm& c) {
    return out << "(" << c.get() << ", " << c.getMpiFirst() << '/' << c.getMpiLast() << '/' << c.getStride() << ")";
  }

 private:
  latecomer::range::Comm range_;
  MPI_Comm mpi_ = MPI_COMM_NULL;
};

namespace _internal {

/// The operation behind a request.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Returns an MPI error class.
  virtual int test(int* flag, MPI_Status* status) = 0;
};

/// Ranks of MPI in a status.
inline void to_mpi(const Comm& comm, MPI_Status* status) {
  if (status != MPI_STATUS_IGNORE && status->MPI_SOURCE >= 0)
    status->MPI_SOURCE = comm.RangeRankToMpiRank(status->MPI_SOURCE);
}

/// Requests of ranges, with the arrays that they refer to.
class Plain : public Operation {
 public:
  explicit Plain(const Comm& comm) : comm_(comm) {}
  int test(int* flag, MPI_Status* status) override {
    for (; done_ < requests.size(); ++done_) {
      MPI_Status one;
      const int rc = latecomer_range_test(&requests[done_], flag, &one);
      if (rc != MPI_SUCCESS || !*flag) return rc;
      to_mpi(comm_, &one);
      if (status != MPI_STATUS_IGNORE) *status = one;
    }
    *flag = 1;
    return MPI_SUCCESS;
  }
  std::vector<latecomer_range_request> requests;
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> places;

 private:
  Comm comm_;
  std::size_t done_ = 0;
};

}  // namespace _internal

/// A copy is the same operation. Complete if it never began.
class Request {
 public:
  void set(std::shared_ptr<_internal::Operation> operation) { operation_ = std::move(operation); }
  int test(int* flag, MPI_Status* status) {
    *flag = 1;
    const int rc = operation_ ? operation_->test(flag, status) : MPI_SUCCESS;
    if (rc != MPI_SUCCESS || *flag) operation_.reset();
    return rc;
  }

 private:
  std::shared_ptr<_internal::Operation> operation_;
};

/// Collective over `mpi_comm` at the first call, in contrast to RBC's. The other arguments are for compatibility.
inline int Create_Comm_from_MPI(MPI_Comm mpi_comm, Comm* comm, bool = false, bool = false, bool = true) {
  latecomer::range::Comm range;
  const int rc = range.attach(mpi_comm);
  *comm = Comm(range, mpi_comm);
  return rc;
}
inline Comm Create_Comm_from_MPI(MPI_Comm mpi_comm, bool = false, bool = false, bool = true) {
  Comm out;
  Create_Comm_from_MPI(mpi_comm, &out);
  return out;
}
/// Gives an empty communicator to ranks outside.
inline int Comm_create(const Comm& comm, Comm* out, int first, int last, int stride = 1) {
  latecomer::range::Comm part;
  const int rc = comm.range().create(first, last, stride, &part);
  *out = rc == MPI_SUCCESS && part.member() ? Comm(part, comm.get()) : Comm();
  return rc;
}
inline Comm Comm_create(const Comm& comm, int first, int last, int stride = 1) {
  Comm out;
  Comm_create(comm, &out, first, last, stride);
  return out;
}
inline int Comm_create_group(const Comm& comm, Comm* out, int first, int last, int stride = 1) {
  return Comm_create(comm, out, first, last, stride);
}
inline int Split_Comm(const Comm& comm, int left_start, int left_end, int right_start, int right_end, Comm* left,
                      Comm* right) {
  const int rank = comm.getRank();
  int rc = MPI_SUCCESS;
  if (rank >= left_start && rank <= left_end) rc = Comm_create(comm, left, left_start, left_end);
  if (rc == MPI_SUCCESS && rank >= right_start && rank <= right_end)
    rc = Comm_create(comm, right, right_start, right_end);
  return rc;
}
inline int Comm_free(Comm& comm) {
  comm = Comm();
  return MPI_SUCCESS;
}
inline int Comm_rank(const Comm& comm, int* rank) {
  *rank = comm.getRank();
  return MPI_SUCCESS;
}
inline int Comm_size(const Comm& comm, int* size) {
  *size = comm.getSize();
  return MPI_SUCCESS;
}
inline int get_Rank_from_Status(const Comm& comm, MPI_Status status) {
  return comm.MpiRankToRangeRank(status.MPI_SOURCE);
}

inline int Test(Request* request, int* flag, MPI_Status* status) { return request->test(flag, status); }
inline int Test(MPI_Request* request, int* flag, MPI_Status* status) { return MPI_Test(request, flag, status); }
inline int Testall(int count, Request requests[], int* flag, MPI_Status statuses[]) {
  *flag = 1;
  for (int i = 0; i < count; ++i) {
    int one = 0;
    const int rc = requests[i].test(&one, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i);
    if (rc != MPI_SUCCESS) return rc;
    if (!one) *flag = 0;
  }
  return MPI_SUCCESS;
}
inline int Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  return MPI_Testall(count, requests, flag, statuses);
}
inline int Waitall(int count, Request requests[], MPI_Status statuses[]) {
  for (int flag = 0;;) {
    const int rc = Testall(count, requests, &flag, statuses);
    if (rc != MPI_SUCCESS || flag) return rc;
  }
}
inline int Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return MPI_Waitall(count, requests, statuses);
}
inline int Wait(Request* request, MPI_Status* status) {
  return Waitall(1, request, status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status);
}
inline int Wait(MPI_Request* request, MPI_Status* status) { return MPI_Wait(request, status); }

namespace _internal {

using Merge = std::function<void(void*, void*, void*, void*, void*)>;

/// Begins operations of ranges: start(plain, request) for each of them.
template <typename... Start>
int begin(const Comm& comm, Request* request, std::shared_ptr<Plain> plain, Start... start) {
  if (!plain) plain = std::make_shared<Plain>(comm);
  int rc = MPI_SUCCESS;
  const auto one = [&](auto& each) {
    latecomer_range_request made = nullptr;
    if (rc == MPI_SUCCESS) rc = each(&made);
    if (rc == MPI_SUCCESS) plain->requests.push_back(made);
  };
  (one(start), ...);
  request->set(plain);
  return rc;
}
/// A non-blocking operation as a request of MPI.
template <typename Start>
int begin(MPI_Request* request, Start start) {
  latecomer_range_request made = nullptr;
  const int rc = start(&made);
  return rc == MPI_SUCCESS ? latecomer_range_to_mpi_request(&made, request) : rc;
}
/// The communicator of the collectives with that tag.
inline latecomer::range::Comm tagged(const Comm& comm, int tag) { return comm.range().with_context(tag); }

inline std::shared_ptr<Plain> with_blocks(const Comm& comm, const int* counts, const int* places, bool significant) {
  auto plain = std::make_shared<Plain>(comm);
  if (significant) {
    plain->counts.assign(counts, counts + comm.getSize());
    plain->places.assign(places, places + comm.getSize());
  }
  return plain;
}

/// Gathers sorted sequences along a binomial tree, in rank order, and merges them on the way. With `all`, everyone gets
/// the result.
class MergingGather : public Operation {
 public:
  MergingGather(const void* send, int count, MPI_Datatype type, void* recv, int total, int root, bool all, Merge merge,
                const Comm& comm, int tag)
      : comm_(tagged(comm, tag)),
        type_(type),
        result_(static_cast<char*>(recv)),
        total_(total),
        root_(root),
        all_(all),
        merge_(std::move(merge)) {
    MPI_Aint lower = 0, extent = 0;
    MPI_Type_get_extent(type, &lower, &extent);
    bytes_ = static_cast<std::size_t>(extent);
    data_.assign(static_cast<const char*>(send),
                 static_cast<const char*>(send) + static_cast<std::size_t>(count) * bytes_);
  }
  int test(int* flag, MPI_Status*) override {
    *flag = 0;
    const int size = comm_.size(), me = (comm_.rank() - root_ + size) % size;
    // Children, the nearest first.
    for (; step_ < size && me % (2 * step_) == 0; step_ *= 2) {
      if (me + step_ >= size) continue;
      int there = 0;
      latecomer_range_message message = nullptr;
      MPI_Status status;
      int rc = comm_.improbe((me + step_ + root_) % size, 0, &there, &message, &status);
      if (rc != MPI_SUCCESS || !there) return rc;
      int count = 0;
      MPI_Get_count(&status, type_, &count);
      const std::size_t mine = data_.size(), theirs = static_cast<std::size_t>(count) * bytes_;
      data_.resize(mine + theirs);
      rc = latecomer_range_mrecv(data_.data() + mine, count, type_, &message, MPI_STATUS_IGNORE);
      if (rc != MPI_SUCCESS) return rc;
      if (theirs == 0) continue;
      merged_.resize(data_.size());
      char* const middle = data_.data() + mine;
      merge_(data_.data(), middle, middle, middle + theirs, merged_.data());
      data_.swap(merged_);
    }
    if (!begun_) {
      begun_ = true;
      if (me == 0 && !data_.empty()) std::memcpy(result_, data_.data(), data_.size());
      int rc = MPI_SUCCESS;
      if (me != 0) {
        requests_.emplace_back();
        rc = comm_.isend(data_.data(), static_cast<MPI_Count>(data_.size() / bytes_), type_,
                         (me - step_ + root_) % size, 0, &requests_.back());
      }
      if (rc == MPI_SUCCESS && all_) {
        requests_.emplace_back();
        rc = comm_.ibcast(result_, MPI_Count{total_}, type_, root_, &requests_.back());
      }
      if (rc != MPI_SUCCESS) return rc;
    }
    return latecomer_range_testall(static_cast<int>(requests_.size()), requests_.data(), flag, MPI_STATUSES_IGNORE);
  }

 private:
  latecomer::range::Comm comm_;
  MPI_Datatype type_;
  char* result_;
  int total_, root_, step_ = 1;
  bool all_, begun_ = false;
  Merge merge_;
  std::size_t bytes_ = 0;
  std::vector<char> data_, merged_;
  std::vector<latecomer_range_request> requests_;
};

}  // namespace _internal

// The tags are of the program's choice. Each operation has one of its own where the program gives none.
namespace Tag_Const {
enum {
  IBCAST = 1000080,
  IGATHER,
  IGATHERV,
  IGATHERM,
  IALLGATHER,
  IALLGATHERV,
  IALLGATHERM,
  IREDUCE,
  IALLREDUCE,
  ISCAN,
  IEXSCAN,
  ISCANANDBCAST,
  IBARRIER,
  GATHERM,
  ALLGATHERM,
};
}  // namespace Tag_Const

inline int Ibarrier(const Comm& comm, Request* request, int tag = Tag_Const::IBARRIER) {
  return _internal::begin(comm, request, nullptr,
                          [&](latecomer_range_request* r) { return _internal::tagged(comm, tag).ibarrier(r); });
}
inline int Barrier(const Comm& comm) { return comm.range().barrier(); }
inline int Ibcast(void* data, int count, MPI_Datatype type, int root, const Comm& comm, Request* request,
                  int tag = Tag_Const::IBCAST) {
  return _internal::begin(comm, request, nullptr, [&](latecomer_range_request* r) {
    return _internal::tagged(comm, tag).ibcast(data, MPI_Count{count}, type, root, r);
  });
}
inline int Bcast(void* data, int count, MPI_Datatype type, int root, const Comm& comm) {
  return comm.range().bcast(data, MPI_Count{count}, type, root);
}
inline int Ireduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root, const Comm& comm,
                   Request* request, int tag = Tag_Const::IREDUCE) {
  return _internal::begin(comm, request, nullptr, [&](latecomer_range_request* r) {
    return _internal::tagged(comm, tag).ireduce(send, recv, MPI_Count{count}, type, op, root, r);
  });
}
inline int Reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root, const Comm& comm) {
  return comm.range().reduce(send, recv, MPI_Count{count}, type, op, root);
}

#define LATECOMER_RBC_REDUCTION(Name, INAME, function)                                                            \
  inline int I##function(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, const Comm& comm, \
                         Request* request, int tag = Tag_Const::INAME) {                                          \
    return _internal::begin(comm, request, nullptr, [&](latecomer_range_request* r) {                             \
      return _internal::tagged(comm, tag).i##function(send, recv, MPI_Count{count}, type, op, r);                 \
    });                                                                                                           \
  }                                                                                                               \
  inline int Name(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, const Comm& comm) {      \
    return comm.range().function(send, recv, MPI_Count{count}, type, op);                                         \
  }
LATECOMER_RBC_REDUCTION(Allreduce, IALLREDUCE, allreduce)
LATECOMER_RBC_REDUCTION(Scan, ISCAN, scan)
LATECOMER_RBC_REDUCTION(Exscan, IEXSCAN, exscan)
#undef LATECOMER_RBC_REDUCTION

/// The scan and the reduction over all ranks, in the rounds of one of them.
inline int IscanAndBcast(const void* send, void* recv_scan, void* recv_bcast, int count, MPI_Datatype type, MPI_Op op,
                         const Comm& comm, Request* request, int tag = Tag_Const::ISCANANDBCAST) {
  const auto range = _internal::tagged(comm, tag);
  return _internal::begin(
      comm, request, nullptr,
      [&](latecomer_range_request* r) { return range.iscan(send, recv_scan, MPI_Count{count}, type, op, r); },
      [&](latecomer_range_request* r) { return range.iallreduce(send, recv_bcast, MPI_Count{count}, type, op, r); });
}
inline int ScanAndBcast(const void* send, void* recv_scan, void* recv_bcast, int count, MPI_Datatype type, MPI_Op op,
                        const Comm& comm) {
  Request request;
  const int rc = IscanAndBcast(send, recv_scan, recv_bcast, count, type, op, comm, &request);
  return rc == MPI_SUCCESS ? Wait(&request, MPI_STATUS_IGNORE) : rc;
}

inline int Igather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                   MPI_Datatype recv_type, int root, const Comm& comm, Request* request, int tag = Tag_Const::IGATHER) {
  return _internal::begin(comm, request, nullptr, [&](latecomer_range_request* r) {
    return _internal::tagged(comm, tag).igather(send, MPI_Count{send_count}, send_type, recv, MPI_Count{recv_count},
                                                recv_type, root, r);
  });
}
inline int Gather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                  MPI_Datatype recv_type, int root, const Comm& comm) {
  return comm.range().gather(send, MPI_Count{send_count}, send_type, recv, MPI_Count{recv_count}, recv_type, root);
}
inline int Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                      MPI_Datatype recv_type, const Comm& comm, Request* request, int tag = Tag_Const::IALLGATHER) {
  return _internal::begin(comm, request, nullptr, [&](latecomer_range_request* r) {
    return _internal::tagged(comm, tag).iallgather(send, MPI_Count{send_count}, send_type, recv, MPI_Count{recv_count},
                                                   recv_type, r);
  });
}
inline int Allgather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                     MPI_Datatype recv_type, const Comm& comm) {
  return comm.range().allgather(send, MPI_Count{send_count}, send_type, recv, MPI_Count{recv_count}, recv_type);
}
inline int Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                    MPI_Datatype recv_type, const Comm& comm) {
  return comm.range().alltoall(send, MPI_Count{send_count}, send_type, recv, MPI_Count{recv_count}, recv_type);
}
inline int Alltoallv(const void* send, const int* send_counts, const int* send_places, MPI_Datatype send_type,
                     void* recv, const int* recv_counts, const int* recv_places, MPI_Datatype recv_type,
                     const Comm& comm) {
  const int n = comm.getSize();
  const std::vector<MPI_Count> to(send_counts, send_counts + n), from(recv_counts, recv_counts + n);
  const std::vector<MPI_Aint> there(send_places, send_places + n), here(recv_places, recv_places + n);
  return comm.range().alltoallv(send, to.data(), there.data(), send_type, recv, from.data(), here.data(), recv_type);
}
inline int Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv, const int* recv_counts,
                    const int* places, MPI_Datatype recv_type, int root, const Comm& comm, Request* request,
                    int tag = Tag_Const::IGATHERV) {
  auto plain = _internal::with_blocks(comm, recv_counts, places, comm.getRank() == root);
  return _internal::begin(comm, request, plain, [&](latecomer_range_request* r) {
    return _internal::tagged(comm, tag).igatherv(send, MPI_Count{send_count}, send_type, recv, plain->counts.data(),
                                                 plain->places.data(), recv_type, root, r);
  });
}
inline int Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv, const int* recv_counts,
                   const int* places, MPI_Datatype recv_type, int root, const Comm& comm) {
  Request request;
  const int rc = Igatherv(send, send_count, send_type, recv, recv_counts, places, recv_type, root, comm, &request);
  return rc == MPI_SUCCESS ? Wait(&request, MPI_STATUS_IGNORE) : rc;
}
inline int Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv, const int* recv_counts,
                       const int* places, MPI_Datatype recv_type, const Comm& comm, Request* request,
                       int tag = Tag_Const::IALLGATHERV) {
  auto plain = _internal::with_blocks(comm, recv_counts, places, true);
  return _internal::begin(comm, request, plain, [&](latecomer_range_request* r) {
    return _internal::tagged(comm, tag).iallgatherv(send, MPI_Count{send_count}, send_type, recv, plain->counts.data(),
                                                    plain->places.data(), recv_type, r);
  });
}
inline int Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv, const int* recv_counts,
                      const int* places, MPI_Datatype recv_type, const Comm& comm) {
  Request request;
  const int rc = Iallgatherv(send, send_count, send_type, recv, recv_counts, places, recv_type, comm, &request);
  return rc == MPI_SUCCESS ? Wait(&request, MPI_STATUS_IGNORE) : rc;
}

/// Gathers sequences of different lengths, `recv_count` items in all, and merges them with
/// op(begin1, end1, begin2, end2, out).
inline int Igatherm(const void* send, int send_count, MPI_Datatype type, void* recv, int recv_count, int root,
                    _internal::Merge op, const Comm& comm, Request* request, int tag = Tag_Const::IGATHERM) {
  request->set(std::make_shared<_internal::MergingGather>(send, send_count, type, recv, recv_count, root, false,
                                                          std::move(op), comm, tag));
  return MPI_SUCCESS;
}
inline int Gatherm(const void* send, int send_count, MPI_Datatype type, void* recv, int recv_count, int root,
                   _internal::Merge op, const Comm& comm) {
  Request request;
  Igatherm(send, send_count, type, recv, recv_count, root, std::move(op), comm, &request, Tag_Const::GATHERM);
  return Wait(&request, MPI_STATUS_IGNORE);
}
inline int Iallgatherm(const void* send, int send_count, MPI_Datatype type, void* recv, int recv_count,
                       _internal::Merge op, const Comm& comm, Request* request, int tag = Tag_Const::IALLGATHERM) {
  request->set(std::make_shared<_internal::MergingGather>(send, send_count, type, recv, recv_count, 0, true,
                                                          std::move(op), comm, tag));
  return MPI_SUCCESS;
}
inline int Allgatherm(const void* send, int send_count, MPI_Datatype type, void* recv, int recv_count,
                      _internal::Merge op, const Comm& comm) {
  Request request;
  Iallgatherm(send, send_count, type, recv, recv_count, std::move(op), comm, &request, Tag_Const::ALLGATHERM);
  return Wait(&request, MPI_STATUS_IGNORE);
}

inline int Isend(const void* data, int count, MPI_Datatype type, int to, int tag, const Comm& comm, Request* request) {
  return _internal::begin(comm, request, nullptr, [&](latecomer_range_request* r) {
    return comm.range().isend(data, MPI_Count{count}, type, to, tag, r);
  });
}
inline int Isend(const void* data, int count, MPI_Datatype type, int to, int tag, const Comm& comm,
                 MPI_Request* request) {
  return _internal::begin(request, [&](latecomer_range_request* r) {
    return comm.range().isend(data, MPI_Count{count}, type, to, tag, r);
  });
}
inline int Issend(const void* data, int count, MPI_Datatype type, int to, int tag, const Comm& comm, Request* request) {
  return _internal::begin(comm, request, nullptr, [&](latecomer_range_request* r) {
    return comm.range().issend(data, MPI_Count{count}, type, to, tag, r);
  });
}
inline int Issend(const void* data, int count, MPI_Datatype type, int to, int tag, const Comm& comm,
                  MPI_Request* request) {
  return _internal::begin(request, [&](latecomer_range_request* r) {
    return comm.range().issend(data, MPI_Count{count}, type, to, tag, r);
  });
}
inline int Irecv(void* data, int count, MPI_Datatype type, int from, int tag, const Comm& comm, Request* request) {
  return _internal::begin(comm, request, nullptr, [&](latecomer_range_request* r) {
    return comm.range().irecv(data, MPI_Count{count}, type, from, tag, r);
  });
}
/// status.MPI_SOURCE of this request of MPI is the rank in the range.
inline int Irecv(void* data, int count, MPI_Datatype type, int from, int tag, const Comm& comm, MPI_Request* request) {
  return _internal::begin(request, [&](latecomer_range_request* r) {
    return comm.range().irecv(data, MPI_Count{count}, type, from, tag, r);
  });
}
inline int Send(const void* data, int count, MPI_Datatype type, int to, int tag, const Comm& comm) {
  return comm.range().send(data, MPI_Count{count}, type, to, tag);
}
inline int Ssend(const void* data, int count, MPI_Datatype type, int to, int tag, const Comm& comm) {
  return comm.range().ssend(data, MPI_Count{count}, type, to, tag);
}
inline int Recv(void* data, int count, MPI_Datatype type, int from, int tag, const Comm& comm, MPI_Status* status) {
  const int rc = comm.range().recv(data, MPI_Count{count}, type, from, tag, status);
  _internal::to_mpi(comm, status);
  return rc;
}
inline int Isendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag, void* recv,
                     int recv_count, MPI_Datatype recv_type, int from, int recv_tag, const Comm& comm,
                     Request* request) {
  // The receive is last: its status is that of the operation.
  return _internal::begin(
      comm, request, nullptr,
      [&](latecomer_range_request* r) {
        return comm.range().isend(send, MPI_Count{send_count}, send_type, to, send_tag, r);
      },
      [&](latecomer_range_request* r) {
        return comm.range().irecv(recv, MPI_Count{recv_count}, recv_type, from, recv_tag, r);
      });
}
inline int Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag, void* recv,
                    int recv_count, MPI_Datatype recv_type, int from, int recv_tag, const Comm& comm,
                    MPI_Status* status) {
  const int rc = comm.range().sendrecv(send, MPI_Count{send_count}, send_type, to, send_tag, recv,
                                       MPI_Count{recv_count}, recv_type, from, recv_tag, status);
  _internal::to_mpi(comm, status);
  return rc;
}
inline int Iprobe(int from, int tag, const Comm& comm, int* flag, MPI_Status* status) {
  const int rc = comm.range().iprobe(from, tag, flag, status);
  if (*flag) _internal::to_mpi(comm, status);
  return rc;
}
inline int Probe(int from, int tag, const Comm& comm, MPI_Status* status) {
  const int rc = comm.range().probe(from, tag, status);
  _internal::to_mpi(comm, status);
  return rc;
}

// RBC's choices among algorithms: the library makes its own choice.
namespace _internal {
namespace optimized {
#define LATECOMER_RBC_BCAST(Name)                                                         \
  inline int Name(void* data, int count, MPI_Datatype type, int root, const Comm& comm) { \
    return RBC::Bcast(data, count, type, root, comm);                                     \
  }
LATECOMER_RBC_BCAST(Bcast)
LATECOMER_RBC_BCAST(BcastBinomial)
LATECOMER_RBC_BCAST(BcastScatterAllgather)
LATECOMER_RBC_BCAST(BcastTwotree)
#undef LATECOMER_RBC_BCAST
#define LATECOMER_RBC_ALLGATHER(Name)                                                                   \
  inline int Name(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count, \
                  MPI_Datatype recv_type, const Comm& comm) {                                           \
    return RBC::Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);              \
  }
LATECOMER_RBC_ALLGATHER(Allgather)
LATECOMER_RBC_ALLGATHER(AllgatherDissemination)
LATECOMER_RBC_ALLGATHER(AllgatherHypercube)
LATECOMER_RBC_ALLGATHER(AllgatherPipeline)
#undef LATECOMER_RBC_ALLGATHER
#define LATECOMER_RBC_VECTORS(Name, Function)                                                                \
  inline int Name(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, const Comm& comm) { \
    return RBC::Function(send, recv, count, type, op, comm);                                                 \
  }
LATECOMER_RBC_VECTORS(Allreduce, Allreduce)
LATECOMER_RBC_VECTORS(AllreduceHypercube, Allreduce)
LATECOMER_RBC_VECTORS(AllreduceScatterAllgather, Allreduce)
LATECOMER_RBC_VECTORS(AllreduceTwotree, Allreduce)
LATECOMER_RBC_VECTORS(Scan, Scan)
LATECOMER_RBC_VECTORS(ScanTwotree, Scan)
LATECOMER_RBC_VECTORS(Exscan, Exscan)
LATECOMER_RBC_VECTORS(ExscanTwotree, Exscan)
#undef LATECOMER_RBC_VECTORS
/// Each rank chooses `send_count`. The blocks arrive in rank order, without gaps.
inline int AllgathervDissemination(const void* send, int send_count, MPI_Datatype send_type, void* recv, int,
                                   MPI_Datatype recv_type, const Comm& comm) {
  const auto size = static_cast<std::size_t>(comm.getSize());
  std::vector<int> counts(size), places(size);
  const int rc = RBC::Allgather(&send_count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm);
  if (rc != MPI_SUCCESS) return rc;
  for (std::size_t r = 1; r < size; ++r) places[r] = places[r - 1] + counts[r - 1];
  return RBC::Allgatherv(send, send_count, send_type, recv, counts.data(), places.data(), recv_type, comm);
}
inline int ReduceTwotree(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root,
                         const Comm& comm) {
  return RBC::Reduce(send, recv, count, type, op, root, comm);
}
inline int ScanAndBcastTwotree(const void* send, void* recv_scan, void* recv_bcast, int count, MPI_Datatype type,
                               MPI_Op op, const Comm& comm) {
  return RBC::ScanAndBcast(send, recv_scan, recv_bcast, count, type, op, comm);
}
}  // namespace optimized
}  // namespace _internal

}  // namespace RBC
