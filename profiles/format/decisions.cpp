// SPDX-License-Identifier: BSD-3-Clause
// Writes plans and decisions as JSON and reads plans back.
#include "profiles/format/decisions.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/algorithms/segments.hpp"
#include "core/base/file.hpp"
#include "profiles/base/json.hpp"

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
  return json_text(out);
}

namespace {
constexpr std::string_view kCommunicator = "{\"communicator\":\"";
}
std::string_view communicator_of(std::string_view plan) { return plan.substr(0, kCommunicator.size() + 16); }
bool is_of_world(std::string_view plan) {
  return communicator_of(plan) == std::string(kCommunicator) + hex16(kWorldIdentity);
}

std::string decision_json(const core::SlotReport& r, int comm_size) {
  Json out = describe(r, comm_size);
  out["algorithm"] = algorithm_of(r.algorithm);
  return json_text(out);
}

namespace {

// Derived: sums of these over 2^19 ranks fit into 64 bits. A rank is late by 2.4 h, a block has 8 TiB.
constexpr std::int64_t kMostLate = std::int64_t{1} << 43, kMostBlock = std::int64_t{1} << 43;

/// A value of a file that anybody may have written. Each function throws, with the place of the value, if the value
/// does not have the type that the function returns. A value refers to the value that contains it.
class Value {
 public:
  explicit Value(const Json& json) : json_(json) {}
  Value at(const char* key) const {
    if (!has(key)) throw std::runtime_error(Value(json_, this, key, 0).place() + " is missing");
    return {json_.at(key), this, key, 0};
  }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  bool null() const { return json_.is_null(); }
  std::size_t size() const {
    if (!json_.is_array()) refuse("an array");
    return json_.size();
  }
  Value operator[](std::size_t i) const { return {json_.at(i), this, nullptr, i}; }
  std::string text() const {
    if (!json_.is_string()) refuse("a text");
    return json_.get<std::string>();
  }
  bool boolean() const {
    if (!json_.is_boolean()) refuse("true or false");
    return json_.get<bool>();
  }
  /// A time after the first arrival. Greater times do not help a plan.
  Nanoseconds offset() const {
    if (!json_.is_number()) refuse("a time in ns");
    return static_cast<Nanoseconds>(std::clamp(json_.get<double>(), 0.0, static_cast<double>(kMostLate)));
  }
  template <typename Number>
  Number whole(std::int64_t least, std::int64_t most) const {
    const bool large = json_.is_number_unsigned() && json_.get<std::uint64_t>() > INT64_MAX;
    const std::int64_t out = json_.is_number_integer() && !large ? json_.get<std::int64_t>() : least - 1;
    if (out < least || out > most)
      refuse("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return static_cast<Number>(out);
  }
  /// 16 hexadecimal digits.
  std::uint64_t hash() const {
    const std::string digits = text();
    std::uint64_t out = 0;
    if (digits.size() != 16 ||
        std::from_chars(digits.data(), digits.data() + digits.size(), out, 16).ptr != digits.data() + digits.size())
      refuse("16 hexadecimal digits");
    return out;
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    std::string shown = json_text(json_);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    throw std::runtime_error(place() + ": expected " + expected + ", got " + shown);
  }

 private:
  Value(const Json& json, const Value* in, const char* key, std::size_t index)
      : json_(json), in_(in), key_(key), index_(index) {}
  std::string place() const {
    if (!in_) return "the file";
    std::string before = in_->in_ ? in_->place() : "";
    if (!key_) return before + "[" + std::to_string(index_) + "]";
    return before + (before.empty() ? "" : ".") + key_;
  }

  const Json& json_;
  const Value* in_ = nullptr;
  const char* key_ = nullptr;  // of an object; else index_ in an array
  std::size_t index_ = 0;
};

/// Rows of one number per rank.
template <typename Number>
std::vector<std::vector<std::int64_t>> rows_of(const Value& rows, int ranks, Number number) {
  std::vector<std::vector<std::int64_t>> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Value row = rows[i];
    if (row.size() != static_cast<std::size_t>(ranks)) row.refuse(std::to_string(ranks) + " numbers");
    auto& to = out.emplace_back();
    for (std::size_t r = 0; r < row.size(); ++r) to.push_back(number(row[r]));
  }
  return out;
}

core::Plan read_plan(const Value& plan, int ranks) {
  core::Plan out;
  out.period = plan.at("period").whole<std::uint64_t>(0, INT64_MAX);
  out.first = plan.at("first").whole<std::uint64_t>(0, INT64_MAX);
  out.patterns = rows_of(plan.at("patterns_ns"), ranks, [](const Value& v) { return v.offset(); });
  if (plan.has("sizes_bytes"))
    out.sizes =
        rows_of(plan.at("sizes_bytes"), ranks, [](const Value& v) { return v.whole<std::int64_t>(0, kMostBlock); });
  const Value slots = plan.at("slots");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Value slot = slots[i];
    core::PlanEntry& e = out.entries.emplace_back();
    e.signature = slot.at("signature").hash();
    if (slot.has("op"))
      if (const auto op = core::find_collective(slot.at("op").text()))
        e.algorithm = core::index_of(core::find_algorithm(*op, slot.at("algorithm").text()));
    e.segments = slot.at("segments").whole<std::int32_t>(0, core::kMostSegments);
    e.overlap = slot.at("overlap").boolean();
    if (!slot.at("pattern").null()) e.pattern = slot.at("pattern").whole<std::int32_t>(0, INT32_MAX);
    if (slot.has("sizes") && !slot.at("sizes").null()) e.sizes = slot.at("sizes").whole<std::int32_t>(0, INT32_MAX);
    if (slot.has("trial_calls")) e.trial = slot.at("trial_calls").whole<std::uint16_t>(0, UINT16_MAX);
  }
  return out;
}

History read_profile(const Value& profile, int ranks) {
  History out;
  if (const int before = profile.at("job").at("ranks").whole<int>(1, INT32_MAX); before != ranks)
    throw std::runtime_error("holds a job of " + std::to_string(before) + " ranks, but this job has " +
                             std::to_string(ranks) + " ranks");
  const Value sites = profile.at("sites"), plans = profile.at("plans");
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Value site = sites[i], rows = site.at("ranks");
    if (site.at("comm_size").whole<int>(0, INT32_MAX) != ranks || rows.size() != static_cast<std::size_t>(ranks))
      continue;
    std::vector<Nanoseconds> offsets;
    for (std::size_t r = 0; r < rows.size(); ++r) offsets.push_back(rows[r].at("mean_offset_ns").offset());
    out.offsets[site.at("id").text()] = std::move(offsets);
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Value plan = plans[i];
    if (plan.at("communicator").text() != hex16(kWorldIdentity) ||
        plan.at("comm_size").whole<int>(0, INT32_MAX) != ranks)
      continue;
    // The parser of plans in bytes checks that a plan is sound.
    core::Plan sound;
    if (core::Plan::deserialize(read_plan(plan, ranks).serialize(), ranks, sound)) out.plan = std::move(sound);
  }
  return out;
}

}  // namespace

core::Result<History> read_history(const std::string& path, int ranks) {
  const auto text = core::read_file(path);
  if (!text) return core::Error{"history: " + text.error()};
  const auto profile = parse_json(*text);
  if (!profile) return core::Error{"history: '" + path + "', " + profile.error()};
  if (!profile->is_object() || profile->value("format", Json()) != "latecomer-profile")
    return core::Error{"history: '" + path + "' is not a latecomer profile"};
  try {
    return read_profile(Value(*profile), ranks);
  } catch (const std::exception& e) {
    return core::Error{"history: '" + path + "': " + e.what()};
  }
}

}  // namespace latecomer::profiles
