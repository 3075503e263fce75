// SPDX-License-Identifier: BSD-3-Clause
// The roll call of ranks that share a host's memory.
#pragma once

namespace latecomer::shim {

/// Confirms the same with a few requests per host. Returns true on all ranks or on none. After false, a rank asks the
/// name service by itself.
bool meet_in_rooms(int rank, int size, double timeout_s);

}  // namespace latecomer::shim
