// SPDX-License-Identifier: BSD-3-Clause
// The messages of latecomer/range.h: sends, receives and probes.
#include <mpi.h>

#include <memory>
#include <utility>

#include "shim/range/calls.hpp"

namespace latecomer::range {
namespace {

/// Begins a message. `start` gets the hub, the peer in it, and the envelope to match.
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
    RangeMessage* const m =
        peer == MPI_PROC_NULL ? nullptr : start(hub, in_hub(*range, peer), key_of(*range, tag), &rc);
    if (rc == MPI_SUCCESS) *request = new PointToPoint(&hub, m);
    return rc;
  });
}

int post_send(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, const latecomer_range* range,
              latecomer_range_request* request, bool synchronous) {
  return post(count, type, to, tag, false, range, request, [&](Hub& hub, Rank peer, const Envelope& key, int* rc) {
    return hub.send_message(data, count, type, peer, key, synchronous, rc);
  });
}

/// The blocking form of the operation that `begin` begins.
template <typename Begin>
int blocking(MPI_Status* status, Begin begin) {
  latecomer_range_request request = nullptr;
  const int rc = begin(&request);
  return rc != MPI_SUCCESS ? rc : latecomer_range_wait(&request, status);
}

}  // namespace
}  // namespace latecomer::range

using namespace latecomer::range;

extern "C" {

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
    return hub.receive_message(data, count, type, peer, key);
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
        from == MPI_PROC_NULL ? nullptr : hub_of(*range).find_arrival(in_hub(*range, from), key_of(*range, tag));
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

/// The message that improbe took, and its hub.
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
        &hub, from == MPI_PROC_NULL ? nullptr : hub.take_arrival(in_hub(*range, from), key_of(*range, tag))};
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
    if (!library().knows_hub(taken->hub)) return MPI_ERR_COMM;
    *request = new PointToPoint(
        taken->hub,
        taken->arrival ? taken->hub->receive_message(data, count, type, std::move(taken->arrival)) : nullptr);
    return MPI_SUCCESS;
  });
}

int latecomer_range_mrecv(void* data, MPI_Count count, MPI_Datatype type, latecomer_range_message* message,
                          MPI_Status* status) {
  return blocking(status, [&](latecomer_range_request* request) {
    return latecomer_range_imrecv(data, count, type, message, request);
  });
}
}
