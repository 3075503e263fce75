// SPDX-License-Identifier: BSD-3-Clause
// The name service of the process manager, which the roll call asks. Every call is one request to it. It knows no
// protocol of the roll call.
#pragma once

#include <string>

#include "shim/clock.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// Makes MPI return errors of the name service instead of aborting the program. MPICH 4.0.2 does not forget that an
/// error handler was set: its next fatal error on an inter-communicator is a segmentation fault. So only a rank that
/// asks the name service has one.
class QuietErrors {
 public:
  QuietErrors();
  ~QuietErrors();
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  MPI_Comm comms_[2] = {MPI_COMM_WORLD, MPI_COMM_SELF};
  MPI_Errhandler before_[2];
};

/// The program that has started the ranks, for messages.
std::string launcher();

using PortName = char[MPI_MAX_PORT_NAME];

/// While an object exists, errors of MPI_COMM_WORLD and MPI_COMM_SELF are returned.
class Names {
 public:
  /// Asks for a name that no rank publishes. Returns false if the service answers it.
  bool sound(int rank);
  /// Whether the service belongs to many jobs, so that ranks with different parent processes do not find each other.
  /// Valid after sound().
  bool shared() const { return shared_; }

  bool publish(const char* what, int rank, const char* value);
  /// Of a name that this process published with `value`.
  void unpublish(const char* what, int rank, const char* value);
  /// An empty answer is no answer.
  bool look_up(const char* what, int rank, PortName& value);
  /// Waits for a name, with pauses of 0.1 to 12.8 ms. deadline 0: without limit. Returns false on time-out, or, if
  /// `instead` is not nullptr, when a look-up finds the name `instead` of that rank after pauses have grown. Derived:
  /// the pause doubles, so a wait takes at most twice as long as necessary, or 12.8 ms longer. A rank sends the process
  /// manager at most 78 lookups per second then, and 156 with `instead`.
  bool wait_for(const char* what, int rank, Nanoseconds deadline, PortName& value, const char* instead = nullptr);

 private:
  void name_of(char (&name)[64], const char* what, int rank) const;
  QuietErrors quiet_;
  char scope_[24] = "";
  bool shared_ = false;
};

}  // namespace latecomer::shim
