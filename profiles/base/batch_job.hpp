// SPDX-License-Identifier: BSD-3-Clause
// The batch system's number of the job that this process belongs to.
#pragma once

#include <cstdlib>
#include <string>

namespace latecomer::profiles {

/// "": no batch system.
inline std::string batch_job() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
    if (const char* value = std::getenv(name); value && *value) return value;
  return "";
}

}  // namespace latecomer::profiles
