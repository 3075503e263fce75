// SPDX-License-Identifier: BSD-3-Clause
// Writes plans and decisions as JSON and reads plans back.
#include "profiles/decisions.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

std::string hex16(std::uint64_t v) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(v));
  return text;
}

Json known(double v) { return v < 0 ? Json(nullptr) : Json(v); }

std::string algorithm_of(int index) { return index < 0 ? "native" : std::string(core::algorithm_at(index).name); }

Json describe(const core::SlotReport& r, int comm_size) {
  Json out;
  out["site"] = SiteKey{r.site, r.signature.op, comm_size}.id();
  out["op"] = core::name_of(r.signature.op);
  out["bytes"] = r.signature.bytes;
  out["calls"] = r.calls;
  out["rule_line"] = r.rule_line > 0 ? Json(r.rule_line) : Json(nullptr);
  out["reason"] = r.reason;
  out["predictor"] = core::name_of(r.forecast.kind);
  out["spread_ns"] = r.forecast.spread;
  out["error_ns"] = r.forecast.error;
  out["last_rank"] = r.forecast.offsets.empty() ? Json(nullptr) : Json(r.forecast.last());
  out["predicted_ns"] = known(r.predicted_ns);
  out["native_predicted_ns"] = known(r.native_predicted_ns);
  out["measured_ns"] = known(r.measured_ns);
  out["native_measured_ns"] = known(r.native_measured_ns);
  return out;
}

}  // namespace

std::string plan_json(std::uint64_t communicator, int comm_size, std::uint64_t announced_at, const core::Plan& plan,
                      const std::vector<core::SlotReport>& reports) {
  Json out = {{"communicator", hex16(communicator)},
              {"comm_size", comm_size},
              {"announced_at", announced_at},
              {"period", plan.period},
              {"first", plan.first}};
  Json slots = Json::array();
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const core::PlanEntry& e = plan.entries[i];
    Json slot = {{"signature", hex16(e.signature)},
                 {"algorithm", algorithm_of(e.algorithm)},
                 {"segments", e.segments},
                 {"overlap", e.overlap != 0},
                 {"pattern", e.pattern < 0 ? Json(nullptr) : Json(e.pattern)},
                 {"sizes", e.sizes < 0 ? Json(nullptr) : Json(e.sizes)}};
    if (e.trial != 0) slot["trial_calls"] = e.trial;
    const core::SlotReport* report = nullptr;
    if (plan.period != 0 && reports.size() == plan.entries.size() && reports[i].signature.hash() == e.signature)
      report = &reports[i];
    else
      for (const auto& r : reports)
        if (!report && r.signature.hash() == e.signature) report = &r;
    if (report) slot.update(describe(*report, comm_size));
    slots.push_back(std::move(slot));
  }
  out["slots"] = std::move(slots);
  out["patterns_ns"] = plan.patterns;
  out["sizes_bytes"] = plan.sizes;
  return out.dump();
}

bool is_of_world(std::string_view plan) {
  return plan.starts_with("{\"communicator\":\"" + hex16(kWorldIdentity) + '"');
}

std::string decision_json(const core::SlotReport& r, int comm_size) {
  Json out = describe(r, comm_size);
  out["algorithm"] = algorithm_of(r.algorithm);
  return out.dump();
}

core::Result<History> read_history(const std::string& path, int ranks) {
  std::ifstream in(path);
  if (!in) return core::Error{"history: cannot read '" + path + "'"};
  const Json profile = Json::parse(in, nullptr, false);
  if (!profile.is_object() || profile.value("format", "") != "latecomer-profile")
    return core::Error{"history: '" + path + "' is not a latecomer profile"};
  History out;
  try {
    if (const int before = profile.at("job").at("ranks"); before != ranks)
      return core::Error{"history: '" + path + "' holds a job of " + std::to_string(before) +
                         " ranks, but this job has " + std::to_string(ranks) + " ranks"};
    for (const Json& site : profile.at("sites")) {
      if (site.at("comm_size") != ranks || site.at("ranks").size() != static_cast<std::size_t>(ranks)) continue;
      std::vector<Nanoseconds> offsets;
      for (const Json& row : site.at("ranks"))
        offsets.push_back(static_cast<Nanoseconds>(row.at("mean_offset_ns").get<double>()));
      out.offsets[site.at("id").get<std::string>()] = std::move(offsets);
    }
    for (const Json& plan : profile.at("plans")) {
      if (plan.at("communicator") != hex16(kWorldIdentity) || plan.at("comm_size") != ranks) continue;
      core::Plan read;
      read.period = plan.at("period"), read.first = plan.at("first");
      read.patterns = plan.at("patterns_ns").get<std::vector<std::vector<Nanoseconds>>>();
      read.sizes = plan.value("sizes_bytes", std::vector<std::vector<Bytes>>{});
      for (const Json& slot : plan.at("slots")) {
        core::PlanEntry e;
        e.signature = std::stoull(slot.at("signature").get<std::string>(), nullptr, 16);
        if (const auto op = core::find_collective(slot.at("op").get<std::string>()))
          e.algorithm = core::index_of(core::find_algorithm(*op, slot.at("algorithm").get<std::string>()));
        e.segments = slot.at("segments"), e.overlap = slot.at("overlap").get<bool>();
        if (!slot.at("pattern").is_null()) e.pattern = slot.at("pattern");
        if (slot.contains("sizes") && !slot.at("sizes").is_null()) e.sizes = slot.at("sizes");
        e.trial = slot.value("trial_calls", std::uint16_t{0});
        read.entries.push_back(e);
      }
      // The parser of plans in bytes checks that a plan is sound.
      core::Plan sound;
      if (core::Plan::deserialize(read.serialize(), ranks, sound)) out.plan = std::move(sound);
    }
  } catch (const std::exception& e) {
    return core::Error{"history: '" + path + "' does not have the structure of a profile: " + e.what()};
  }
  return out;
}

}  // namespace latecomer::profiles
