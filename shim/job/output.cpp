// SPDX-License-Identifier: BSD-3-Clause
// The path of the profile.
#include <unistd.h>

#include <cstdlib>

#include "shim/job/parts.hpp"

namespace latecomer::shim {

std::string job_id() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
    if (const char* value = std::getenv(name); value && *value) return value;
  // Without a batch system, use the launcher's process id, which all ranks of a host share.
  return std::to_string(getppid());
}

std::string output_path(const Job& j) {
  const std::string id = job_id();
  std::string out;
  const std::string& form = j.environment.output;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%' || i + 1 == form.size()) {
      out += form[i];
      continue;
    }
    switch (form[++i]) {
      case 'j':
        out += id;
        break;
      case 'p':
        out += std::to_string(getpid());
        break;
      case 'h':
        out += j.mine.host;
        break;
      case '%':
        out += '%';
        break;
      default:
        (out += '%') += form[i];
    }
  }
  char folder[4096];
  if (!out.starts_with('/') && getcwd(folder, sizeof folder)) out = std::string(folder) + "/" + out;
  return out;
}

}  // namespace latecomer::shim
