// SPDX-License-Identifier: BSD-3-Clause
// The figures of a profile for Prometheus.
#pragma once

#include "profiles/format/prometheus.hpp"
#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// The `sites` sites with the longest waits, the `ranks` ranks that were awaited longest, and per site the `ranks`
/// ranks that came last most often.
Metrics metrics_of(const Profile& profile, int sites, int ranks);

}  // namespace latecomer::profiles
