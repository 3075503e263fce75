// SPDX-License-Identifier: BSD-3-Clause
// Writes the kinds of waits.
#include "profiles/format/message_kinds.hpp"

#include "profiles/format/profile_keys.hpp"

namespace latecomer::profiles {

using Json = nlohmann::ordered_json;

KindsOfSites::KindsOfSites(const Merged& all, int per_row) {
  for (const auto& [at, kinds] : all.messages.sums(per_row)) {
    MessageMatches::Where where = at;
    if (!all.timed.contains(where.site)) where.site = {};
    sums_[where].merge(kinds);
  }
}

void KindsOfSites::add_to_site(Json& site, const TimedKey& key) const {
  MessageKinds all;
  for (auto at = sums_.lower_bound({key, INT32_MIN, INT32_MIN}); at != sums_.end() && at->first.site == key; ++at)
    all.merge(at->second);
  if (all.messages > 0) site["kinds"] = kMessageKindKeys.json(all);
}

void KindsOfSites::add_to_row(Json& json, const TimedKey& key, std::int32_t row) const {
  for (auto at = sums_.lower_bound({key, row, INT32_MIN});
       at != sums_.end() && at->first.site == key && at->first.row == row; ++at) {
    Json one = Json::object();
    if (at->first.peer >= 0) one["rank"] = at->first.peer;
    kMessageKindKeys.write(one, at->second);
    json["kinds"].push_back(std::move(one));
  }
}

}  // namespace latecomer::profiles
