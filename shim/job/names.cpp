// SPDX-License-Identifier: BSD-3-Clause
// Asks the name service. A server of `mpiexec -nameserver` shows itself by an empty answer to an unknown name (MPICH
// 4.0), or because it keeps a name that it refuses.
#include "shim/job/names.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/text.hpp"
#include "profiles/base/process.hpp"
#include "shim/mpi/beneath.hpp"

namespace latecomer::shim {

std::string describe_launcher() {
  const auto set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (set("HYDI_CONTROL_FD")) return "MPICH's mpiexec";
  if (set("OMPI_COMM_WORLD_SIZE")) return "Open MPI's mpiexec";
  if (set("SLURM_STEP_ID") || set("SLURM_STEPID")) return "Slurm's srun";
  char path[64], name[64] = "";
  std::snprintf(path, sizeof path, "/proc/%d/comm", static_cast<int>(getppid()));
  if (std::FILE* file = std::fopen(path, "re")) {
    if (std::fgets(name, sizeof name, file)) name[std::strcspn(name, "\n")] = '\0';
    std::fclose(file);
  }
  return name[0] ? "the launcher (" + std::string(name) + ")" : "the launcher";
}

Names::Names(int waiting) : longest_pause_ns_(std::clamp(200'000L * waiting, 12'800'000L, 999'999'999L)) {
  for (int i = 0; i < 2; ++i) {
    PMPI_Comm_get_errhandler(comms_[i], &before_[i]);
    PMPI_Comm_set_errhandler(comms_[i], MPI_ERRORS_RETURN);
  }
  // A daemon of PRRTE that runs one job after another (prte, prun) keeps names of those that have ended.
  if (const char* job = std::getenv("PMIX_NAMESPACE"); job && beneath().by_pmix) set_scope(core::fnv1a(job));
}

Names::~Names() {
  for (int i = 0; i < 2; ++i) {
    PMPI_Comm_set_errhandler(comms_[i], before_[i]);
    PMPI_Errhandler_free(&before_[i]);
  }
}

namespace {

/// Different for each process of the hosts that use one server.
std::uint64_t number_of(const profiles::ProcessId& process) {
  return process.kernel ^
         core::mix64(process.pid_namespace + core::mix64(process.started) + static_cast<std::uint64_t>(process.pid));
}

}  // namespace

bool Names::test_unknown_name(int rank) {
  PortName port = "";
  if (PMPI_Lookup_name(write_name("nobody", rank).text, MPI_INFO_NULL, port) == MPI_SUCCESS) {
    if (port[0] != '\0') return false;
  } else if (!keeps_refused_name(rank)) {
    return true;
  }
  // This is the server of mpiexec -nameserver. It serves many jobs and keeps their names when they end. So the names
  // contain the launcher's process on this host.
  set_scope(number_of(profiles::process_id(getppid() != 0 ? getppid() : getpid())));  // 0: hidden
  serves_many_jobs_ = true;
  return true;
}

/// Whether a name that was published twice is there after it was unpublished once. It is on hydra_nameserver of MPICH
/// 4.0.2, 4.2.1 and 5.0.2, which refuses the second one and keeps it. mpiexec alone keeps the first one only. Other
/// jobs may ask the same server at the same time, so the name is of this process alone. In doubt the answer is yes:
/// with names that contain its launcher, no job hears the ranks of another one.
bool Names::keeps_refused_name(int rank) {
  if (!std::getenv("HYDI_CONTROL_FD")) return false;
  set_scope(number_of(profiles::this_process()));
  PortName port;
  bool keeps = true;
  if (publish_name("twice", rank, "first")) {
    publish_name("twice", rank, "second");
    unpublish_name("twice", rank, "first");
    if ((keeps = look_up_name("twice", rank, port))) unpublish_name("twice", rank, "second");
  }
  scope_[0] = '\0';
  return keeps;
}

bool Names::publish_name(const char* what, int rank, const std::string& value) {
  return PMPI_Publish_name(write_name(what, rank).text, MPI_INFO_NULL, value.c_str()) == MPI_SUCCESS;
}

void Names::unpublish_name(const char* what, int rank, const std::string& value) {
  PMPI_Unpublish_name(write_name(what, rank).text, MPI_INFO_NULL, value.c_str());
}

bool Names::look_up_name(const char* what, int rank, PortName& value) {
  value[0] = '\0';
  return PMPI_Lookup_name(write_name(what, rank).text, MPI_INFO_NULL, value) == MPI_SUCCESS && value[0] != '\0';
}

bool Names::wait_for_name(const char* what, int rank, Nanoseconds deadline, PortName& value) {
  for (long pause_ns = 100'000;; pause_ns = std::min(2 * pause_ns, longest_pause_ns_)) {
    if (look_up_name(what, rank, value)) return true;
    if (deadline != 0 && now() > deadline) return false;
    const timespec nap{0, pause_ns};
    nanosleep(&nap, nullptr);
  }
}

void Names::set_scope(std::uint64_t number) {
  std::snprintf(scope_, sizeof scope_, "-%llx", static_cast<unsigned long long>(core::mix64(number)));
}

Names::Name Names::write_name(const char* what, int rank) const {
  Name name;
  std::snprintf(name.text, sizeof name.text, "latecomer%s-%s-%d", scope_, what, rank);
  return name;
}

}  // namespace latecomer::shim
