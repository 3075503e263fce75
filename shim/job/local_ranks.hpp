// SPDX-License-Identifier: BSD-3-Clause
// The ranks of the job on this host.
#pragma once

#include <cstdint>
#include <optional>

namespace latecomer::shim {

/// What the launcher tells about the ranks of this job on this host.
struct LocalRanks {
  std::uint64_t key = 0;  ///< equal in these ranks, different in other jobs of this kernel
  int count = 0;
};
/// Nothing if the launcher does not tell.
std::optional<LocalRanks> local_ranks(int size);

}  // namespace latecomer::shim
