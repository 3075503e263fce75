// SPDX-License-Identifier: BSD-3-Clause
// Writes the key `code` of a profile.
#include "profiles/format/code.hpp"

#include <algorithm>
#include <map>

#include "core/base/text.hpp"
#include "profiles/format/callers.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

Json id_json(std::uint64_t id) { return id == 0 ? Json(nullptr) : Json(core::hex16(id)); }

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
    out["places"].push_back({{"frame", frame_json(place->frame)},
                             {"function_offset", core::hexadecimal(place->start)},
                             {"samples", samples}});
  }
  const auto rank_of = [&](std::int32_t row) { return row * per_row; };
  for (const auto& [key, rows] : all.code.samples) {
    const auto known = index.find(key.place);
    Json one = {{"place", known == index.end() ? Json(nullptr) : Json(known->second)},
                {"next", id_json(key.next)},
                {"collective", id_json(key.collective)},
                {"by_rank", Json::array()}};
    if (key.others != 0) one["other_threads"] = true;
    for (const auto& [row, samples] : rows) one["by_rank"].push_back({{"rank", rank_of(row)}, {"samples", samples}});
    out["samples"].push_back(std::move(one));
  }
  for (const auto& [key, rows] : all.code.stretches) {
    Json one = {{"from", id_json(key.from)},
                {"to", id_json(key.to)},
                {"collective", id_json(key.collective)},
                {"by_rank", Json::array()}};
    for (const auto& [row, sums] : rows)
      one["by_rank"].push_back({{"rank", rank_of(row)}, {"stretches", sums.stretches}, {"time_ns", sums.time}});
    out["stretches"].push_back(std::move(one));
  }
  return out;
}

}  // namespace latecomer::profiles
