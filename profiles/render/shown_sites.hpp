// SPDX-License-Identifier: BSD-3-Clause
// The call sites that an output shows, in its order. The profile stays whole, so what an output says about the run does
// not depend on the sites that it shows.
#pragma once

#include <vector>

#include "profiles/analysis/profile.hpp"

namespace latecomer::profiles {

struct ShownSites {
  std::vector<const Site*> collectives;
  std::vector<const analysis::TimedCalls*> timed, threads;  ///< those of Profile::timed_sites, and of thread_sites

  /// All sites of the profile, which has to outlive them, in its order.
  explicit ShownSites(const Profile& profile) {
    for (const Site& site : profile.sites) collectives.push_back(&site);
    for (const analysis::TimedCalls& site : profile.timed_sites) timed.push_back(&site);
    for (const analysis::TimedCalls& site : profile.thread_sites) threads.push_back(&site);
  }
};

}  // namespace latecomer::profiles
