// SPDX-License-Identifier: BSD-3-Clause
// The way from a call to its compiled schedule on one rank. This file must neither keep schedules nor run them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/agreement/plan.hpp"
#include "core/algorithms/algorithm.hpp"
#include "shim/runner/running.hpp"

namespace latecomer::shim {

/// The inputs of a schedule on one rank of one communicator.
struct ScheduleKey {
  const core::Algorithm* algorithm = nullptr;
  core::Elements count = 0;
  core::Bytes element_bytes = 0;
  int segments = 0, pattern = -1, sizes = -1;
  Rank root = 0;
  bool overlap = true, in_place = false, commutative = true;
  core::Call call(int ranks) const;
  bool operator==(const ScheduleKey&) const = default;
};

/// `world`: [ranks], the communicator's ranks in MPI_COMM_WORLD. `plan`: has the key's pattern; may be nullptr without
/// one.
std::shared_ptr<Compiled> build_schedule(Rank rank, const std::vector<Rank>& world, const ScheduleKey& key,
                                         const core::Plan* plan);
/// For a pattern of the call's own.
std::shared_ptr<Compiled> build_schedule(Rank rank, const std::vector<Rank>& world, const ScheduleKey& key,
                                         const core::Pattern& pattern, const std::vector<core::Bytes>& sizes = {});

/// A schedule of gatherv or scatterv. An element is a block. The root's messages use the blocks where they lie, so its
/// scratch memory is never filled.
std::shared_ptr<Compiled> compile_irregular(core::RankProgram program);

/// Plans that this process has made.
std::uint64_t plans_made();

}  // namespace latecomer::shim
