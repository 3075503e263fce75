// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads the last state. Times in the file are ages, because its readers have other clocks.
#include "profiles/format/last_state.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/base/text.hpp"
#include "core/collective/collective.hpp"
#include "profiles/record/job_size.hpp"
#include "profiles/record/live.hpp"
#include "profiles/record/timed_site.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::profiles {
namespace {

using analysis::LiveRank;

/// The letters that stand for the names when a profile is read.
constexpr std::pair<char, std::string_view> kStates[] = {
    {'R', "running"}, {'S', "asleep"}, {'T', "stopped"}, {'X', "gone"}, {'?', "?"}};
constexpr const char *kOutside = "outside", *kCollective = "collective", *kFinalize = "finalize";

std::uint64_t number_of(const Json& text) { return std::strtoull(text.get<std::string>().c_str(), nullptr, 16); }

bool is_known_call(int call) { return call >= 0 && call < static_cast<int>(std::size(kMpiCalls)); }
Json known_site(std::uint64_t site) { return site == 0 ? Json(nullptr) : Json(core::hexadecimal(site)); }

Json row_of(const LiveRank& r) {
  const auto known = [](bool is, std::int64_t value) { return is ? Json(value) : Json(nullptr); };
  const bool seen = r.looked > 0, called = r.comm_size > 0;
  return {{"rank", r.rank},
          {"host", r.host},
          {"pid", r.pid},
          {"state", process_state_name(r.state)},
          {"inside", r.inside == 1                       ? kCollective
                     : r.inside == LiveLine::kFinalizing ? kFinalize
                                                         : kOutside},
          {"op", called && r.op < core::kCollectives ? Json(core::kCollectiveNames[static_cast<std::size_t>(r.op)])
                                                     : Json(nullptr)},
          {"call", r.n},
          {"communicator", core::hexadecimal(r.communicator)},
          {"comm_size", r.comm_size},
          {"root", known(r.root >= 0, r.root)},
          {"bytes", known(r.bytes >= 0, r.bytes)},
          {"site", core::hexadecimal(r.site)},
          {"since_ns", known(seen && r.since > 0, std::max<std::int64_t>(0, r.looked - r.since))},
          {"in_message", r.message != 0},
          {"message_ns", known(seen && r.message > 0, std::max<std::int64_t>(0, r.looked - r.message))},
          {"message_call", is_known_call(r.message_call) ? Json(kMpiCalls[r.message_call].name) : Json(nullptr)},
          {"message_site", known_site(r.message_site)},
          {"message_peer", known(r.message_peer >= 0, r.message_peer)},
          {"message_tag", known(r.message_tag >= 0, r.message_tag)},
          {"watched_ns", known(r.watched >= 0, r.watched)}};
}

LiveRank rank_of(const Json& row, int ranks) {
  constexpr std::int64_t kMost = 1'000'000'000'000'000'000;  // only a damaged profile has more
  const auto known = [&](const char* key) {
    return row[key].is_null() ? -1 : std::min(kMost, row[key].get<std::int64_t>());
  };
  LiveRank r;
  r.rank = row["rank"].get<int>();
  r.ranks = ranks;
  r.host = row["host"].get<std::string>();
  r.pid = row["pid"].get<int>();
  for (const auto& [letter, name] : kStates)
    if (row["state"].get<std::string>() == name) r.state = letter;
  const auto inside = row["inside"].get<std::string>();
  r.inside = inside == kCollective ? 1 : inside == kFinalize ? LiveLine::kFinalizing : 0;
  r.op = core::kCollectives;  // of an unknown name
  if (const Json& op = row["op"]; !op.is_null())
    if (const auto found = core::find_collective(op.get<std::string>())) r.op = static_cast<int>(*found);
  r.n = row["call"].get<std::uint64_t>();
  r.communicator = number_of(row["communicator"]);
  r.site = number_of(row["site"]);
  r.comm_size = row["comm_size"].get<int>();
  r.root = static_cast<int>(known("root"));
  r.bytes = known("bytes");
  r.watched = known("watched_ns");
  r.moves = r.watched >= 0 && r.watched < analysis::kStandsStill_ns;
  // The time of the look, on a clock of its own: later than all known times of the rank.
  const std::int64_t since = known("since_ns"), message = known("message_ns");
  if (since >= 0 || message >= 0 || r.watched >= 0) r.looked = std::max({since, message, r.watched}) + 1;
  if (since >= 0) r.since = r.looked - since;
  // Absent in profiles of earlier versions.
  if (const Json call = row.value("message_call", Json()); call.is_string()) {
    const auto text = call.get<std::string>();
    const auto found = std::ranges::find(kMpiCalls, std::string_view(text), &MpiCall::name);
    if (found != std::end(kMpiCalls)) r.message_call = static_cast<int>(found - kMpiCalls);
  }
  if (const Json site = row.value("message_site", Json()); site.is_string()) r.message_site = number_of(site);
  const auto number = [&](const char* key) {
    const Json value = row.value(key, Json());
    return value.is_number() ? value.get<int>() : -1;
  };
  r.message_peer = number("message_peer");
  r.message_tag = number("message_tag");
  if (row["in_message"].get<bool>()) r.message = message >= 0 ? r.looked - message : -1;
  return r;
}

}  // namespace

std::string_view process_state_name(char letter) {
  if (letter == 'D' || letter == 'I') letter = 'S';
  if (letter == 't') letter = 'T';
  for (const auto& [one, name] : kStates)
    if (one == letter) return name;
  return "?";
}

Json last_state_json(const analysis::LiveState& state) {
  Json out = {{"states", Json::array()}, {"places", Json::array()}};
  for (const LiveRank& r : state.ranks) out["states"].push_back(row_of(r));
  for (const auto& [site, frame] : state.places)
    out["places"].push_back({{"site", core::hexadecimal(site)}, {"frames", {frame_json(frame)}}});
  return out;
}

analysis::LiveState last_state_of(const Json& profile) {
  analysis::LiveState out;
  const auto found = profile.find("last_state");
  if (found == profile.end()) return out;
  const int ranks = profile["job"]["ranks"].get<int>();
  for (const Json& row : (*found)["states"])
    if (is_rank_of(row["rank"].get<int>(), ranks)) out.ranks.push_back(rank_of(row, ranks));
  for (const Json& place : (*found)["places"]) out.places[number_of(place["site"])] = frame_of(place["frames"][0]);
  out.ended = true;
  return out;
}

}  // namespace latecomer::profiles
