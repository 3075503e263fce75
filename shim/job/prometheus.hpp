// SPDX-License-Identifier: BSD-3-Clause
// The file for Prometheus.
#pragma once

#include "shim/state/shared.hpp"

namespace latecomer::shim {

/// Sets the path of the file.
void begin_prometheus();
/// Writes the figures of the calls that this process has matched as a leader, if the policy asks for them.
void write_prometheus(const JobLock& lock);
/// At the end of the job.
void remove_prometheus();

}  // namespace latecomer::shim
