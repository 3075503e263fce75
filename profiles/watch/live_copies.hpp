// SPDX-License-Identifier: BSD-3-Clause
// A host's copy of the live state of its ranks, as a file in the job's shared folder. Memory mappings over NFS or
// Lustre are not coherent between hosts, but a file that replaces another one by a rename is.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "profiles/watch/live_ranks.hpp"

namespace latecomer::profiles {

/// Writes a file that replaces `path`. `ranks`: of one host and one job, not empty; at most kMostCopied are written.
core::Result<bool> write_live_copy(const std::string& path, const std::vector<LiveRank>& ranks);

/// The ranks of all copies in the folder. Copies that cannot be read are left out. `last_states`: also those of
/// last_state_name().
std::vector<LiveRank> read_live_copies(const std::string& folder, bool last_states = false);

/// Derived: a rank takes 300 bytes, so a copy takes 1.5 MB at most. A host has a few hundred ranks.
inline constexpr std::size_t kMostCopied = 4096;
/// Derived: as many frames as a process keeps, times eight for programs that are not the same on all ranks.
inline constexpr std::size_t kMostFramesCopied = 1024;

/// A frame without a name.
analysis::NamedFrame live_frame(const std::string& module, std::uint64_t offset);

}  // namespace latecomer::profiles
