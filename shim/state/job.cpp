// SPDX-License-Identifier: BSD-3-Clause
// The only job of this process.
#include "shim/state/job.hpp"

#include <set>
#include <string_view>

#include "shim/mpi/entry.hpp"

namespace latecomer::shim {

constinit std::atomic<bool> active{false};

LATECOMER_TOGETHER constinit Job* job_instance = nullptr;

bool make_job() try {
  job_instance = new Job;
  return true;
} catch (...) {
  return false;
}

std::vector<int> Job::hosts_of(const std::vector<Rank>& world) const {
  std::map<int, int> numbers;
  std::vector<int> out;
  if (hosts.empty()) return out;  // ranks observe alone
  out.reserve(world.size());
  for (const Rank r : world)
    out.push_back(
        numbers.try_emplace(hosts[static_cast<std::size_t>(r)], static_cast<int>(numbers.size())).first->second);
  return out;
}

void Job::keep_plan(std::string text) {
  // Each snapshot contains these plans, so limit them to 256 texts and 2 MiB. Larger limits make each snapshot take
  // longer. Beyond, drop the oldest plan that a later plan of its communicator replaces. If no plan is replaced, drop
  // the newest that is not of MPI_COMM_WORLD: a later run takes over the last plan of MPI_COMM_WORLD.
  constexpr std::size_t kPlansKept = 256, kPlanBytes = 2 << 20;
  std::size_t bytes = text.size();
  for (const std::string& plan : mine.plans) bytes += plan.size();
  while (!mine.plans.empty() && (mine.plans.size() == kPlansKept || bytes > kPlanBytes)) {
    std::set<std::string_view> later = {profiles::communicator_of(text)};
    auto gone = mine.plans.end(), other = mine.plans.end();
    for (auto plan = mine.plans.end(); plan-- != mine.plans.begin();) {
      if (!later.insert(profiles::communicator_of(*plan)).second) gone = plan;
      else if (other == mine.plans.end() && !profiles::is_of_world(*plan)) other = plan;
    }
    if (gone == mine.plans.end()) gone = other != mine.plans.end() ? other : mine.plans.begin();
    bytes -= gone->size();
    mine.plans.erase(gone);
  }
  mine.plans.push_back(std::move(text));
}

Job::Freed* freed_here(MPI_Comm comm) {
  Job::Freed* found = nullptr;
  for (Job::Freed& one : job().freed)
    if (one.comm == comm && pthread_equal(one.thread, pthread_self()) && (!found || one.state)) found = &one;
  return found;
}

CommState* existing_state(MPI_Comm comm, bool& freed) {
  void* attribute = nullptr;
  int found = 0;
  freed = false;
  if (PMPI_Comm_get_attr(comm, job().keyval, &attribute, &found) == MPI_SUCCESS && found)
    return static_cast<CommState*>(attribute);
  const JobLock lock;
  const Job::Freed* const entry = freed_here(comm);
  freed = entry != nullptr;
  return entry ? entry->state : nullptr;
}

}  // namespace latecomer::shim
