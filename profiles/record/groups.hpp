// SPDX-License-Identifier: BSD-3-Clause
// Sums per group of ranks: communicators with the same members in the same order count as one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/collective/collective.hpp"

namespace latecomer::profiles {

struct Group {
  std::vector<core::Rank> ranks;                              ///< of MPI_COMM_WORLD, in the order of the communicator
  std::uint64_t calls = 0;                                    ///< with records of all ranks
  double waited_ns = 0, imbalance_ns = 0, after_last_ns = 0;  ///< sums
  void add(const Group& o) {
    calls += o.calls;
    waited_ns += o.waited_ns;
    imbalance_ns += o.imbalance_ns;
    after_last_ns += o.after_last_ns;
  }
};

/// The members of a communicator, and the index of their group. To find it takes time in proportion to the members, so
/// a leader does that once.
struct Members {
  std::span<const core::Rank> world;  ///< [comm_size], ranks of MPI_COMM_WORLD
  std::uint32_t group;                ///< Groups::of(world)
};

class Groups {
 public:
  /// The group that new members share once the others are kMostMembers in sum. It has no ranks.
  static constexpr std::uint32_t kOther = 0;
  /// Limits the memory of a process. Derived: members of 4 bytes take 4 MiB.
  static constexpr std::size_t kMostMembers = std::size_t{1} << 20;

  Groups() : all_(1) {}
  /// The index of the group with these members, which is added if necessary.
  std::uint32_t of(std::span<const core::Rank> ranks);
  Group& operator[](std::uint32_t index) { return all_[index]; }
  const std::vector<Group>& all() const { return all_; }
  /// The number of members of all groups together.
  std::size_t members() const { return members_; }

 private:
  std::vector<Group> all_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::uint32_t latest_ = kOther;
  std::size_t members_ = 0;
};

/// Ranks as text, ascending: "0-3", or "0-12:4, 15" with a step of 4. Ends with "..." after kMostRuns runs.
std::string ranks_text(std::vector<core::Rank> ranks);

}  // namespace latecomer::profiles
