// SPDX-License-Identifier: BSD-3-Clause
// The roll call: is every rank of MPI_COMM_WORLD preloaded with the same build? MPI communication cannot answer: a rank
// without the preload would receive the messages in the program's calls. So ranks publish names in the process
// manager's name service, along a binomial tree. No rank watches more than log2 P others.
//
// Each rank publishes three names, in this order:
// - here: on entry. A rank waits for its parent's and its children's `here`, with a time-out.
// - up: after the parent and the children are here, and the children's `up` say yes. Otherwise it says no. A rank that
//   publishes yes waits for its parent's verdict without a time-out. The verdict must come, because the parent is here.
// - verdict: the root's is its `up`; the other ranks repeat their parent's.
// A rank that gives up has said no before, so all ranks get the same verdict.
#include <time.h>

#include <cstdio>
#include <cstring>

#include "shim/job/parts.hpp"
#include "shim/log.hpp"
#include "shim/sites/sites.hpp"

namespace latecomer::shim {
namespace {

/// Makes MPI return errors of the name service instead of aborting the program.
class QuietErrors {
 public:
  QuietErrors() {
    for (int i = 0; i < 2; ++i) {
      PMPI_Comm_get_errhandler(comms_[i], &before_[i]);
      PMPI_Comm_set_errhandler(comms_[i], MPI_ERRORS_RETURN);
    }
  }
  ~QuietErrors() {
    for (int i = 0; i < 2; ++i) {
      PMPI_Comm_set_errhandler(comms_[i], before_[i]);
      PMPI_Errhandler_free(&before_[i]);
    }
  }

 private:
  MPI_Comm comms_[2] = {MPI_COMM_WORLD, MPI_COMM_SELF};
  MPI_Errhandler before_[2];
};

void name_of(char (&name)[64], const char* what, int rank) {
  std::snprintf(name, sizeof name, "latecomer-%s-%d", what, rank);
}

bool publish(const char* what, int rank, const char* value) {
  char name[64];
  name_of(name, what, rank);
  return PMPI_Publish_name(name, MPI_INFO_NULL, value) == MPI_SUCCESS;
}

void unpublish(const char* what, int rank) {
  char name[64], port[MPI_MAX_PORT_NAME];
  name_of(name, what, rank);
  if (PMPI_Lookup_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS) PMPI_Unpublish_name(name, MPI_INFO_NULL, port);
}

/// Waits for a name, with pauses of 0.1 to 12.8 ms. deadline 0: without limit. Returns false on time-out. Derived: the
/// pause doubles, so a wait takes at most twice as long as necessary, or 12.8 ms longer. A rank sends the process
/// manager at most 78 lookups per second then.
bool lookup(const char* what, int rank, Nanoseconds deadline, char (&value)[MPI_MAX_PORT_NAME]) {
  char name[64];
  name_of(name, what, rank);
  for (long pause = 100'000;; pause = pause < 10'000'000 ? pause * 2 : pause) {
    if (PMPI_Lookup_name(name, MPI_INFO_NULL, value) == MPI_SUCCESS) return true;
    if (deadline != 0 && now() > deadline) return false;
    const timespec nap{0, pause};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace

bool roll_call(int rank, int size, double timeout_s) {
  if (size == 1) return true;
  const QuietErrors quiet;
  const Nanoseconds deadline = now() + static_cast<Nanoseconds>(timeout_s * 1e9);
  char value[MPI_MAX_PORT_NAME];
  if (!publish("here", rank, own_build_id())) {
    if (rank == 0)
      warn(
          "the process manager has no name service: every rank observes alone and all calls stay native; "
          "after the job, run latecomer recover %s",
          job().spool.directory().c_str());
    return false;
  }

  const auto is_here = [&](int other) {
    return lookup("here", other, deadline, value) && std::strcmp(value, own_build_id()) == 0;
  };
  const int parent = rank & (rank - 1);
  bool yes = rank == 0 || is_here(parent);
  const bool parent_here = yes;
  // One warning per missing rank, from its parent, or from rank 1 if rank 0 is missing.
  const auto missing = [](int who) {
    warn(
        "rank %d is not preloaded with this build of latecomer: every rank observes alone and all calls stay native; "
        "after the job, run latecomer recover %s",
        who, job().spool.directory().c_str());
  };
  if (!yes && rank == 1) missing(0);
  for (int bit = 1; rank + bit < size && (rank & bit) == 0; bit <<= 1) {
    const int child = rank + bit;
    // A child that is here publishes `up` in any case, so the wait for it ends.
    const bool here = is_here(child);
    if (!here) missing(child);
    yes = here && lookup("up", child, 0, value) && std::strcmp(value, "yes") == 0 && yes;
  }
  publish("up", rank, yes ? "yes" : "no");
  if (rank != 0 && parent_here) yes = lookup("verdict", parent, 0, value) && std::strcmp(value, "yes") == 0;
  publish("verdict", rank, yes ? "yes" : "no");
  if (yes) {
    // Unpublish names that no rank reads any more. All ranks read `here` and `up` before the verdict exists. The
    // children read `verdict`, and this rank cannot wait for them here: `verdict` stays until the job ends.
    unpublish("here", rank);
    unpublish("up", rank);
  }
  return yes;
}

}  // namespace latecomer::shim
