// SPDX-License-Identifier: BSD-3-Clause
// Measures what ran on this host beside the job, on the lowest rank of each kernel.
#pragma once

#include <vector>

#include "profiles/base/process.hpp"
#include "profiles/record/record.hpp"

namespace latecomer::shim {

/// On the lowest rank of a kernel. `ranks`: all of the job's on that kernel; `usable`: the cores that some of them may
/// use.
void watch_host(const std::vector<profiles::ProcessId>& ranks, int usable);
/// At the end of MPI_Init. Does nothing on other ranks, and in jobs whose ranks did not compare their hosts.
void begin_host_load();
/// Puts the load since then into the contribution. Reads the processor times of all ranks at once, so it is right at
/// any time, but after the end of a rank their sum is not known.
void refresh_host_load(profiles::Contribution& mine);

}  // namespace latecomer::shim
