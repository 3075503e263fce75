// SPDX-License-Identifier: BSD-3-Clause
// This process's contribution to the profile.
#pragma once

#include "shim/state/job.hpp"

namespace latecomer::shim {

/// Fills the head of the profile as far as it is known at start.
void describe_job(Job& j);

/// Takes over the frames of new sites. The caller holds the lock.
void take_frames(Job& j);

/// Takes over the texts of new warnings.
void take_warnings(Job& j);

/// Brings this process's contribution up to date. The caller holds the lock.
void refresh(Job& j, bool finished);

}  // namespace latecomer::shim
