// SPDX-License-Identifier: BSD-3-Clause
// Checks the part of JSON Schema that profile.schema.json uses. It ignores `pattern`: every reader accepts any text.
#include "profiles/format/shape.hpp"

#include <algorithm>
#include <profile_schema.hpp>  // generated: kProfileSchema

#include "profiles/format/profile_keys.hpp"

namespace latecomer::profiles {
namespace {

bool has_type(const nlohmann::json& value, const std::string& type) {
  return type == "object"    ? value.is_object()
         : type == "array"   ? value.is_array()
         : type == "string"  ? value.is_string()
         : type == "boolean" ? value.is_boolean()
         : type == "integer" ? value.is_number_integer()
         : type == "number"  ? value.is_number()
                             : type == "null" && value.is_null();
}

std::string shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

class Shape {
 public:
  explicit Shape(const nlohmann::json& schema) : definitions_(schema["$defs"]) {}

  std::string problem(const nlohmann::json& schema, const nlohmann::json& value, const std::string& place) const {
    if (schema.contains("$ref")) {
      const auto reference = schema["$ref"].get<std::string>();
      const std::string name = reference.substr(reference.rfind('/') + 1);
      return problem(definitions_[name], value, place);
    }
    if (schema.contains("anyOf")) return any_of(schema["anyOf"], value, place);
    if (schema.contains("const") && value != schema["const"]) return expected(schema["const"].dump(), value, place);
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      return expected("one of " + schema["enum"].dump(), value, place);
    if (schema.contains("type") && !has_type(value, schema["type"])) return expected(schema["type"], value, place);
    if (schema.contains("minimum") && value < schema["minimum"])
      return expected("at least " + schema["minimum"].dump(), value, place);
    if (value.is_number() && !is_sane(value.get<double>())) return expected("a number below 2^62", value, place);
    if (value.is_object()) return members(schema, value, place);
    if (value.is_array()) return elements(schema, value, place);
    return "";
  }

 private:
  static std::string expected(const std::string& what, const nlohmann::json& value, const std::string& place) {
    return (place.empty() ? "the file" : place) + ": expected " + what + ", got " + shown(value);
  }
  std::string any_of(const nlohmann::json& schemas, const nlohmann::json& value, const std::string& place) const {
    std::string first;
    for (const nlohmann::json& one : schemas) {
      const std::string why = problem(one, value, place);
      if (why.empty()) return "";
      if (first.empty()) first = why;
    }
    return first;
  }
  std::string members(const nlohmann::json& schema, const nlohmann::json& value, const std::string& place) const {
    const std::string before = place.empty() ? "" : place + ".";
    for (const nlohmann::json& key : schema.value("required", nlohmann::json::array()))
      if (!value.contains(key.get_ref<const std::string&>())) return before + key.get<std::string>() + " is missing";
    const nlohmann::json none = nlohmann::json::object();
    const auto known = schema.find("properties");
    const nlohmann::json& properties = known == schema.end() ? none : *known;
    const auto others = schema.find("additionalProperties");
    for (const auto& [key, member] : value.items()) {
      const auto of = properties.find(key);
      std::string why;
      if (of != properties.end()) why = problem(*of, member, before + key);
      else if (others != schema.end() && others->is_object()) why = problem(*others, member, before + key);
      if (!why.empty()) return why;
    }
    return "";
  }
  std::string elements(const nlohmann::json& schema, const nlohmann::json& value, const std::string& place) const {
    if (schema.contains("minItems") && value.size() < schema["minItems"])
      return place + ": expected at least " + schema["minItems"].dump() + " elements, got " +
             std::to_string(value.size());
    const auto of = schema.find("items");
    for (std::size_t i = 0; of != schema.end() && i < value.size(); ++i)
      if (std::string why = problem(*of, value[i], place + "[" + std::to_string(i) + "]"); !why.empty()) return why;
    return "";
  }

  const nlohmann::json& definitions_;
};

/// Checks a rule that the schema cannot express: a histogram has one edge more than counts, or neither.
std::string histogram_problem(const nlohmann::json& site, const std::string& place) {
  for (const char* name : {"imbalance_ns", "elapsed_ns", "after_last_ns"})
    if (const nlohmann::json& h = site[name];
        h["edges"].size() != h["counts"].size() + 1 && !(h["edges"].empty() && h["counts"].empty()))
      return place + "." + name + ": expected one edge more than counts, got " + std::to_string(h["edges"].size()) +
             " and " + std::to_string(h["counts"].size());
  return "";
}

}  // namespace

nlohmann::ordered_json profile_schema() {
  auto out = nlohmann::ordered_json::parse(kProfileSchema);
  auto &all = out["properties"], &own = out["$defs"];
  const auto one_of = [](auto& property) -> auto& { return property["anyOf"][0]; };
  const auto rows_of = [](auto& object, const char* name) -> auto& { return object["properties"][name]["items"]; };
  auto& process = all["processes"]["items"];
  kClockKeys.describe<Member>(all["clock"]["items"]);
  kProcessKeys.describe<Process>(process);
  kRunKeys.describe<ProcessOfRank>(process);
  kThreadKeys.describe<ThreadSums>(own["thread_row"]);
  kSamplingKeys.describe<SamplesTaken>(process["properties"]["sampling"]);
  kOtherSamplingKeys.describe<SamplesTaken>(process["properties"]["sampling"]["properties"]["other_threads"]);
  kUncountedKeys.describe<UncountedRow>(all["not_counted"]["items"]);
  kHostLoadKeys.describe<HostLoad>(all["hosts"]["items"]["properties"]["load"]);
  kRankSumKeys.describe<SumsOfRank>(all["rank_sums"]["items"]);
  kPairKeys.describe<PairOfRanks>(rows_of(all["pairs"], "rows"));
  kCommunicatorKeys.describe<Group>(all["communicators"]["items"]);
  kJobKeys.describe<JobRow>(all["job"]);
  auto& job = all["job"]["properties"];
  kReachKeys.describe<Reach>(one_of(job["snapshots"]));
  kEdgeKeys.describe<EdgeSums>(one_of(job["edges"]));
  kPromisedKeys.describe<core::Promised>(one_of(job["promised"]));
  kHistoryKeys.describe<HistoryUse>(one_of(job["history"]));
  kFirstCallKeys.describe<FirstCall>(one_of(job["first_call"]));
  kIntervalKeys.describe<Intervals>(own["intervals"]);
  kRankRowKeys.describe<ArrivalsOfRow>(own["rank"]);
  kCallerRowKeys.describe<ArrivalsOfRow>(rows_of(own["caller"], "awaited"));
  for (const char* of : {"site", "caller"}) kBytesKeys.describe<LocalSite>(one_of(own[of]["properties"]["bytes"]));
  kSiteKeys.describe<SiteHead>(own["site"]);
  kSiteSumKeys.describe<SiteSums>(own["site"]);
  kCallerKeys.describe<CallerRow>(own["caller"]);
  kDispatchKeys.describe<DispatchRow>(own["dispatch"]);
  kSourceKeys.describe<SourceRow>(own["pattern_source"]);
  kTimedHeadKeys.describe<TimedHead>(own["timed_site"]);
  kLengthsKeys.describe<Lengths>(own["timed_site"]);
  kLengthKeys.describe<LengthRow>(rows_of(own["timed_site"], "lengths"));
  kTimedRowKeys.describe<RowOfRanks>(own["timed_row"]);
  kTimedKeys.describe<TimedSums>(own["timed_row"]);
  kTimedKeys.describe<TimedSums>(own["timed_site"]);
  kMessageKindKeys.describe<MessageKinds>(own["timed_kinds"]);
  kDecisionKeys.describe<core::SlotReport>(own["decision"]);
  kPlanKeys.describe<PlanRow>(own["plan"]);
  auto& slot = rows_of(own["plan"], "slots");
  kSlotKeys.describe<core::PlanEntry>(slot);
  kTurnKeys.describe<core::PlanEntry>(rows_of(slot, "rota"));
  kDecisionKeys.describe<core::SlotReport>(slot, true);
  auto& code = all["code"];
  kPlaceKeys.describe<PlaceRow>(rows_of(code, "places"));
  kSamplesKeys.describe<SamplesRow>(rows_of(code, "samples"));
  kRankSamplesKeys.describe<SamplesOfRank>(rows_of(rows_of(code, "samples"), "by_rank"));
  kStretchesKeys.describe<StretchesRow>(rows_of(code, "stretches"));
  kRankStretchesKeys.describe<StretchesOfRank>(rows_of(rows_of(code, "stretches"), "by_rank"));
  for (auto* of : {&all["processes"]["items"], &own["intervals"], &own["timed_row"]})
    kWaitForKeys.describe<WaitFor>(rows_of(*of, "waits_for"));
  return out;
}

std::string profile_shape_problem(const nlohmann::json& profile) {
  static const nlohmann::json schema = profile_schema();
  std::string why = Shape(schema).problem(schema, profile, "");
  for (std::size_t i = 0; why.empty() && i < profile["sites"].size(); ++i)
    why = histogram_problem(profile["sites"][i], "sites[" + std::to_string(i) + "]");
  return why;
}

}  // namespace latecomer::profiles
