// SPDX-License-Identifier: BSD-3-Clause
// The walk along the stack: how many frames it gives, and the rules that it has learned.
#pragma once

namespace latecomer::shim {

/// The number of frames per site, and with those of its callers.
extern int frames_per_site __attribute__((visibility("hidden")));
extern int frames_per_call __attribute__((visibility("hidden")));

/// Clears the rules of all return addresses. The caller holds the mutex.
void forget_rules();

}  // namespace latecomer::shim
