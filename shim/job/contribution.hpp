// SPDX-License-Identifier: BSD-3-Clause
// This process's contribution to the profile.
#pragma once

#include "shim/state/shared.hpp"

namespace latecomer::shim {

/// Fills the head of the profile as far as it is known at start.
void describe_job();

/// Takes over the frames of new sites.
void take_frames(const JobLock& lock);

/// Takes over the texts of new warnings.
void take_warnings(const JobLock& lock);

/// Brings this process's contribution up to date.
void refresh_contribution(const JobLock& lock, bool finished);

}  // namespace latecomer::shim
