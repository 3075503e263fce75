// SPDX-License-Identifier: BSD-3-Clause
// The file for Prometheus.
#pragma once

#include "shim/state/job.hpp"

namespace latecomer::shim {

/// Sets the path of the file.
void begin_prometheus(Job& j);
/// Writes the figures of the calls that this process has matched as a leader, if the policy asks for them. The caller
/// holds the lock.
void write_prometheus(Job& j);
/// At the end of the job.
void remove_prometheus(Job& j);

}  // namespace latecomer::shim
