// SPDX-License-Identifier: BSD-3-Clause
// Plans and decisions in the profile: why each site runs what it runs, and how a later run takes it over.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/learning/learner.hpp"
#include "profiles/record.hpp"

namespace latecomer::profiles {

/// Identity of MPI_COMM_WORLD in `plans`, the same in every run.
inline constexpr std::uint64_t kWorldIdentity = 1;

/// One element of the profile's `plans`: an announced plan and what the leader knew.
/// `reports`: of the learner that made it, in its order.
std::string plan_json(std::uint64_t communicator, int comm_size, std::uint64_t announced_at, const core::Plan& plan,
                      const std::vector<core::SlotReport>& reports);

/// Whether such an element is of MPI_COMM_WORLD.
bool is_of_world(std::string_view plan);

/// What is to be written of one slot into its site's `decisions`; text, with the site's id.
std::string decision_json(const core::SlotReport& report, int comm_size);

/// What an earlier run's profile knows of the communicator of all ranks.
struct History {
  core::Plan plan;                                          ///< the last one announced, if any
  std::map<std::string, std::vector<Nanoseconds>> offsets;  ///< [site id][ranks], after the first arrival
};
/// Reads a profile. Sites of other communicators, and rows that stand for several ranks, are left out.
core::Result<History> read_history(const std::string& path, int ranks);

}  // namespace latecomer::profiles
