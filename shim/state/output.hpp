// SPDX-License-Identifier: BSD-3-Clause
// The files of the job. A thread that changes them holds the job's lock.
#pragma once

#include <string>

#include "core/base/types.hpp"
#include "profiles/files/spool.hpp"

namespace latecomer::shim {

using core::Nanoseconds;

struct JobOutput {
  profiles::JobId id;
  std::string path;               ///< absolute path of the profile
  std::string written;            ///< of the file that rank 0 wrote: `path`, with a number if that name was taken
  Nanoseconds wrote = 0;          ///< the time that it took
  bool replaces = false;          ///< the user allowed to replace a profile of this name
  bool loss_said = false;         ///< the user knows that the profile cannot be written
  bool profile_gathered = false;  ///< this rank's contribution is on its way to rank 0
  profiles::Spool spool;          ///< Spool::note_abort() needs no lock
  std::string prometheus;         ///< absolute path of the file of the policy key `prometheus`; "" without the key
  bool prometheus_written = false, prometheus_failed = false;
};

extern JobOutput* job_output_instance __attribute__((visibility("hidden")));
inline JobOutput& job_output() { return *job_output_instance; }

}  // namespace latecomer::shim
