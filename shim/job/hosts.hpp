// SPDX-License-Identifier: BSD-3-Clause
// The hosts of the ranks, their cores and their clocks.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>

namespace latecomer::shim {

/// Identifies the kernel and its time namespace. Processes that share both read one clock.
std::uint64_t clock_domain();

/// The cores that this process may use; all of the host's if the kernel does not say.
cpu_set_t own_cores();
/// The numbers of these cores, such as "0-3,8".
std::string core_list(const cpu_set_t& cores);

/// Compares the hosts of all ranks: which ranks share cores, and which share clocks.
void survey_hosts();

}  // namespace latecomer::shim
