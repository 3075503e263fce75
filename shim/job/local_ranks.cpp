// SPDX-License-Identifier: BSD-3-Clause
// What the launcher tells each rank about the ranks of its job on its host: an identity that other jobs do not have,
// and their number. The identity decides which ranks may trust each other. A wrong number costs time only
// (roll_call.cpp).
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "core/base/text.hpp"
#include "profiles/base/process.hpp"
#include "shim/job/roll_call.hpp"
#include "shim/mpi/beneath.hpp"

namespace latecomer::shim {
namespace {

int read_number(const char* variable) {
  const char* text = std::getenv(variable);
  const auto value = core::parse_integer(text ? text : "");
  return value && *value > 0 && *value < 1 << 20 ? static_cast<int>(*value) : 0;
}

/// Slurm's text such as "4(x3),2": so many ranks on each of the first three nodes of the step, and on the next.
int read_slurm_count() {
  const char* node = std::getenv("SLURM_NODEID");
  const char* at = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  if (!node || !at || std::getenv("SLURM_HET_SIZE")) return 0;
  long left = std::strtol(node, nullptr, 10);
  while (*at) {
    char* end = nullptr;
    const long count = std::strtol(at, &end, 10);
    if (end == at || count < 1) return 0;
    long times = 1;
    if (end[0] == '(' && end[1] == 'x') {
      times = std::strtol(end + 2, &end, 10);
      if (*end++ != ')' || times < 1) return 0;
    }
    if (left < times) return static_cast<int>(count);
    left -= times;
    if (*end != ',') return 0;
    at = end + 1;
  }
  return 0;
}

/// The name of the job, and the address at which the host's daemon serves it.
std::string identify_daemon() {
  const char* job = std::getenv("PMIX_NAMESPACE");
  for (const char* name : {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21"})
    if (const char* server = std::getenv(name); job && server) return std::string(job) + "/" + server;
  return "";
}
/// The process that opened the rank's connection to the process manager: Hydra's proxy, or Slurm's daemon of the step.
/// It serves one job on one host, whatever scripts are between it and the rank.
std::string identify_manager() {
  const char* text = std::getenv("PMI_FD");
  const auto fd = core::parse_integer(text ? text : "");
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!fd || getsockopt(static_cast<int>(*fd), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return "";
  const profiles::ProcessId server = profiles::process_id(peer.pid);
  if (server.started == 0) return "";
  return std::to_string(server.pid) + "/" + std::to_string(server.started);
}
int read_count() {
  const int told = read_number(beneath().ranks_here);
  return told > 0 ? told : read_slurm_count();
}

}  // namespace

std::optional<LocalRanks> find_local_ranks(int size) {
  const std::string job = beneath().by_pmix ? identify_daemon() : identify_manager();
  const int told = read_count();
  const profiles::ProcessId mine = profiles::this_process();
  if (job.empty() || told < 1 || told > size || mine.kernel == 0 || mine.pid_namespace == 0) return {};
  std::uint64_t key = core::fnv1a(job);
  for (const std::uint64_t part : {mine.kernel, mine.pid_namespace, static_cast<std::uint64_t>(size)})
    key = core::mix64(key ^ core::mix64(part));
  return LocalRanks{key, told};
}

}  // namespace latecomer::shim
