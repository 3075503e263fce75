// SPDX-License-Identifier: BSD-3-Clause
// A few short stretches of the recorded calls for the HTML page: the calls around those with the longest waits, on a
// bounded number of ranks, so that the page stays small.
#pragma once

#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// Empty if no rank waited in a recorded call. A stretch ends where the record lacks calls.
Json page_stretches(const RecordedArrivals& record);

}  // namespace latecomer::profiles
