// SPDX-License-Identifier: BSD-3-Clause
// The kinds of waits in a profile's timed sites.
#pragma once

#include <map>
#include <nlohmann/json.hpp>

#include "profiles/record/merged.hpp"

namespace latecomer::profiles {

class KindsOfSites {
 public:
  /// Waits at sites that have no entry of their own count for the entry without a site.
  KindsOfSites(const Merged& all, int per_row);
  /// Adds the key `kinds`, if waits for messages there were kept: of all ranks, or by awaited rank.
  void add_to_site(nlohmann::ordered_json& site, const TimedKey& key) const;
  void add_to_row(nlohmann::ordered_json& json, const TimedKey& key, std::int32_t row) const;

 private:
  MessageMatches::Sums sums_;
};

}  // namespace latecomer::profiles
