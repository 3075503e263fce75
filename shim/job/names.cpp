// SPDX-License-Identifier: BSD-3-Clause
// Asks the name service. A server of `mpiexec -nameserver` shows itself by an empty answer to an unknown name.
#include "shim/job/names.hpp"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/text.hpp"
#include "profiles/base/process.hpp"

namespace latecomer::shim {

QuietErrors::QuietErrors() {
  for (int i = 0; i < 2; ++i) {
    PMPI_Comm_get_errhandler(comms_[i], &before_[i]);
    PMPI_Comm_set_errhandler(comms_[i], MPI_ERRORS_RETURN);
  }
}

QuietErrors::~QuietErrors() {
  for (int i = 0; i < 2; ++i) {
    PMPI_Comm_set_errhandler(comms_[i], before_[i]);
    PMPI_Errhandler_free(&before_[i]);
  }
}

std::string launcher() {
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

bool Names::sound(int rank) {
  char name[64];
  PortName port = "";
  name_of(name, "nobody", rank);
  if (PMPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS) return true;
  if (port[0] != '\0') return false;
  // An empty answer: this is the server of mpiexec -nameserver. It serves many jobs and keeps their names when they
  // end. So the names contain the launcher's process on this host.
  shared_ = true;
  const profiles::ProcessId launcher = profiles::process_id(getppid() != 0 ? getppid() : getpid());  // 0: hidden
  std::snprintf(scope_, sizeof scope_, "-%llx",
                static_cast<unsigned long long>(
                    core::mix64(launcher.kernel ^ core::mix64(launcher.pid_namespace + core::mix64(launcher.started) +
                                                              static_cast<std::uint64_t>(launcher.pid)))));
  return true;
}

bool Names::publish(const char* what, int rank, const char* value) {
  char name[64];
  name_of(name, what, rank);
  return PMPI_Publish_name(name, MPI_INFO_NULL, value) == MPI_SUCCESS;
}

void Names::unpublish(const char* what, int rank, const char* value) {
  char name[64];
  name_of(name, what, rank);
  PMPI_Unpublish_name(name, MPI_INFO_NULL, value);
}

bool Names::look_up(const char* what, int rank, PortName& value) {
  char name[64];
  name_of(name, what, rank);
  value[0] = '\0';
  return PMPI_Lookup_name(name, MPI_INFO_NULL, value) == MPI_SUCCESS && value[0] != '\0';
}

bool Names::wait_for(const char* what, int rank, Nanoseconds deadline, PortName& value, const char* instead) {
  for (long pause = 100'000;; pause = pause < 10'000'000 ? pause * 2 : pause) {
    if (look_up(what, rank, value)) return true;
    if (deadline != 0 && now() > deadline) return false;
    if (instead && pause > 5'000'000 && look_up(instead, rank, value)) return false;
    const timespec nap{0, pause};
    nanosleep(&nap, nullptr);
  }
}

void Names::name_of(char (&name)[64], const char* what, int rank) const {
  std::snprintf(name, sizeof name, "latecomer%s-%s-%d", scope_, what, rank);
}

}  // namespace latecomer::shim
