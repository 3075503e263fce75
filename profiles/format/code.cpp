// SPDX-License-Identifier: BSD-3-Clause
// Writes the key `code` of a profile.
#include "profiles/format/code.hpp"

#include <algorithm>
#include <map>

#include "core/base/text.hpp"
#include "profiles/format/callers.hpp"
#include "profiles/format/profile_keys.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> known_id(std::uint64_t id) {
  return id == 0 ? std::nullopt : std::optional(core::hex16(id));
}

}  // namespace

Json code_json(const Merged& all, int per_row) {
  std::map<std::uint64_t, std::uint64_t> sums;
  for (const auto& [key, rows] : all.code.samples)
    for (const auto& [row, samples] : rows) sums[key.place] += samples;
  std::vector<std::pair<std::uint64_t, const CodePlace*>> order;
  for (const auto& [site, place] : all.places)
    if (const auto sum = sums.find(site); sum != sums.end()) order.emplace_back(sum->second, &place);
  std::ranges::stable_sort(order, std::greater(), [](const auto& one) { return one.first; });
  std::map<std::uint64_t, std::size_t> index;
  Json out = {{"places", Json::array()}, {"samples", Json::array()}, {"stretches", Json::array()}};
  for (const auto& [samples, place] : order) {
    index.emplace(place->frame.site, index.size());
    out["places"].push_back(
        kPlaceKeys.json(PlaceRow{frame_json(place->frame), core::hexadecimal(place->start), samples}));
  }
  for (const auto& [key, rows] : all.code.samples) {
    const auto known = index.find(key.place);
    SamplesRow one{.place = {},
                   .next = known_id(key.next),
                   .collective = known_id(key.collective),
                   .by_rank = Json::array(),
                   .others = key.others != 0};
    if (known != index.end()) one.place = known->second;
    for (const auto& [row, samples] : rows)
      one.by_rank.push_back(kRankSamplesKeys.json(SamplesOfRank{row * per_row, samples}));
    out["samples"].push_back(kSamplesKeys.json(one));
  }
  for (const auto& [key, rows] : all.code.stretches) {
    StretchesRow one{known_id(key.from), known_id(key.to), known_id(key.collective), Json::array()};
    for (const auto& [row, sums] : rows)
      one.by_rank.push_back(kRankStretchesKeys.json(StretchesOfRank{row * per_row, sums.stretches, sums.time}));
    out["stretches"].push_back(kStretchesKeys.json(one));
  }
  return out;
}

}  // namespace latecomer::profiles
