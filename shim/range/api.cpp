// SPDX-License-Identifier: BSD-3-Clause
// The functions of latecomer/range.h: what may be wrong with arguments, and waiting.
#include <mpi.h>

#include <atomic>
#include <new>
#include <thread>
#include <utility>

#include "shim/range/operation.hpp"

namespace latecomer::range {
namespace {

using Kind = core::Collective;

/// A class for the caller, whatever code MPI gave.
int class_of(int rc) {
  int out = rc;
  if (rc != MPI_SUCCESS && PMPI_Error_class(rc, &out) != MPI_SUCCESS) return MPI_ERR_UNKNOWN;
  return out;
}

/// Runs `body` with the library to itself. Nothing is thrown into programs.
template <typename Body>
int inside(Body body) {
  try {
    const std::lock_guard guard(library().lock);
    return class_of(body());
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

int wrong_range(const latecomer_range* r) {
  if (!r || !r->hub || !library().knows(&hub_of(*r))) return MPI_ERR_COMM;
  return r->rank == MPI_UNDEFINED ? MPI_ERR_COMM : MPI_SUCCESS;
}
int wrong_data(MPI_Count count, MPI_Datatype type) {
  if (count < 0) return MPI_ERR_COUNT;
  return type == MPI_DATATYPE_NULL ? MPI_ERR_TYPE : MPI_SUCCESS;
}
int wrong_peer(const latecomer_range& r, int peer, int tag, bool receives) {
  if (peer == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!(receives && peer == MPI_ANY_SOURCE) && (peer < 0 || peer >= r.size)) return MPI_ERR_RANK;
  return tag < 0 && !(receives && tag == MPI_ANY_TAG) ? MPI_ERR_TAG : MPI_SUCCESS;
}

Rank in_hub(const latecomer_range& r, int peer) { return peer == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : to_mpi(r, peer); }
Envelope key_of(const latecomer_range& r, int tag) { return {identity_of(r), tag, 0, 0, 0}; }

/// Begins a message: `start` gets the hub, the peer in it, and what is matched.
template <typename Start>
int post(MPI_Count count, MPI_Datatype type, int peer, int tag, bool receives, const latecomer_range* range,
         latecomer_range_request* request, Start start) {
  return inside([&] {
    if (!request) return MPI_ERR_REQUEST;
    *request = nullptr;
    int rc = wrong_range(range);
    if (rc == MPI_SUCCESS) rc = wrong_data(count, type);
    if (rc == MPI_SUCCESS) rc = wrong_peer(*range, peer, tag, receives);
    if (rc != MPI_SUCCESS) return rc;
    Hub& hub = hub_of(*range);
    Message* const m = peer == MPI_PROC_NULL ? nullptr : start(hub, in_hub(*range, peer), key_of(*range, tag), &rc);
    if (rc == MPI_SUCCESS) *request = new PointToPoint(&hub, m);
    return rc;
  });
}

int post_send(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, const latecomer_range* range,
              latecomer_range_request* request, bool synchronous) {
  return post(count, type, to, tag, false, range, request, [&](Hub& hub, Rank peer, const Envelope& key, int* rc) {
    return hub.send(data, count, type, peer, key, synchronous, rc);
  });
}

/// The blocking form of what `begin` begins.
template <typename Begin>
int blocking(MPI_Status* status, Begin begin) {
  latecomer_range_request request = nullptr;
  const int rc = begin(&request);
  return rc != MPI_SUCCESS ? rc : latecomer_range_wait(&request, status);
}

int check_request(latecomer_range_request* request, int count) {
  return count < 0 ? MPI_ERR_COUNT : count > 0 && !request ? MPI_ERR_REQUEST : MPI_SUCCESS;
}

MPI_Status* status_at(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

/// Takes what a complete operation leaves: its error, its status.
int collect(latecomer_range_request* request, MPI_Status* status) {
  const std::unique_ptr<Operation> operation(std::exchange(*request, nullptr));
  operation->fill(status);
  return operation->rc;
}

/// All of them, which are complete. Returns the first error.
int collect_all(int count, latecomer_range_request requests[], MPI_Status* statuses) {
  int first = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    if (!requests[i]) empty_status(status_at(statuses, i));
    else if (const int one = collect(&requests[i], status_at(statuses, i)); first == MPI_SUCCESS) first = one;
  }
  return first;
}

bool complete(latecomer_range_request request) { return !request || request->look(); }

/// Drives everything until `reached`, which is asked with the library locked.
template <typename Reached>
int drive_until(Reached reached) {
  shim::Patience patience(true);
  for (;;) {
    bool done = false;
    const int rc = inside([&] {
      if ((done = reached())) return MPI_SUCCESS;
      const int moved = library().progress();
      done = reached();
      return moved;
    });
    if (rc != MPI_SUCCESS || done) return rc;
    patience.wait();
  }
}

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

/// A real communicator being made.
class Creation final : public Operation {
 public:
  Creation(const latecomer_range& range, int tag, MPI_Comm* out) : out_(out) {
    Hub& hub = hub_of(range);
    if (range.size == 1) {
      rc = PMPI_Comm_dup(MPI_COMM_SELF, out);
      complete = true;
    } else if (range.size == hub.size() && range.stride == 1) {
      rc = PMPI_Comm_idup(hub.comm(), out, &request_);
      complete = rc != MPI_SUCCESS;
    } else {
      int level = MPI_THREAD_SINGLE;
      PMPI_Query_thread(&level);
      if (level < MPI_THREAD_MULTIPLE) {
        rc = MPI_ERR_UNSUPPORTED_OPERATION, complete = true;
        return;
      }
      MPI_Group all = MPI_GROUP_NULL;
      rc = PMPI_Comm_group(hub.comm(), &all);
      int triple[1][3] = {{range.first, to_mpi(range, range.size - 1), range.stride}};
      if (rc == MPI_SUCCESS) rc = PMPI_Group_range_incl(all, 1, triple, &group_);
      if (all != MPI_GROUP_NULL) PMPI_Group_free(&all);
      if (rc != MPI_SUCCESS) {
        complete = true;
        return;
      }
      thread_ = std::thread([this, comm = hub.comm(), tag] {
        made_rc_ = PMPI_Comm_create_group(comm, group_, tag, &made_);
        made_it_.store(true, std::memory_order_release);
      });
    }
    if (!complete) library().drive(this);
  }
  ~Creation() override {
    library().forget(this);
    if (thread_.joinable()) thread_.join();
    if (group_ != MPI_GROUP_NULL) PMPI_Group_free(&group_);
  }
  void step() override {
    if (complete) return;
    int done = 0;
    if (request_ != MPI_REQUEST_NULL) {
      rc = PMPI_Test(&request_, &done, MPI_STATUS_IGNORE);
      complete = done || rc != MPI_SUCCESS;
    } else if (made_it_.load(std::memory_order_acquire)) {
      thread_.join();
      rc = made_rc_, *out_ = made_, complete = true;
    }
    // Errors of what the program does with it are the program's, not ours to return.
    if (complete && rc == MPI_SUCCESS) rc = PMPI_Comm_set_errhandler(*out_, MPI_ERRORS_ARE_FATAL);
  }

 private:
  MPI_Comm* out_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  MPI_Group group_ = MPI_GROUP_NULL;
  MPI_Comm made_ = MPI_COMM_NULL;
  int made_rc_ = MPI_SUCCESS;
  std::atomic<bool> made_it_{false};
  std::thread thread_;
};

/// A generalised request of MPI's own.
struct Exported {
  Operation* operation;
  MPI_Request handle;
  bool told;
  void tell() {
    if (!told && operation->complete) told = true, PMPI_Grequest_complete(handle);
  }
};

extern "C" {
int latecomer_range_query(void* state, MPI_Status* status) {
  auto& e = *static_cast<Exported*>(state);
  e.operation->fill(status);
  return e.operation->rc;
}
int latecomer_range_free(void* state) {
  auto* const e = static_cast<Exported*>(state);
  const std::lock_guard guard(library().lock);
  delete e->operation;
  delete e;
  return MPI_SUCCESS;
}
int latecomer_range_cancel(void*, int) { return MPI_SUCCESS; }  // nothing here can be cancelled
int latecomer_range_poll(void* state, MPI_Status*) {
  auto& e = *static_cast<Exported*>(state);
  // Another thread that has the library moves this operation too.
  const std::unique_lock guard(library().lock, std::try_to_lock);
  if (!guard) return MPI_SUCCESS;
  const int rc = library().progress();
  e.operation->look();
  e.tell();
  return rc;
}
/// MPI_Waitall calls this for one after the other: all of the library has to move.
int latecomer_range_wait_all(int count, void** states, double, MPI_Status*) {
  auto** const all = reinterpret_cast<Exported**>(states);
  return drive_until([&] {
    bool done = true;
    for (int i = 0; i < count; ++i) {
      all[i]->operation->look();
      all[i]->tell();
      done = done && all[i]->told;
    }
    return done;
  });
}
}

}  // namespace
}  // namespace latecomer::range

using namespace latecomer::range;

extern "C" {

int latecomer_range_attach(MPI_Comm comm, latecomer_range* range) {
  return inside([&] {
    if (!range) return MPI_ERR_ARG;
    *range = {};
    range->rank = MPI_UNDEFINED;
    if (comm == MPI_COMM_NULL) return MPI_ERR_COMM;
    int between = 0;
    PMPI_Comm_test_inter(comm, &between);
    if (between) return MPI_ERR_COMM;
    Hub* hub = nullptr;
    const int rc = library().attach(comm, &hub);
    if (rc == MPI_SUCCESS) *range = {reinterpret_cast<latecomer_range_hub*>(hub), 0, hub->size(), 1, 0, 0, hub->rank()};
    return rc;
  });
}

int latecomer_range_isend(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag,
                          const latecomer_range* range, latecomer_range_request* request) {
  return post_send(data, count, type, to, tag, range, request, false);
}
int latecomer_range_issend(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag,
                           const latecomer_range* range, latecomer_range_request* request) {
  return post_send(data, count, type, to, tag, range, request, true);
}
int latecomer_range_irecv(void* data, MPI_Count count, MPI_Datatype type, int from, int tag,
                          const latecomer_range* range, latecomer_range_request* request) {
  return post(count, type, from, tag, true, range, request, [&](Hub& hub, Rank peer, const Envelope& key, int*) {
    return hub.receive(data, count, type, peer, key);
  });
}

int latecomer_range_send(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag,
                         const latecomer_range* range) {
  return blocking(MPI_STATUS_IGNORE, [&](latecomer_range_request* request) {
    return latecomer_range_isend(data, count, type, to, tag, range, request);
  });
}
int latecomer_range_ssend(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag,
                          const latecomer_range* range) {
  return blocking(MPI_STATUS_IGNORE, [&](latecomer_range_request* request) {
    return latecomer_range_issend(data, count, type, to, tag, range, request);
  });
}
int latecomer_range_recv(void* data, MPI_Count count, MPI_Datatype type, int from, int tag,
                         const latecomer_range* range, MPI_Status* status) {
  return blocking(status, [&](latecomer_range_request* request) {
    return latecomer_range_irecv(data, count, type, from, tag, range, request);
  });
}

int latecomer_range_sendrecv(const void* send, MPI_Count send_count, MPI_Datatype send_type, int to, int send_tag,
                             void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int from, int recv_tag,
                             const latecomer_range* range, MPI_Status* status) {
  latecomer_range_request requests[2] = {};
  int rc = latecomer_range_irecv(recv, recv_count, recv_type, from, recv_tag, range, &requests[0]);
  if (rc != MPI_SUCCESS) return rc;
  rc = latecomer_range_isend(send, send_count, send_type, to, send_tag, range, &requests[1]);
  if (rc != MPI_SUCCESS) {  // the receive never was
    inside([&] {
      delete std::exchange(requests[0], nullptr);
      return MPI_SUCCESS;
    });
    return rc;
  }
  const int received = latecomer_range_wait(&requests[0], status);
  const int sent = latecomer_range_wait(&requests[1], MPI_STATUS_IGNORE);
  return sent != MPI_SUCCESS ? sent : received;
}

int latecomer_range_iprobe(int from, int tag, const latecomer_range* range, int* flag, MPI_Status* status) {
  return inside([&] {
    int rc = wrong_range(range);
    if (rc == MPI_SUCCESS) rc = wrong_peer(*range, from, tag, true);
    if (rc == MPI_SUCCESS) rc = library().progress();
    if (rc != MPI_SUCCESS) return rc;
    const Arrival* const a =
        from == MPI_PROC_NULL ? nullptr : hub_of(*range).find(in_hub(*range, from), key_of(*range, tag));
    *flag = a || from == MPI_PROC_NULL;
    if (a) fill_received(status, a->envelope, a->source);
    else if (*flag) fill_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    return MPI_SUCCESS;
  });
}

int latecomer_range_probe(int from, int tag, const latecomer_range* range, MPI_Status* status) {
  latecomer::shim::Patience patience(true);
  for (;;) {
    int flag = 0;
    const int rc = latecomer_range_iprobe(from, tag, range, &flag, status);
    if (rc != MPI_SUCCESS || flag) return rc;
    patience.wait();
  }
}

/// What improbe took, and of whom it came.
struct latecomer_range_envelope {
  Hub* hub;
  std::unique_ptr<Arrival> arrival;  // nullptr: from MPI_PROC_NULL
};

int latecomer_range_improbe(int from, int tag, const latecomer_range* range, int* flag,
                            latecomer_range_message* message, MPI_Status* status) {
  return inside([&] {
    int rc = MPI_SUCCESS;
    *message = nullptr;
    rc = latecomer_range_iprobe(from, tag, range, flag, status);
    if (rc != MPI_SUCCESS || !*flag) return rc;
    Hub& hub = hub_of(*range);
    *message = new latecomer_range_envelope{
        &hub, from == MPI_PROC_NULL ? nullptr : hub.take(in_hub(*range, from), key_of(*range, tag))};
    return MPI_SUCCESS;
  });
}

int latecomer_range_imrecv(void* data, MPI_Count count, MPI_Datatype type, latecomer_range_message* message,
                           latecomer_range_request* request) {
  return inside([&] {
    if (!request || !message || !*message) return MPI_ERR_REQUEST;
    *request = nullptr;
    if (const int rc = wrong_data(count, type); rc != MPI_SUCCESS) return rc;
    const std::unique_ptr<latecomer_range_envelope> taken(std::exchange(*message, nullptr));
    if (!library().knows(taken->hub)) return MPI_ERR_COMM;
    *request = new PointToPoint(
        taken->hub, taken->arrival ? taken->hub->receive(data, count, type, std::move(taken->arrival)) : nullptr);
    return MPI_SUCCESS;
  });
}

int latecomer_range_mrecv(void* data, MPI_Count count, MPI_Datatype type, latecomer_range_message* message,
                          MPI_Status* status) {
  return blocking(status, [&](latecomer_range_request* request) {
    return latecomer_range_imrecv(data, count, type, message, request);
  });
}

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

int latecomer_range_test(latecomer_range_request* request, int* flag, MPI_Status* status) {
  return latecomer_range_testall(1, request, flag, status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status);
}

int latecomer_range_testall(int count, latecomer_range_request requests[], int* flag, MPI_Status statuses[]) {
  return inside([&] {
    int rc = check_request(requests, count);
    if (rc != MPI_SUCCESS) return rc;
    rc = library().progress();
    if (rc != MPI_SUCCESS) return rc;
    *flag = true;
    for (int i = 0; i < count; ++i)
      if (!complete(requests[i])) *flag = false;
    return *flag ? collect_all(count, requests, statuses) : MPI_SUCCESS;
  });
}

int latecomer_range_wait(latecomer_range_request* request, MPI_Status* status) {
  return latecomer_range_waitall(1, request, status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status);
}

int latecomer_range_waitall(int count, latecomer_range_request requests[], MPI_Status statuses[]) {
  int rc = check_request(requests, count);
  if (rc != MPI_SUCCESS) return rc;
  rc = drive_until([&] {
    for (int i = 0; i < count; ++i)
      if (!complete(requests[i])) return false;
    return true;
  });
  if (rc != MPI_SUCCESS) return rc;
  return inside([&] { return collect_all(count, requests, statuses); });
}

int latecomer_range_waitsome(int count, latecomer_range_request requests[], int* done, int indices[],
                             MPI_Status statuses[]) {
  int rc = check_request(requests, count);
  if (rc != MPI_SUCCESS) return rc;
  bool any = false, ready = false;
  rc = drive_until([&] {
    for (int i = 0; i < count; ++i)
      if (requests[i]) any = true, ready = complete(requests[i]) || ready;
    return ready || !any;
  });
  *done = any ? 0 : MPI_UNDEFINED;
  if (rc != MPI_SUCCESS || !any) return rc;
  return inside([&] {
    int first = MPI_SUCCESS;
    for (int i = 0; i < count; ++i) {
      if (!requests[i] || !requests[i]->complete) continue;
      if (const int one = collect(&requests[i], status_at(statuses, *done)); first == MPI_SUCCESS) first = one;
      indices[(*done)++] = i;
    }
    return first;
  });
}

int latecomer_range_waitany(int count, latecomer_range_request requests[], int* index, MPI_Status* status) {
  int rc = check_request(requests, count);
  if (rc != MPI_SUCCESS) return rc;
  int found = -1;
  bool any = false;
  rc = drive_until([&] {
    for (int i = 0; i < count && found < 0; ++i)
      if (requests[i]) {
        any = true;
        if (complete(requests[i])) found = i;
      }
    return found >= 0 || !any;
  });
  *index = found < 0 ? MPI_UNDEFINED : found;
  if (rc != MPI_SUCCESS) return rc;
  if (found < 0) return empty_status(status), MPI_SUCCESS;
  return inside([&] { return collect(&requests[found], status); });
}

int latecomer_range_to_mpi_request(latecomer_range_request* request, MPI_Request* mpi_request) {
  return inside([&] {
    if (!request || !mpi_request) return MPI_ERR_REQUEST;
    *mpi_request = MPI_REQUEST_NULL;
    if (!*request) return MPI_SUCCESS;
    auto exported = std::make_unique<Exported>(Exported{*request, MPI_REQUEST_NULL, false});
    const int rc = PMPIX_Grequest_start(latecomer_range_query, latecomer_range_free, latecomer_range_cancel,
                                        latecomer_range_poll, latecomer_range_wait_all, exported.get(), mpi_request);
    if (rc != MPI_SUCCESS) return rc;
    exported->handle = *mpi_request;
    exported->tell();
    exported.release();
    *request = nullptr;
    return MPI_SUCCESS;
  });
}

int latecomer_range_icomm_create(const latecomer_range* range, int tag, MPI_Comm* comm,
                                 latecomer_range_request* request) {
  return inside([&] {
    if (!request || !comm) return MPI_ERR_ARG;
    *request = nullptr, *comm = MPI_COMM_NULL;
    if (const int rc = wrong_range(range); rc != MPI_SUCCESS) return rc;
    if (tag < 0) return MPI_ERR_TAG;
    auto creation = std::make_unique<Creation>(*range, tag, comm);
    if (creation->complete && creation->rc != MPI_SUCCESS) return creation->rc;
    *request = creation.release();
    return MPI_SUCCESS;
  });
}
}
