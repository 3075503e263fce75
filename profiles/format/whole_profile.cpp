// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes the sections of profiles, and converts those of version 1.
#include "profiles/format/whole_profile.hpp"

#include <utility>

#include "core/base/text.hpp"
#include "profiles/base/errors.hpp"
#include "profiles/base/json.hpp"
#include "profiles/base/mapped.hpp"
#include "profiles/format/sections.hpp"
#include "profiles/format/shape.hpp"

namespace latecomer::profiles {

void write_sections(const Json& head, std::span<const std::string_view> rows, const Sink& sink) {
  sink(first_line(head.value("job_key", "")));
  const char* before = "";
  for (const auto& [key, value] : head.items()) {
    if (key == "format" || key == "version" || key == "job_key" || key == "rank_rows") continue;
    sink(before + json_text(key) + ": " + json_text(value, 1));
    before = ",\n";
  }
  sink(",");
  sink(kRowsBegin);
  before = "\n";
  for (const std::string_view list : rows) {
    sink(before);
    sink(list);
    before = ",\n";
  }
  sink(kRowsEnd);
}

WholeProfile::WholeProfile(const std::string& path) : name(path), file_(std::make_unique<Mapped>(path)) {
  if (!file_->problem().empty()) throw CannotRead(path, file_->problem());
  text_ = {file_->begin(), file_->end()};
  read();
}

WholeProfile::WholeProfile(std::string named, std::string_view text) : name(std::move(named)), text_(text) { read(); }

WholeProfile::~WholeProfile() = default;

void WholeProfile::refuse(const std::string& why) const {
  const std::string deep = core::nested_too_deep(text_);
  throw BadUsage("'" + name + "'" + (deep.empty() ? " " + why : ", " + deep));
}

void WholeProfile::read() {
  if (auto sections = sections_of(text_)) {
    if (!core::nested_too_deep(sections->head).empty()) refuse("");
    profile = Json::parse(sections->head, nullptr, false);
    rows_ = std::move(sections->rows);
  } else {
    profile = take_apart();
  }
  if (!profile.is_object() || profile.value("format", Json()) != "latecomer-profile")
    refuse("is not a latecomer profile");
  if (const Json version = profile.value("version", Json()); version == 1) convert();
  else if (version != kProfileVersion)
    refuse("has version " + json_text(version) + ", but this latecomer reads versions 1 and 2");
  profile["rank_rows"] = Json::array();
  if (const std::string why = profile_shape_problem(profile); !why.empty())
    refuse("is not a complete profile: " + why);
  if (const std::size_t sites = profile["sites"].size(); rows_.size() != sites)
    refuse("is not a complete profile: rank_rows: expected " + std::to_string(sites) +
           " lists, one for each site, got " + std::to_string(rows_.size()));
}

/// Parses a text of another form, and takes the lists of rows out as soon as they are read.
Json WholeProfile::take_apart() {
  using Event = Json::parse_event_t;
  constexpr int kProfile = 1, kElement = 2, kInSite = 3;  // depths
  std::string key, in_site;
  std::deque<std::string> of_sites;
  std::string rows = "[]";
  bool deep = false;
  const auto take = [&](int depth, Event event, Json& value) {
    if (event == Event::key && depth == kProfile) {
      key = value;  // of two that are equal, the last counts
      if (key == "sites") of_sites.clear();
      if (key == "rank_rows") own_.clear();
    } else if (event == Event::key && depth == kInSite) {
      in_site = value;
    } else if (event == Event::array_end && depth == kInSite && key == "sites" && in_site == "ranks") {
      rows = json_text(value);
      value = nullptr;
    } else if (event == Event::object_end && depth == kElement && key == "sites") {
      of_sites.push_back(std::exchange(rows, "[]"));
      value.erase("ranks");
    } else if (event == Event::array_end && depth == kElement && key == "rank_rows") {
      own_.push_back(json_text(value));
      value = nullptr;
    }
    const bool opens = event == Event::object_start || event == Event::array_start;
    deep = deep || (opens && depth >= core::kMostNested);
    return !deep;
  };
  Json out = Json::parse(text_, take, false);
  if (deep) refuse("is nested too deep");
  if (out.is_object() && out.value("version", Json()) == 1) own_ = std::move(of_sites);
  rows_.assign(own_.begin(), own_.end());
  return out;
}

/// From version 1: the job's key moves to the first line. Its sites hold the rows, and take_apart() has taken them.
void WholeProfile::convert() {
  profile["version"] = kProfileVersion;
  profile["job_key"] = "";
  if (const auto job = profile.find("job"); job != profile.end() && job->is_object() && job->contains("key")) {
    profile["job_key"] = job->at("key");
    job->erase("key");
  }
}

void WholeProfile::write_version_1(const Sink& sink) const {
  sink("{\"format\": \"latecomer-profile\",\n\"version\": 1");
  for (const auto& [key, value] : profile.items()) {
    if (key == "format" || key == "version" || key == "job_key" || key == "rank_rows") continue;
    sink(",\n" + json_text(key) + ": ");
    if (key == "sites") {
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        std::string site = json_text(value[i]);
        site.pop_back();
        sink((i ? ",\n" : "[\n") + site + ",\n \"ranks\": ");
        sink(rows_[i]);
        sink("}");
      }
      sink(rows_.empty() ? "[]" : "]");
      continue;
    }
    Json job;
    if (const Json& number = profile["job_key"]; key == "job" && number != "") {
      job["key"] = number;
      job.update(value);
    }
    sink(json_text(job.is_null() ? value : job, 1));
  }
  sink("\n}\n");
}

void WholeProfile::choose_sites(const std::vector<std::size_t>& sites) {
  Json chosen = Json::array();
  std::vector<std::string_view> rows;
  for (const std::size_t i : sites) {
    chosen.push_back(std::move(profile["sites"][i]));
    rows.push_back(rows_[i]);
  }
  profile["sites"] = std::move(chosen);
  rows_ = std::move(rows);
}

}  // namespace latecomer::profiles
