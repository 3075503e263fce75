// SPDX-License-Identifier: BSD-3-Clause
// The policy of the whole job, which is rank 0's.
#include "shim/job/policy.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "shim/log.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

/// On rank 0, the text of the policy if it is valid, else "" and a warning, which ends with the effect.
std::string text_of(const OwnPolicy& own, const char* effect) {
  if (own.name.empty()) return "";
  if (!own.good) {
    warn("the policy: %s; %s", own.error.c_str(), effect);
    return "";
  }
  const auto& report = own.report;
  if (report.ok()) {
    for (const auto& n : report.notes)
      say(1, "%s:%d: %s: %s", own.name.c_str(), n.line, n.path.c_str(), n.message.c_str());
    return own.text;
  }
  const auto& p = report.problems.front();
  std::string more;
  if (report.problems.size() > 1)
    more = "; and " + std::to_string(report.problems.size() - 1) + " more; run latecomer check";
  warn("%s:%d: %s%s%s%s; the policy is not used, %s", own.name.c_str(), p.line, p.path.c_str(),
       p.path.empty() ? "" : ": ", p.message.c_str(), more.c_str(), effect);
  return "";
}

/// The front has chosen the family before a policy is read.
void note_other_family() {
  if (job_world().rank == 0 && !job_rules().policy.mpi.empty() && job_rules().policy.mpi != kFamily &&
      !std::getenv("LATECOMER_MPI"))
    warn("the policy names the MPI family %s, and %s is in use: without latecomer run, set LATECOMER_MPI=%s",
         job_rules().policy.mpi.c_str(), kFamily, job_rules().policy.mpi.c_str());
}

/// Whether MPI takes buffers in GPU memory.
enum DeviceBuffers : int { kNoDevice, kMayHaveDevice, kSupportsDevice };
DeviceBuffers ask_for_device_buffers() {
  if (const auto query = reinterpret_cast<int (*)(int, int*)>(find_function("MPIX_GPU_query_support"))) {
    for (const int kind : {0, 1, 2})  // MPICH's MPIX_GPU_SUPPORT_CUDA, _ZE, _HIP
      if (int supported = 0; query(kind, &supported) == MPI_SUCCESS && supported) return kSupportsDevice;
    return kNoDevice;  // MPICH 3.4.1 ends the program in MPIX_Query_cuda_support
  }
  [[maybe_unused]] bool told = false;
  for (const char* name :
       {"MPIX_Query_cuda_support", "MPIX_Query_ze_support", "MPIX_Query_hip_support", "MPIX_Query_rocm_support"})
    if (const auto query = reinterpret_cast<int (*)()>(find_function(name))) {
      told = true;
      if (query()) return kSupportsDevice;
    }
#ifdef LATECOMER_ABI
  // A library of the standard ABI need not have these functions. Without a device, no buffer is in its memory.
  for (const char* device : {"/dev/nvidiactl", "/dev/kfd", "/dev/dri"})
    if (!told && access(device, F_OK) == 0) return kMayHaveDevice;
#endif
  return kNoDevice;
}

/// Whether it is not known that schedules are safe beside other threads inside MPI, the engine's among them. Open MPI
/// 6.0.0rc2 hangs there by itself at times, and more often under an algorithm (docs/results/mpi.md).
bool has_untried_threads() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  PMPI_Get_library_version(text, &length);
  return (job_process().threads || job_rules().policy.background_enabled) &&
         std::string_view(text).starts_with("Open MPI v6.");
}

/// Schedules copy and reduce in host memory, and share MPI with other threads. So all ranks only observe if either is
/// unsafe on any rank.
void keep_off_what_is_unsafe() {
  if (job_rules().policy.mode != core::Mode::apply) return;
  int unsafe[] = {job_rules().policy.device_buffers ? ask_for_device_buffers() : kNoDevice, has_untried_threads()};
  PMPI_Allreduce(MPI_IN_PLACE, unsafe, 2, MPI_INT, MPI_MAX, job_world().comm);
  if (!unsafe[0] && !unsafe[1]) return;
  job_rules().policy.mode = core::Mode::observe;
  if (job_world().rank == 0)
    warn("%s", unsafe[0] == kMayHaveDevice
                   ? "this host has a GPU, and MPI does not say whether it supports GPU memory, which latecomer's "
                     "algorithms cannot use: all calls stay native; if no buffer is in GPU memory, write "
                     "\"device_buffers\": \"none\" into the policy"
               : unsafe[0]
                   ? "MPI reports support for GPU memory, which latecomer's algorithms cannot use: all calls stay "
                     "native; if no buffer is in GPU memory, write \"device_buffers\": \"none\" into the policy"
                   : "latecomer's algorithms are not tried beside threads inside Open MPI 6: all calls stay native");
}

}  // namespace

const OwnPolicy& own_policy(const Environment& environment) {
  static const OwnPolicy* const own =
      environment.policy.empty() ? &configuration(environment) : new OwnPolicy(environment.policy);
  return *own;
}

const OwnPolicy& configuration(const Environment& environment) {
  static const OwnPolicy* const own = new OwnPolicy(environment.config);
  return *own;
}

OwnPolicy::OwnPolicy(const std::string& given) {
  if (given.empty()) return;
  const bool inlined = given.starts_with("{");
  name = inlined ? "LATECOMER_POLICY" : given;
  const auto read = inlined ? core::Result<std::string>(given) : core::read_file(given);
  good = static_cast<bool>(read);
  if (!read) error = read.error();
  else {
    text = *read;
    report = core::parse_policy(text);
  }
}

void share_policy() {
  std::string text;
  if (job_world().rank == 0) {
    text = text_of(own_policy(job_rules().environment), "observing only");
    if (!job_rules().environment.policy.empty())
      text_of(configuration(job_rules().environment), "LATECOMER_POLICY names another");
  }
  share_bytes(text);
  const core::Policy* own = own_policy(job_rules().environment).policy();
  job_rules().policy = own && own_policy(job_rules().environment).text == text
                           ? *own
                           : core::parse_policy(text.empty() ? "{\"version\": 1}" : text).policy;
  int checks = job_rules().environment.check;
  PMPI_Bcast(&checks, 1, MPI_INT, 0, job_world().comm);
  job_rules().checks = checks != 0;
  note_other_family();
  keep_off_what_is_unsafe();
}

void note_forced_rules() {
  const JobLock lock;
  for (const core::Rule& rule : job_rules().policy.rules)
    for (const core::Collective op : rule.match.ops)
      if (const core::Algorithm* a =
              rule.use.kind == core::Use::Kind::algorithm ? core::find_algorithm(op, rule.use.algorithm) : nullptr)
        lock->mine.job.forced.push_back({core::index_of(a), rule.line, rule.match.bytes, rule.match.comm_size});
}

}  // namespace latecomer::shim
