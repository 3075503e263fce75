// SPDX-License-Identifier: BSD-3-Clause
// The sentence about the figures of the network.
#include "profiles/render/network_text.hpp"

#include "core/base/text.hpp"
#include "profiles/base/text.hpp"

namespace latecomer::profiles {

std::string network_sentence(const Profile& profile) {
  if (!profile.network) return "";
  const core::Network& n = *profile.network;
  const std::string& from = profile.job.network_from;
  std::string out = "Figures of the network";
  if (from == "start" || from == "end") {
    out += from == "end" ? ", measured at the end of this job" : ", measured at the start of this job";
    out += profile.job.hosts == 1 ? " in the shared memory of its host" : " between its hosts";
  } else if (from == "policy") {
    out += ", from the policy of this job";
  }
  return out + ": " + human_time(n.latency_ns + n.alpha_ns + 2 * n.overhead_ns) + " for a small message, " +
         core::significant(n.beta_ns_per_byte, 3) + " ns per byte.";
}

}  // namespace latecomer::profiles
