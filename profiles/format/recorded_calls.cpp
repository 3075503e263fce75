// SPDX-License-Identifier: BSD-3-Clause
// Checks the record of arrivals, and computes for each rank the rank that it waited for.
#include "profiles/format/recorded_calls.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "profiles/base/errors.hpp"
#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

/// Sets the rank that each rank waited for, by the definition of the profile's `waited_ns`.
void note_waits(RecordedCall& call) {
  call.awaited.assign(call.arrivals.size(), -1);
  call.wait_ends = call.arrivals;
  if (call.blocking)
    for_each_wait(
        call.op, call.root, call.arrivals.size(), [&](std::size_t i) { return call.arrivals[i]; },
        [&](std::size_t i) { return call.exits[i]; },
        [&](std::size_t waits, std::size_t awaited, core::Nanoseconds spent) {
          call.awaited[waits] = static_cast<std::int32_t>(awaited);
          call.wait_ends[waits] += spent;
        });
  call.last = *std::ranges::max_element(call.arrivals);
}

/// The sites of known collectives by id.
using Sites = std::map<std::string, std::pair<std::size_t, core::Collective>>;

/// nullopt: the profile does not name the site or the members.
std::optional<RecordedCall> call_of(const Json& event, const Sites& sites,
                                    const std::vector<std::vector<core::Rank>>& groups) {
  RecordedCall call;
  call.group = event.at("group").get<std::size_t>();
  const auto site = sites.find(event.at("site").get<std::string>());
  if (call.group >= groups.size()) throw std::out_of_range("no group " + std::to_string(call.group));
  if (groups[call.group].empty() || site == sites.end()) return {};
  std::tie(call.site, call.op) = site->second;
  call.blocking = event.value("blocking", true);
  call.number = event.value("number", std::uint64_t{0});
  call.algorithm = event.at("algorithm").get<std::string>();
  call.bytes = event.at("bytes").get<core::Bytes>();
  call.root = event.at("root").get<core::Rank>();
  call.arrivals = event.at("arrival_ns").get<std::vector<core::Nanoseconds>>();
  call.exits = event.at("exit_ns").get<std::vector<core::Nanoseconds>>();
  const std::size_t ranks = groups[call.group].size();
  if (call.arrivals.size() != ranks || call.exits.size() != ranks)
    throw std::out_of_range("a call has times of " + std::to_string(call.arrivals.size()) + " and " +
                            std::to_string(call.exits.size()) + " ranks, but its communicator has " +
                            std::to_string(ranks));
  for (std::size_t i = 0; i < ranks; ++i)
    if (call.arrivals[i] < 0 || (call.exits[i] >= 0 && call.exits[i] < call.arrivals[i]))
      throw std::out_of_range("a call ends before it begins");
  note_waits(call);
  return call;
}

/// Brings the visits of a rank into order and marks those that overlap: non-blocking calls, or clocks that err.
void order(std::vector<Visit>& visits, const std::vector<RecordedCall>& calls) {
  const auto arrival = [&](const Visit& v) { return calls[v.call].arrivals[v.position]; };
  std::ranges::stable_sort(visits, [&](const Visit& a, const Visit& b) { return arrival(a) < arrival(b); });
  core::Nanoseconds until = 0;
  for (Visit& v : visits) {
    const core::Nanoseconds exit = calls[v.call].exits[v.position];
    v.nested = exit >= 0 && arrival(v) >= until;
    if (v.nested) until = exit;
  }
}

}  // namespace

RecordedArrivals recorded_arrivals(const Json& profile, const std::string& file) {
  const Json& record = profile["arrivals"];
  RecordedArrivals out;
  const auto ranks = profile["job"]["ranks"].get<std::size_t>();
  std::string place = "arrivals.groups";
  try {
    Sites sites;
    for (std::size_t i = 0; i < profile["sites"].size(); ++i) {
      const Json& site = profile["sites"][i];
      out.site_ids.push_back(site["id"].get<std::string>());
      if (const auto op = core::find_collective(site["op"].get<std::string>()))
        sites[site["id"].get<std::string>()] = {i, *op};
    }
    out.window_ns = record.value("window_ns", 0.0);
    out.stride = record.value("stride", 1.0);
    if (const auto sample = record.find("sample"); sample != record.end()) {
      out.sample = sample->at("calls").get<std::uint64_t>();
      out.stride = sample->at("stride").get<double>();
      if (out.sample < 1 || !(out.stride >= 1)) throw std::out_of_range("a sample of no calls");
    }
    out.calls_of_job = record.value("calls", std::uint64_t{0});
    out.groups = record.at("groups").get<std::vector<std::vector<core::Rank>>>();
    for (const auto& group : out.groups)
      for (const core::Rank rank : group)
        if (rank < 0 || static_cast<std::size_t>(rank) >= ranks)
          throw std::out_of_range("the job has no rank " + std::to_string(rank));
    out.ranks.resize(ranks);
    const Json& events = record.at("events");
    for (std::size_t i = 0; i < events.size(); ++i) {
      place = "arrivals.events[" + std::to_string(i) + "]";
      auto read = call_of(events[i], sites, out.groups);
      if (!read) {
        ++out.left_out;
        continue;
      }
      const auto number = static_cast<std::uint32_t>(out.calls.size());
      const RecordedCall& call = out.calls.emplace_back(std::move(*read));
      for (std::uint32_t at = 0; at < call.arrivals.size(); ++at)
        out.ranks[static_cast<std::size_t>(out.groups[call.group][at])].push_back({number, at, false});
    }
  } catch (const std::exception& e) {
    throw BadUsage("'" + file + "' is damaged: " + place + ": " + e.what());
  }
  for (auto& visits : out.ranks) order(visits, out.calls);
  return out;
}

}  // namespace latecomer::profiles
