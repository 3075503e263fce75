// SPDX-License-Identifier: BSD-3-Clause
// The messages that carry notices.
#include "shim/engine/notices.hpp"

#include "shim/state/world.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {

void Notices::send_notice(const Notice& notice, Rank to) {
  const std::lock_guard lock(mutex_);
  Outgoing* free = nullptr;
  for (Outgoing& o : outgoing_) {
    int done = o.request == MPI_REQUEST_NULL;
    if (!done) PMPI_Test(&o.request, &done, MPI_STATUS_IGNORE);
    if (done) {
      free = &o;
      break;
    }
  }
  if (!free && outgoing_.size() < kOutgoing) free = &outgoing_.emplace_back();
  if (!free) return;
  free->notice = notice;
  if (PMPI_Isend(&free->notice, sizeof(Notice), MPI_BYTE, to, kNoticeChannel, comm_, &free->request) != MPI_SUCCESS)
    free->request = MPI_REQUEST_NULL;
  else ++sent_[static_cast<std::size_t>(to)];
}

void Notices::expect_notice() {
  PMPI_Irecv_c(&notice_, sizeof notice_, MPI_BYTE, MPI_ANY_SOURCE, kNoticeChannel, comm_, &request_);
}

bool Notices::take_notice(Notice& notice) {
  int there = 0;
  if (PMPI_Test(&request_, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there) return false;
  notice = notice_;
  expect_notice();
  return true;
}

void Notices::finish_messages() {
  for (Outgoing& o : outgoing_)
    for (int done = o.request == MPI_REQUEST_NULL; !done;) PMPI_Test(&o.request, &done, MPI_STATUS_IGNORE);
  PMPI_Sendrecv_c(&notice_, 0, MPI_BYTE, job_world().rank, kNoticeChannel, nullptr, 0, MPI_BYTE, MPI_PROC_NULL,
                  kNoticeChannel, comm_, MPI_STATUS_IGNORE);
  for (int done = 0; !done;) PMPI_Test(&request_, &done, MPI_STATUS_IGNORE);
}

}  // namespace latecomer::shim
