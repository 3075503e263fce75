// SPDX-License-Identifier: BSD-3-Clause
// Puts the names of functions and lines into the profile of a job that has ended. The program may be moved or rebuilt
// afterwards, and the report still shows them.
#pragma once

#include <string>

namespace latecomer::profiles {

/// Replaces the file by one with names. Leaves the file as it is if no name is found, if the profile is large, after 10
/// seconds, or if a signal comes. Unless `quiet`, says so where the user can do something about it. The caller goes on
/// in each case.
void name_profile(const std::string& path, bool quiet = false);

}  // namespace latecomer::profiles
