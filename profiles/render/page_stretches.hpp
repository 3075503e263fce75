// SPDX-License-Identifier: BSD-3-Clause
// A few short stretches of the recorded calls for the HTML page: the calls around those with the longest waits, on a
// bounded number of ranks, so that the page stays small.
#pragma once

#include "profiles/format/reader.hpp"

namespace latecomer::cli {

/// Empty if no rank waited in a recorded call. `gap_ns`: the record may lack calls between two calls that begin further
/// apart; a stretch ends there.
Json page_stretches(const RecordedArrivals& record, double gap_ns);

}  // namespace latecomer::cli
