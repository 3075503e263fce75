// SPDX-License-Identifier: BSD-3-Clause
// The requests of latecomer/range.h: tests, waits, and generalized requests of MPI.
#include <mpi.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "shim/mpi/progress.hpp"
#include "shim/range/calls.hpp"

namespace latecomer::range {
namespace {

int check_request(latecomer_range_request* request, int count) {
  return count < 0 ? MPI_ERR_COUNT : count > 0 && !request ? MPI_ERR_REQUEST : MPI_SUCCESS;
}

MPI_Status* status_at(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

/// Ends a complete operation. Returns its error and fills its status.
int collect(latecomer_range_request* request, MPI_Status* status) {
  const std::unique_ptr<Operation> operation(std::exchange(*request, nullptr));
  operation->fill(status);
  return operation->rc;
}

/// Ends all operations, which are complete. Returns the first error.
int collect_all(int count, latecomer_range_request requests[], MPI_Status* statuses) {
  int first = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    if (!requests[i]) empty_status(status_at(statuses, i));
    else if (const int one = collect(&requests[i], status_at(statuses, i)); first == MPI_SUCCESS) first = one;
  }
  return first;
}

bool complete(latecomer_range_request request) { return !request || request->look(); }

/// A generalized request of MPI that stands for an operation.
struct Exported {
  Operation* operation;
  MPI_Request handle = MPI_REQUEST_NULL;
  bool told = false;
  int rc = MPI_SUCCESS;  // of the progress that the operation needs
  /// Tells MPI if the operation is complete. MPI may free this object here.
  void tell() {
    if (!told && operation->complete) {
      told = true;
      PMPI_Grequest_complete(handle);
    }
  }
};

extern "C" {
int latecomer_range_query(void* state, MPI_Status* status) {
  auto& e = *static_cast<Exported*>(state);
  e.operation->fill(status);
  return e.rc != MPI_SUCCESS ? e.rc : e.operation->rc;
}
int latecomer_range_free(void* state) {
  auto* const e = static_cast<Exported*>(state);
  library().discard_operation(e->operation);
  delete e;
  return MPI_SUCCESS;
}
int latecomer_range_cancel(void*, int) { return MPI_SUCCESS; }  // nothing here can be cancelled
}

#ifdef OPEN_MPI

/// Requests that MPI does not know to be complete.
std::vector<Exported*>& unfinished = *new std::vector<Exported*>;  // must outlive exit handlers

/// Open MPI does not ask a generalized request for its state. While there are any, its progress moves all operations.
int move_all() {
  int told = 0;
  // Another thread that has the library moves the operations too.
  const std::unique_lock guard(library().lock, std::try_to_lock);
  if (!guard || !library().attached()) return 0;
  const int rc = guarded([] { return library().progress(); });
  for (std::size_t i = 0; i < unfinished.size();) {
    Exported* const e = unfinished[i];
    if (rc != MPI_SUCCESS) {  // it can never end
      e->rc = rc;
      e->operation->complete = true;
    }
    if (!e->operation->complete && !e->operation->look()) {
      ++i;
      continue;
    }
    unfinished[i] = unfinished.back();
    unfinished.pop_back();
    e->tell();
    ++told;
  }
  if (unfinished.empty()) shim::stop_polling(move_all);
  return told;
}

int start_request(Exported& e) {
  unfinished.reserve(unfinished.size() + 1);
  if (unfinished.empty() && !shim::start_polling(move_all)) return MPI_ERR_UNSUPPORTED_OPERATION;
  const int rc =
      PMPI_Grequest_start(latecomer_range_query, latecomer_range_free, latecomer_range_cancel, &e, &e.handle);
  if (rc == MPI_SUCCESS) unfinished.push_back(&e);
  return rc;
}

#else

extern "C" {
int latecomer_range_poll(void* state, MPI_Status*) {
  auto& e = *static_cast<Exported*>(state);
  // Another thread that has the library moves this operation too.
  const std::unique_lock guard(library().lock, std::try_to_lock);
  if (!guard) return MPI_SUCCESS;
  const int rc = guarded([] { return library().progress(); });
  e.operation->look();
  e.tell();
  return rc;
}
/// MPI_Waitall calls this function for one request after the other, so the function advances all operations.
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

int start_request(Exported& e) {
  const int rc = PMPIX_Grequest_start(latecomer_range_query, latecomer_range_free, latecomer_range_cancel,
                                      latecomer_range_poll, latecomer_range_wait_all, &e, &e.handle);
  if (rc == MPI_SUCCESS) e.tell();
  return rc;
}

#endif

}  // namespace
}  // namespace latecomer::range

using namespace latecomer::range;

extern "C" {

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
      if (requests[i]) {
        any = true;
        ready = complete(requests[i]) || ready;
      }
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
  if (found < 0) {
    empty_status(status);
    return MPI_SUCCESS;
  }
  return inside([&] { return collect(&requests[found], status); });
}

int latecomer_range_to_mpi_request(latecomer_range_request* request, MPI_Request* mpi_request) {
  return inside([&] {
    if (!request || !mpi_request) return MPI_ERR_REQUEST;
    *mpi_request = MPI_REQUEST_NULL;
    if (!*request) return MPI_SUCCESS;
    auto exported = std::make_unique<Exported>(Exported{*request});
    const int rc = start_request(*exported);
    if (rc == MPI_SUCCESS) {
      *mpi_request = exported.release()->handle;
      *request = nullptr;
    }
    return rc;
  });
}
}
