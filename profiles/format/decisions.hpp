// SPDX-License-Identifier: BSD-3-Clause
// Plans and decisions in the profile: they explain the algorithm of each site.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/learning/learner.hpp"
#include "profiles/record/record.hpp"

namespace latecomer::profiles {

/// Identity of MPI_COMM_WORLD in `plans`, the same in every run.
inline constexpr std::uint64_t kWorldIdentity = 1;

/// One element of the profile's `plans`: an announced plan and the figures of the leader that made it. `reports` come
/// from the leader's learner, in its order.
std::string plan_json(std::uint64_t communicator, int comm_size, std::uint64_t announced_at, const core::Plan& plan,
                      const std::vector<core::SlotReport>& reports);

/// The part of an element of `plans` that names its communicator.
std::string_view communicator_of(std::string_view plan);

/// Whether an element of `plans` belongs to MPI_COMM_WORLD.
bool is_of_world(std::string_view plan);

/// One element of a site's `decisions` as JSON text. The text contains the site's id.
std::string decision_json(const core::SlotReport& report, int comm_size);

}  // namespace latecomer::profiles
