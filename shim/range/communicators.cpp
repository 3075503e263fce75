// SPDX-License-Identifier: BSD-3-Clause
// MPI communicators and ranges: attaches a communicator, and creates a communicator from a range.
#include <mpi.h>

#include <atomic>
#include <memory>
#include <thread>

#include "shim/range/calls.hpp"

namespace latecomer::range {
namespace {

/// The creation of an MPI communicator.
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
        rc = MPI_ERR_UNSUPPORTED_OPERATION;
        complete = true;
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
      thread_ = std::thread([this, comm = hub.comm(), tag = hub.creation_tag(tag)] {
        made_rc_ = PMPI_Comm_create_group(comm, group_, tag, &made_);
        made_it_.store(true, std::memory_order_release);
      });
    }
    if (!complete) library().drive_operation(this);
  }
  ~Creation() override {
    library().forget_operation(this);
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
      rc = made_rc_;
      *out_ = made_;
      complete = true;
    }
    // Later errors on this communicator are the program's own.
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
    const int rc = library().attach_hub(comm, &hub);
    if (rc == MPI_SUCCESS) *range = {reinterpret_cast<latecomer_range_hub*>(hub), 0, hub->size(), 1, 0, 0, hub->rank()};
    return rc;
  });
}

int latecomer_range_icomm_create(const latecomer_range* range, int tag, MPI_Comm* comm,
                                 latecomer_range_request* request) {
  return inside([&] {
    if (!request || !comm) return MPI_ERR_ARG;
    *request = nullptr;
    *comm = MPI_COMM_NULL;
    if (const int rc = wrong_range(range); rc != MPI_SUCCESS) return rc;
    if (tag < 0 || hub_of(*range).creation_tag(tag) < 0) return MPI_ERR_TAG;
    auto creation = std::make_unique<Creation>(*range, tag, comm);
    if (creation->complete && creation->rc != MPI_SUCCESS) return creation->rc;
    *request = creation.release();
    return MPI_SUCCESS;
  });
}
}
