// SPDX-License-Identifier: BSD-3-Clause
// The only job of this process.
#include "shim/state/job.hpp"

#include <algorithm>

#include "shim/entry.hpp"

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
  // longer. Beyond, drop the newest plan that is not of MPI_COMM_WORLD: a later run takes over the plans of
  // MPI_COMM_WORLD.
  constexpr std::size_t kPlansKept = 256, kPlanBytes = 2 << 20;
  std::size_t bytes = text.size();
  for (const std::string& plan : mine.plans) bytes += plan.size();
  while (!mine.plans.empty() && (mine.plans.size() == kPlansKept || bytes > kPlanBytes)) {
    const auto other = std::find_if_not(mine.plans.rbegin(), mine.plans.rend(),
                                        [](const std::string& p) { return profiles::is_of_world(p); });
    const auto gone = other == mine.plans.rend() ? mine.plans.end() - 1 : other.base() - 1;
    bytes -= gone->size(), mine.plans.erase(gone);
  }
  mine.plans.push_back(std::move(text));
}

}  // namespace latecomer::shim
