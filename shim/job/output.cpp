// SPDX-License-Identifier: BSD-3-Clause
// The name of the profile, and what tells this job from others.
#include "shim/job/output.hpp"

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>

#include "core/base/text.hpp"
#include "profiles/record/claim.hpp"
#include "shim/job/policy.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {
namespace {

/// The first of these variables that is set, or "".
std::string first_set(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return "";
}

std::string slurm_step() { return first_set({"SLURM_STEP_ID", "SLURM_STEPID"}); }

/// The absolute path of the profile, before it gets a number. Makes its folders.
std::string output_path(const Job& j) {
  std::string form = j.environment.output;
  for (const OwnPolicy* policy : {&own_policy(j.environment), &configuration(j.environment)})
    if (form.empty()) form = policy->report.policy.output;
  if (form.empty()) {
    const bool step = !first_set({"SLURM_JOB_ID"}).empty() && !slurm_step().empty();
    form = "latecomer.%j" + (step ? "." + slurm_step() : "") + ".json";
  }
  while (form.size() > 1 && form.ends_with('/')) form.pop_back();
  const std::string name =
      profiles::fill_name(form, {j.id.id, profiles::user_name(), j.mine.host, std::to_string(getpid())});
  std::string out = absolute_path(name);
  profiles::make_folders(out.substr(0, out.size() - name.size()) + form, out);
  return out;
}

/// Takes the result of a claim. Returns whether there is a name.
bool take(Job& j, const core::Result<profiles::Claimed>& claimed) {
  if (claimed) {
    j.output = claimed->output;
    if (!claimed->passed_over.empty() && j.rank == 0)
      say(0, "%s: the profile is '%s'", claimed->passed_over.c_str(), j.output.c_str());
    return true;
  }
  if (!j.loss_said)
    warn("%s: no snapshots are written, and no profile unless this changes before the end", claimed.error().c_str());
  j.loss_said = true;
  return false;
}

}  // namespace

std::string absolute_path(const std::string& path) {
  char folder[4096];
  return path.empty() || path.starts_with('/') || !getcwd(folder, sizeof folder) ? path : folder + ("/" + path);
}

std::string job_id() {
  const std::string id = first_set({"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"});
  // Without a batch system, use the launcher's process id, which all ranks of a host share.
  return id.empty() ? std::to_string(getppid()) : id;
}

std::uint64_t job_signature() {
  // MPICH's launcher may run several jobs in one step, but other launchers run one.
  const bool hydra = !first_set({"HYDI_CONTROL_FD"}).empty();
  std::string common = first_set({"PMIX_NAMESPACE"});
  if (common.empty() && !hydra && !slurm_step().empty())
    common = first_set({"SLURM_CLUSTER_NAME"}) + "/" + job_id() + "/" + slurm_step() + "/" +
             first_set({"SLURM_RESTART_COUNT"});
  if (common.empty()) {
    const profiles::ProcessId launcher = profiles::process_id(getppid());
    for (const std::uint64_t part : {launcher.kernel, launcher.pid_namespace, launcher.started})
      common += std::to_string(part) + "/";
    common += std::to_string(launcher.pid);
  }
  return core::mix64(core::fnv1a(common));
}

void identify_job(Job& j) {
  j.id.id = job_id();
  j.id.start = j.mine.job.start;
  j.id.host = j.mine.host;
  const std::string& claim = j.environment.claim;
  j.replaces = claim.find(":replace") != std::string::npos;
  j.loss_said = claim.find(":said") != std::string::npos;
  j.id.key = std::strtoull(claim.c_str(), nullptr, 16);
  if (j.id.key != 0) return;
  j.id.key = job_signature() | 1;
}

void share_output(Job& j) {
  std::string chosen;
  if (j.rank == 0) {
    const bool by_run = !j.environment.claim.empty();
    if (!by_run)
      j.id.key =
          core::mix64(static_cast<std::uint64_t>(j.started) ^ static_cast<std::uint64_t>(j.pid) << 40 ^ j.id.key) | 1;
    j.output = output_path(j);
    const bool good = (by_run && profiles::take_over(j.output, j.id)) ||
                      take(j, profiles::claim_output(j.output, j.id, profiles::kJobClaim, j.replaces, false));
    chosen = (good ? "+" : "-") + j.output;
  }
  share(j, chosen);
  PMPI_Bcast(&j.id.key, 1, MPI_UINT64_T, 0, j.comm);
  j.output = chosen.substr(1);
  j.mine.job_key = j.id.key;
  if (chosen.starts_with('+') && j.policy.spool) j.spool.begin(j.output + ".parts", j.rank, j.id);
}

void choose_output_alone(Job& j, const std::string& suffix) {
  if (j.spool.begun() || j.mine.job_key != 0) return;
  if (!suffix.empty()) j.id.key = core::mix64(j.id.key ^ core::fnv1a(suffix)) | 1;
  j.output = output_path(j) + suffix;
  j.mine.job_key = j.id.key;
  if (take(j, profiles::claim_output(j.output, j.id, profiles::kJobClaim, false, true)))
    j.spool.begin(j.output + ".parts", j.rank, j.id);
}

void release_output(Job& j) {
  if (j.rank == 0 && !j.output.empty()) profiles::leave_snapshot_folder(j.output + ".parts", j.id.key);
}

}  // namespace latecomer::shim
