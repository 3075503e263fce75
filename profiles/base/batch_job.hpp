// SPDX-License-Identifier: BSD-3-Clause
// The variables by which a batch system or a launcher tells a process its job.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string>

namespace latecomer::profiles {

/// The first of these variables that is set, or "".
inline std::string first_set(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return "";
}

/// The batch system's number of the job. "": no batch system.
inline std::string batch_job() { return first_set({"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"}); }

}  // namespace latecomer::profiles
