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
namespace {

/// Keys that are not written where they stand in the head.
bool has_own_place(std::string_view key) {
  return key == "format" || key == "version" || key == "job_key" || key == "rank_rows";
}

}  // namespace

void write_sections(const Json& head, std::span<const std::string_view> rows, const Sink& sink) {
  const std::string job_key = json_text(head.value("job_key", Json("")));  // of a file that anybody may have written
  sink(first_line(std::string_view(job_key).substr(1, job_key.size() - 2)));
  const char* before = "";
  for (const auto& [key, value] : head.items()) {
    if (has_own_place(key)) continue;
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

WholeProfile::WholeProfile(const std::string& path, const Progress::Patience& patience)
    : name(path), file_(std::make_unique<Mapped>(path)) {
  if (!file_->problem().empty()) throw CannotRead(path, file_->problem());
  text_ = {file_->begin(), file_->end()};
  read(patience);
}

WholeProfile::WholeProfile(std::string named, std::string_view text) : name(std::move(named)), text_(text) { read({}); }

WholeProfile::~WholeProfile() = default;

void WholeProfile::refuse(const std::string& why) const {
  const std::string deep = core::nested_too_deep(text_);
  throw BadUsage("'" + name + "'" + (deep.empty() ? " " + why : ", " + deep));
}

void WholeProfile::refuse_shape(const std::string& why) const { refuse("is not a complete profile: " + why); }

void WholeProfile::read(const Progress::Patience& patience) {
  const bool in_form = take_sections();
  if (!in_form) take_apart(patience);
  if (!profile.is_object() || profile.value("format", Json()) != "latecomer-profile")
    refuse("is not a latecomer profile");
  const Json version = profile.value("version", Json());
  if (version == 1) convert();
  else if (version != kProfileVersion)
    refuse("has version " + json_text(version) + ", but this latecomer reads versions 1 and 2");
  Json lists = profile.value("rank_rows", Json());
  profile["rank_rows"] = Json::array();
  if (const std::string why = profile_shape_problem(profile); !why.empty()) refuse_shape(why);
  if (!in_form) find_rows(version == 1, lists);
  for (Json& site : profile["sites"]) site.erase("ranks");
  if (const std::size_t sites = profile["sites"].size(); rows_.size() != sites)
    refuse_shape("rank_rows: expected " + std::to_string(sites) + " lists, one for each site, got " +
                 std::to_string(rows_.size()));
}

/// Returns false if the text has another form.
bool WholeProfile::take_sections() {
  auto sections = sections_of(text_);
  if (!sections || !core::nested_too_deep(sections->head).empty()) return false;
  profile = Json::parse(sections->head, nullptr, false);
  if (!profile.is_object() || profile.contains("rank_rows") || profile.value("version", Json()) != kProfileVersion)
    return false;
  const auto sites = profile.find("sites");
  rows_ = std::move(sections->rows);
  return sites != profile.end() && sites->is_array() && sites->size() == rows_.size();
}

/// Parses a text of another form. Keeps the lists of rows as texts as soon as they are read. A number of such a text
/// stands in its place, as a binary value, which no text of JSON gives.
void WholeProfile::take_apart(const Progress::Patience& patience) {
  using Event = Json::parse_event_t;
  constexpr int kProfile = 1, kElement = 2, kInSite = 3;  // depths
  Progress progress("reading " + name + " (" + std::to_string(bytes() / 1'000'000) + " MB), sites", 0, patience);
  std::string key, in_site;
  bool deep = false;
  const auto take = [&](int depth, Event event, Json& value) {
    if (event == Event::key && depth == kProfile) key = value;
    if (event == Event::key && depth == kInSite) in_site = value;
    const bool rows = key == "rank_rows" ? depth == kElement : depth == kInSite && key == "sites" && in_site == "ranks";
    if (event == Event::array_end && rows) {
      own_.push_back(json_text(value));
      value = Json::binary(std::vector<std::uint8_t>(), own_.size() - 1);
      progress.done();
    }
    const bool opens = event == Event::object_start || event == Event::array_start;
    deep = deep || (opens && depth >= core::kMostNested);
    return !deep;
  };
  profile = Json::parse(text_, take, false);
  if (deep) refuse("is nested too deep");
}

/// Finds the texts of take_apart(), in the sites or in `lists`, the value of `rank_rows`.
void WholeProfile::find_rows(bool in_sites, const Json& lists) {
  rows_.clear();
  const auto add = [&](const Json& list, const std::string& place) {
    if (!list.is_binary()) refuse_shape(place + ": expected array, got " + json_text(list).substr(0, 60));
    rows_.emplace_back(own_[list.get_binary().subtype()]);
  };
  const auto of = [](std::size_t i) { return "[" + std::to_string(i) + "]"; };
  if (in_sites) {
    const Json& sites = profile["sites"];
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if (!sites[i].contains("ranks")) refuse_shape("sites" + of(i) + ".ranks is missing");
      add(sites[i]["ranks"], "sites" + of(i) + ".ranks");
    }
  } else if (lists.is_array()) {
    for (std::size_t i = 0; i < lists.size(); ++i) add(lists[i], "rank_rows" + of(i));
  } else {
    refuse_shape("rank_rows: expected array, got " + json_text(lists).substr(0, 60));
  }
}

/// From version 1: the job's key moves to the first line.
void WholeProfile::convert() {
  profile["version"] = kProfileVersion;
  profile["job_key"] = "";
  const auto job = profile.find("job");
  if (job == profile.end() || !job->is_object() || !job->contains("key")) return;
  if (!job->at("key").is_string()) refuse_shape("job.key: expected string, got " + json_text(job->at("key")));
  profile["job_key"] = job->at("key");
  job->erase("key");
}

void WholeProfile::write_version_1(const Sink& sink) const {
  sink("{\"format\": \"latecomer-profile\",\n\"version\": 1");
  for (const auto& [key, value] : profile.items()) {
    if (has_own_place(key)) continue;
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
