// SPDX-License-Identifier: BSD-3-Clause
// Finds out which ranks share a kernel, a clock or cores.
#include "shim/job/hosts.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/base/text.hpp"
#include "shim/job/host_load.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/post.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"
#include "shim/tags.hpp"
#include "shim/waiting/alive.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {
namespace {

/// Data that all ranks exchange about their location. Every rank has those of all others at once, so they are few.
struct Location {
  std::uint64_t domain = 0, kernel = 0, host = 0;  // equal: one clock; one set of cores; one host to MPI
};

/// Data that the ranks of a kernel exchange.
struct Neighbour {
  cpu_set_t cores;
  profiles::ProcessId process;
};

std::uint64_t kernel_id() {
  const std::uint64_t kernel = profiles::this_process().kernel;
  return kernel != 0 ? kernel : core::fnv1a(JobLock()->mine.host);
}

/// Gives `mine` to all ranks of `group`, in which this rank has index `me`. Returns [group]. Each rank sends log2(size
/// of the group) messages: in step d, it passes on the entries of d ranks, from its own on.
std::vector<Neighbour> exchange(const std::vector<Rank>& group, std::size_t me, const Neighbour& mine) {
  const std::size_t n = group.size();
  std::vector<Neighbour> from_me(n, mine), all(n);
  for (std::size_t d = 1; d < n; d *= 2) {
    constexpr std::size_t kInPiece = kPieceBytes / sizeof(Neighbour);
    for (std::size_t at = 0; at < std::min(d, n - d); at += kInPiece) {
      const int bytes = static_cast<int>(std::min(kInPiece, std::min(d, n - d) - at) * sizeof(Neighbour));
      MPI_Request received = MPI_REQUEST_NULL;
      PMPI_Irecv_c(from_me.data() + d + at, bytes, MPI_BYTE, group[(me + d) % n], kNeighbourChannel, job_world().comm,
                   &received);
      PMPI_Send(from_me.data() + at, bytes, MPI_BYTE, group[(me + n - d) % n], kNeighbourChannel, job_world().comm);
      for (int done = 0; !done; sched_yield()) PMPI_Test(&received, &done, MPI_STATUS_IGNORE);
    }
  }
  for (std::size_t i = 0; i < n; ++i) all[(me + i) % n] = from_me[i];
  return all;
}

}  // namespace

std::uint64_t clock_domain() {
  static const std::uint64_t space = [] {
    struct stat info {};
    return stat("/proc/self/ns/time", &info) == 0 ? static_cast<std::uint64_t>(info.st_ino) : 0;
  }();
  return core::mix64(kernel_id() ^ core::mix64(space));
}

cpu_set_t own_cores() {
  cpu_set_t out;
  CPU_ZERO(&out);
  if (sched_getaffinity(0, sizeof out, &out) != 0)
    for (int c = 0; c < std::min<int>(CPU_SETSIZE, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))); ++c)
      CPU_SET(c, &out);
  return out;
}

std::string core_list(const cpu_set_t& cores) {
  std::string out;
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (!CPU_ISSET(c, &cores)) continue;
    int last = c;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cores)) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(c) + (last > c ? "-" + std::to_string(last) : "");
    c = last;
  }
  return out;
}

void survey_hosts() {
  Location mine;
  mine.domain = clock_domain();
  mine.kernel = kernel_id();
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  PMPI_Get_processor_name(name, &length);
  mine.host = core::fnv1a({name, static_cast<std::size_t>(length)});
  std::vector<Location> all(static_cast<std::size_t>(job_world().size));
  PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, job_world().comm);
  std::map<std::uint64_t, Rank> first;
  std::vector<Rank> first_of;  // per rank: the first rank in its clock domain
  std::map<std::uint64_t, int> hosts;
  std::vector<Rank> group;  // the ranks of this kernel
  std::size_t me = 0;
  for (Rank r = 0; r < job_world().size; ++r) {
    const Location& there = all[static_cast<std::size_t>(r)];
    first_of.push_back(first.try_emplace(there.domain, r).first->second);
    job_world().hosts.push_back(hosts.try_emplace(there.host, static_cast<int>(hosts.size())).first->second);
    if (there.kernel != mine.kernel) continue;
    if (r == job_world().rank) me = group.size();
    group.push_back(r);
  }
  job_world().place = core::place_in_tree(job_world().hosts, job_world().rank);
  Neighbour own{own_cores(), profiles::this_process()};
  own.process.kernel = mine.kernel;
  cpu_set_t cores;  // each rank may be bound to other cores
  CPU_ZERO(&cores);
  std::vector<profiles::ProcessId> processes;
  processes.reserve(group.size());
  for (const Neighbour& there : exchange(group, me, own)) {
    CPU_OR(&cores, &cores, &there.cores);
    if (processes.size() < me && there.process.pid_namespace == own.process.pid_namespace)
      job_world().first_here = false;
    processes.push_back(there.process);
  }
  watch_ranks(own.process, processes);
  if (me == 0) watch_host(processes, CPU_COUNT(&cores));
  const bool hook = yield_in_progress(false);
  int facts[2] = {static_cast<int>(group.size()) > CPU_COUNT(&cores), !hook};
  PMPI_Allreduce(MPI_IN_PLACE, facts, 2, MPI_INT, MPI_MAX, job_world().comm);
  job_rules().courteous = job_rules().policy.waiting == core::Waiting::courteous ||
                          (job_rules().policy.waiting == core::Waiting::automatic && facts[0]);
  if (job_rules().courteous) {
    // The whole job uses one form: the blocking and the non-blocking form of a collective do not match.
    job_rules().nonblocking_waits = job_rules().policy.courteous_by == core::CourteousBy::nonblocking ||
                                    (job_rules().policy.courteous_by == core::CourteousBy::automatic && facts[1]);
    if (!job_rules().nonblocking_waits) yield_in_progress(true);
  }
  job_rules().decides = job_rules().policy.mode == core::Mode::apply || job_rules().nonblocking_waits;
  const bool observes = job_rules().policy.mode == core::Mode::observe;
  job_rules().samples_epochs = observes && job_rules().policy.budget && !job_rules().policy.record_arrivals &&
                               job_rules().policy.exchange == core::Exchange::epoch;
  job_rules().may_idle = !job_rules().nonblocking_waits && (observes || !job_rules().policy.decides_alone());
  survey_clocks(job_clocks(), job_world().rank, first_of);
}

}  // namespace latecomer::shim
