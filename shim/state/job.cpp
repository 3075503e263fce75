// SPDX-License-Identifier: BSD-3-Clause
// Makes the owners of this process's state, once.
#include <map>
#include <set>
#include <string_view>

#include "profiles/format/decisions.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/earlier_run.hpp"
#include "shim/state/output.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

constinit std::atomic<bool> active{false};

// Set before the first handler runs. Never destroyed, because callbacks may run after exit handlers.
LATECOMER_TOGETHER constinit World* job_world_instance = nullptr;
LATECOMER_TOGETHER constinit ThisProcess* job_process_instance = nullptr;
LATECOMER_TOGETHER constinit Rules* job_rules_instance = nullptr;
LATECOMER_TOGETHER constinit Clocks* job_clocks_instance = nullptr;
LATECOMER_TOGETHER constinit JobLock::Held* JobLock::held_ = nullptr;
constinit JobOutput* job_output_instance = nullptr;
constinit EarlierRun* earlier_run_instance = nullptr;

bool make_job() try {
  job_world_instance = new World;
  job_process_instance = new ThisProcess;
  job_rules_instance = new Rules;
  job_clocks_instance = new Clocks;
  job_output_instance = new JobOutput;
  earlier_run_instance = new EarlierRun;
  JobLock::held_ = new JobLock::Held;
  return true;
} catch (...) {
  return false;
}

std::vector<int> World::hosts_of(const std::vector<Rank>& world) const {
  std::map<int, int> numbers;
  std::vector<int> out;
  if (hosts.empty()) return out;  // ranks observe alone
  out.reserve(world.size());
  for (const Rank r : world)
    out.push_back(
        numbers.try_emplace(hosts[static_cast<std::size_t>(r)], static_cast<int>(numbers.size())).first->second);
  return out;
}

void Shared::keep_plan(std::string text) {
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

Shared::Freed* Shared::freed_here(MPI_Comm comm) {
  Freed* found = nullptr;
  for (Freed& one : freed)
    if (one.comm == comm && pthread_equal(one.thread, pthread_self()) && (!found || one.state)) found = &one;
  return found;
}

CommState* existing_state(MPI_Comm comm, bool& freed) {
  void* attribute = nullptr;
  int found = 0;
  freed = false;
  if (PMPI_Comm_get_attr(comm, job_world().keyval, &attribute, &found) == MPI_SUCCESS && found)
    return static_cast<CommState*>(attribute);
  const JobLock lock;
  const Shared::Freed* const entry = lock->freed_here(comm);
  freed = entry != nullptr;
  return entry ? entry->state : nullptr;
}

}  // namespace latecomer::shim
