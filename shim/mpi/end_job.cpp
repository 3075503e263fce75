// SPDX-License-Identifier: BSD-3-Clause
// MPICH's launcher handles an abort before it reads the pipe of a rank's messages, and then drops what is in the pipe.
#include "shim/mpi/end_job.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <ctime>

namespace latecomer::shim {

void end_job(MPI_Comm comm, int error) noexcept {
  const timespec millisecond{0, 1'000'000};
  int unread = 0;
  for (int waited = 0; waited < 1000 && ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0; ++waited)
    nanosleep(&millisecond, nullptr);
  PMPI_Abort(comm, error);
}

}  // namespace latecomer::shim
