// SPDX-License-Identifier: BSD-3-Clause
// The trace-event format of ui.perfetto.dev and chrome://tracing.
#pragma once

#include "profiles/files/shared_folder.hpp"
#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// Writes a process per host and a thread per rank. Each recorded call is a slice from arrival to exit. Inside it lie
/// the slices `waiting`, up to the arrival of the awaited rank, and `after the last arrival`. An arrow leads from the
/// awaited rank's arrival to the end of each wait for it. A call that overlaps an earlier one of its rank has an
/// asynchronous track, and a call without a known exit is an instant.
void write_perfetto(const Profile& profile, const RecordedArrivals& record, const Sink& sink);

}  // namespace latecomer::profiles
