// SPDX-License-Identifier: BSD-3-Clause
// The name of the profile, and what tells this job from others.
#include "shim/job/output.hpp"

#include <unistd.h>

#include <cstdlib>

#include "core/base/text.hpp"
#include "profiles/base/batch_job.hpp"
#include "profiles/files/claim.hpp"
#include "shim/job/policy.hpp"
#include "shim/log.hpp"
#include "shim/state/output.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

using profiles::first_set;

std::string slurm_step() { return first_set({"SLURM_STEP_ID", "SLURM_STEPID"}); }

/// The absolute path of the profile, before it gets a number. Makes its folders.
std::string output_path() {
  std::string form = job_rules().environment.output;
  for (const OwnPolicy* policy : {&own_policy(job_rules().environment), &configuration(job_rules().environment)})
    if (form.empty()) form = policy->report.policy.output;
  if (form.empty()) {
    const bool step = !first_set({"SLURM_JOB_ID"}).empty() && !slurm_step().empty();
    form = "latecomer.%j" + (step ? "." + slurm_step() : "") + ".json";
  }
  while (form.size() > 1 && form.ends_with('/')) form.pop_back();
  const std::string name = profiles::fill_name(
      form, {job_output().id.id, profiles::user_name(), JobLock()->mine.host, std::to_string(getpid())});
  std::string out = absolute_path(name);
  profiles::make_folders(out.substr(0, out.size() - name.size()) + form, out);
  return out;
}

/// Takes the result of a claim. Returns whether there is a name.
bool take(const core::Result<profiles::Claimed>& claimed) {
  if (claimed) {
    job_output().path = claimed->output;
    if (!claimed->passed_over.empty() && job_world().rank == 0)
      say(0, "%s: the profile is '%s'", claimed->passed_over.c_str(), job_output().path.c_str());
    return true;
  }
  if (!job_output().loss_said)
    warn("%s: no snapshots are written, and no profile unless this changes before the end", claimed.error().c_str());
  job_output().loss_said = true;
  return false;
}

}  // namespace

std::string absolute_path(const std::string& path) {
  char folder[4096];
  return path.empty() || path.starts_with('/') || !getcwd(folder, sizeof folder) ? path : folder + ("/" + path);
}

std::string job_id() {
  const std::string id = profiles::batch_job();
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

void identify_job() {
  job_output().id.id = job_id();
  {
    const JobLock lock;
    job_output().id.start = lock->mine.job.start;
    job_output().id.host = lock->mine.host;
  }
  const std::string& claim = job_rules().environment.claim;
  job_output().replaces = claim.find(":replace") != std::string::npos;
  job_output().loss_said = claim.find(":said") != std::string::npos;
  job_output().id.key = std::strtoull(claim.c_str(), nullptr, 16);
  if (job_output().id.key != 0) return;
  job_output().id.key = job_signature() | 1;
}

void share_output() {
  std::string chosen;
  if (job_world().rank == 0) {
    const bool by_run = !job_rules().environment.claim.empty();
    if (!by_run)
      job_output().id.key = core::mix64(static_cast<std::uint64_t>(job_process().started) ^
                                        static_cast<std::uint64_t>(job_process().pid) << 40 ^ job_output().id.key) |
                            1;
    job_output().path = output_path();
    const bool good = (by_run && profiles::take_over(job_output().path, job_output().id)) ||
                      take(profiles::claim_output(job_output().path, job_output().id, profiles::kJobClaim,
                                                  job_output().replaces, false));
    chosen = (good ? "+" : "-") + job_output().path;
  }
  share_bytes(chosen);
  PMPI_Bcast(&job_output().id.key, 1, MPI_UINT64_T, 0, job_world().comm);
  job_output().path = chosen.substr(1);
  JobLock()->mine.job_key = job_output().id.key;
  if (chosen.starts_with('+') && job_rules().policy.spool)
    job_output().spool.begin(job_output().path + ".parts", job_world().rank, job_output().id);
}

void choose_output_alone(const std::string& suffix) {
  if (job_output().spool.begun() || JobLock()->mine.job_key != 0) return;
  if (!suffix.empty()) job_output().id.key = core::mix64(job_output().id.key ^ core::fnv1a(suffix)) | 1;
  job_output().path = output_path() + suffix;
  JobLock()->mine.job_key = job_output().id.key;
  if (take(profiles::claim_output(job_output().path, job_output().id, profiles::kJobClaim, false, true)))
    job_output().spool.begin(job_output().path + ".parts", job_world().rank, job_output().id);
}

void release_output() {
  if (job_world().rank == 0 && !job_output().path.empty())
    profiles::leave_snapshot_folder(job_output().path + ".parts", job_output().id.key);
}

}  // namespace latecomer::shim
