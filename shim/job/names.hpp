// SPDX-License-Identifier: BSD-3-Clause
// The name service of the process manager, which the roll call asks. Every call of a function is one request to the
// service. This file must not know the protocol of the roll call.
#pragma once

#include <cstdint>
#include <string>

#include "shim/clock.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// The program that has started the ranks, for messages.
std::string describe_launcher();

using PortName = char[MPI_MAX_PORT_NAME];

/// While an object exists, errors of MPI_COMM_WORLD and MPI_COMM_SELF are returned: those of the service would abort
/// the program. MPICH 4.0.2 does not forget that an error handler was set: its next fatal error on an
/// inter-communicator is a segmentation fault. So only a rank that asks the service has such an object.
class Names {
 public:
  /// `waiting`: about so many processes wait at once. Derived: a process looks up at most 78 names per second while it
  /// waits, and up to 5,000 processes together at most 5,000.
  explicit Names(int waiting);
  ~Names();
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  /// Asks for a name that no rank publishes. Returns false if the service answers it.
  bool test_unknown_name(int rank);
  /// Whether the service belongs to many jobs, so that ranks with different parent processes do not find each other.
  /// Valid after test_unknown_name().
  bool serves_many_jobs() const { return serves_many_jobs_; }

  bool publish_name(const char* what, int rank, const std::string& value);
  /// Of a name that this process published with `value`.
  void unpublish_name(const char* what, int rank, const std::string& value);
  /// An empty answer is no answer.
  bool look_up_name(const char* what, int rank, PortName& value);
  /// Waits for a name. deadline 0: without limit. Returns false on time-out. Derived: the pause between look-ups
  /// doubles from 0.1 ms on, so a wait takes at most twice as long as necessary, or one longest pause more.
  bool wait_for_name(const char* what, int rank, Nanoseconds deadline, PortName& value);

 private:
  struct Name {
    char text[64];
  };
  bool keeps_refused_name(int rank);
  /// From now on, names contain this number.
  void set_scope(std::uint64_t number);
  Name write_name(const char* what, int rank) const;

  MPI_Comm comms_[2] = {MPI_COMM_WORLD, MPI_COMM_SELF};
  MPI_Errhandler before_[2];
  char scope_[24] = "";
  bool serves_many_jobs_ = false;
  long longest_pause_ns_;
};

}  // namespace latecomer::shim
