// SPDX-License-Identifier: BSD-3-Clause
// Writes winners as JSON, reads them back, and keeps them in a file.
#include "profiles/format/history.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/algorithms/segments.hpp"
#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "profiles/base/descriptor.hpp"
#include "profiles/base/json.hpp"
#include "profiles/files/shared_folder.hpp"
#include "profiles/format/sections.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kFormat = "latecomer-learned", *kProfile = "latecomer-profile";
// Derived from memory: at 128 ranks a site takes 2 KiB, so a run of 64 sites takes 128 KiB.
constexpr std::size_t kMostRuns = 16, kMostWinners = 64, kMostBytes = 16 << 20;

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

Setup setup_in(const Value& run) {
  Setup out;
  out.program = run.at("program").text();
  out.ranks = run.at("ranks").whole<int>(1, INT32_MAX);
  out.hosts = run.at("hosts").whole<int>(1, INT32_MAX);
  out.placement = run.at("placement").hash();
  out.mpi_library = run.at("mpi_library").text();
  out.catalogue = run.at("catalogue").hash();
  return out;
}

/// Numbers per rank, or none.
template <typename Number>
std::vector<std::int64_t> row_of(const Value& row, int ranks, Number number) {
  std::vector<std::int64_t> out;
  if (row.null()) return out;
  if (row.size() != static_cast<std::size_t>(ranks)) row.refuse(std::to_string(ranks) + " numbers");
  for (std::size_t r = 0; r < row.size(); ++r) out.push_back(number(row[r]));
  return out;
}

void read_winners(const Value& run, int ranks, History& out) {
  const Value sites = run.at("sites");
  std::vector<core::Learned> all;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Value site = sites[i];
    core::Learned one;
    one.signature = site.at("signature").hash();
    const auto op = core::find_collective(site.at("op").text());
    const core::Algorithm* algorithm = op ? core::find_algorithm(*op, site.at("algorithm").text()) : nullptr;
    if (!algorithm) continue;
    one.algorithm = core::index_of(algorithm);
    one.segments = site.at("segments").whole<std::int32_t>(0, core::kMostSegments);
    one.overlap = site.at("overlap").boolean();
    one.pattern = row_of(site.at("pattern_ns"), ranks, [](const Value& v) { return v.offset(); });
    one.sizes =
        row_of(site.at("sizes_bytes"), ranks, [](const Value& v) { return v.whole<std::int64_t>(0, kMostBlock); });
    const auto known = [](const Value& v) { return v.null() ? -1.0 : static_cast<double>(v.offset()); };
    one.measured_ns = known(site.at("measured_ns"));
    one.native_measured_ns = known(site.at("native_measured_ns"));
    one.calls = site.at("calls").whole<std::uint64_t>(0, INT64_MAX);
    if (all.size() == kMostWinners) break;
    all.push_back(one);
    out.winners[site.at("site").text()].push_back(std::move(one));
  }
  // The parser of plans in bytes checks that a plan is sound.
  core::Plan sound;
  if (core::Plan::deserialize(core::plan_of_learned(all).serialize(), ranks, sound)) out.plan = std::move(sound);
  if (out.plan.empty())
    out.why_not = all.empty() ? "no algorithm has won in it" : "sites of one call have different winners";
}

History read_profile(const Value& profile, const Setup& now) {
  History out;
  const int ranks = now.ranks;
  if (const int before = profile.at("job").at("ranks").whole<int>(1, INT32_MAX); before != ranks)
    throw std::runtime_error("holds a job of " + std::to_string(before) + " ranks, but this job has " +
                             std::to_string(ranks) + " ranks");
  out.why_not = "no algorithm has won in it";
  if (!profile.has("learned") || profile.at("learned").null()) return out;
  const Value run = profile.at("learned");
  out.why_not = difference(setup_in(run), now, true);
  if (!out.why_not.empty()) out.why_not = "it is of " + out.why_not;
  else read_winners(run, ranks, out);
  return out;
}

History read_learned(const Value& file, const Setup& now) {
  History out;
  const Value runs = file.at("runs");
  out.why_not = "it holds no run yet";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Setup its = setup_in(runs[i]);
    if (its == now) {
      out.why_not.clear();
      read_winners(runs[i], now.ranks, out);
      return out;
    }
    if (i == 0) out.why_not = "its latest run is of " + difference(its, now, false);
  }
  return out;
}

/// Locks the file that has this name now. Creates an empty one if none has.
core::Result<Descriptor> lock_file(const std::string& path) {
  constexpr auto kLongest = std::chrono::seconds(5);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  for (;;) {
    Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (file.get() < 0) return core::Error{"cannot write '" + path + "': " + std::strerror(errno)};
    while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR)
        return core::Error{"cannot lock '" + path + "': " + std::strerror(errno)};
      if (std::chrono::steady_clock::now() > deadline) return core::Error{"'" + path + "' is locked by another job"};
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    // Another job may have replaced the file meanwhile.
    struct stat mine {
    }, there{};
    if (fstat(file.get(), &mine) == 0 && stat(path.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
        mine.st_dev == there.st_dev)
      return file;
  }
}

}  // namespace

Setup setup_of(const JobInfo& job, const std::vector<int>& hosts) {
  Setup out;
  out.program = core::base_name(job.program);
  out.ranks = job.ranks;
  out.mpi_library = job.mpi_library;
  std::string places, names;
  for (const int host : hosts) {
    places += std::to_string(host) + " ";
    out.hosts = std::max(out.hosts, host + 1);
  }
  for (const core::Algorithm& a : core::catalogue())
    names += std::string(core::name_of(a.op)) + "/" + std::string(a.name) + " ";
  out.placement = core::fnv1a(places);
  out.catalogue = core::fnv1a(names);
  return out;
}

std::string difference(const Setup& learned, const Setup& now, bool other_programs) {
  const auto numbers = [](int x, int y, const char* what) {
    return std::to_string(x) + " " + what + ", not of " + std::to_string(y);
  };
  if (!other_programs && learned.program != now.program) return "the program " + learned.program;
  if (learned.ranks != now.ranks) return numbers(learned.ranks, now.ranks, "ranks");
  if (learned.hosts != now.hosts) return numbers(learned.hosts, now.hosts, "hosts");
  if (learned.placement != now.placement) return "another placement of ranks on hosts";
  if (learned.mpi_library != now.mpi_library) return "another MPI library";
  if (learned.catalogue != now.catalogue) return "another version of latecomer";
  return "";
}

const core::Learned* History::winner_of(const std::string& id, const core::Signature& signature) const {
  const auto site = winners.find(id);
  if (site == winners.end()) return nullptr;
  const auto at = std::ranges::find(site->second, signature.hash(), &core::Learned::signature);
  return at == site->second.end() ? nullptr : &*at;
}

core::Result<History> read_history(const std::string& path, const Setup& now) {
  const auto text = core::read_file(path);
  if (!text) return core::Error{"history: " + text.error()};
  const auto sections = sections_of(*text);
  const auto file = parse_json(sections ? sections->head : *text);
  if (!file) return core::Error{"history: '" + path + "', " + file.error()};
  const Json format = file->is_object() ? file->value("format", Json()) : Json();
  if (format != kProfile && format != kFormat) return core::Error{"history: '" + path + "' is not a latecomer profile"};
  try {
    return format == kFormat ? read_learned(Value(*file), now) : read_profile(Value(*file), now);
  } catch (const std::exception& e) {
    return core::Error{"history: '" + path + "': " + e.what()};
  }
}

std::string learned_json(const Setup& setup, const std::vector<core::Learned>& learned,
                         const std::vector<core::SlotReport>& seen, const History& earlier) {
  Json out = {{"program", core::utf8(setup.program)},
              {"ranks", setup.ranks},
              {"hosts", setup.hosts},
              {"placement", core::hex16(setup.placement)},
              {"mpi_library", setup.mpi_library},
              {"catalogue", core::hex16(setup.catalogue)},
              {"sites", Json::array()}};
  std::vector<std::pair<std::string, const core::Learned*>> all;
  const auto id_of = [&](std::uint64_t site, core::Collective op) { return SiteKey{site, op, setup.ranks}.id(); };
  all.reserve(learned.size());
  for (const core::Learned& one : learned)
    all.emplace_back(id_of(one.site, core::algorithm_at(one.algorithm).op), &one);
  std::set<std::pair<std::string, std::uint64_t>> reached;
  for (const core::SlotReport& r : seen) reached.emplace(id_of(r.site, r.signature.op), r.signature.hash());
  for (const auto& [id, winners] : earlier.winners)
    for (const core::Learned& one : winners)
      if (!reached.contains({id, one.signature})) all.emplace_back(id, &one);
  std::ranges::stable_sort(all, [](const auto& x, const auto& y) { return x.second->calls > y.second->calls; });
  if (all.size() > kMostWinners) all.resize(kMostWinners);
  const auto known = [](double ns) { return ns < 0 ? Json(nullptr) : Json(ns); };
  const auto row = [](const auto& numbers) { return numbers.empty() ? Json(nullptr) : Json(numbers); };
  std::set<std::pair<std::string, std::uint64_t>> written;
  for (const auto& [id, one] : all) {
    if (!written.emplace(id, one->signature).second) continue;  // two slots of a period
    const core::Algorithm& algorithm = core::algorithm_at(one->algorithm);
    out["sites"].push_back({{"site", id},
                            {"signature", core::hex16(one->signature)},
                            {"op", core::name_of(algorithm.op)},
                            {"algorithm", algorithm.name},
                            {"segments", one->segments},
                            {"overlap", one->overlap},
                            {"pattern_ns", row(one->pattern)},
                            {"sizes_bytes", row(one->sizes)},
                            {"measured_ns", known(one->measured_ns)},
                            {"native_measured_ns", known(one->native_measured_ns)},
                            {"calls", one->calls}});
  }
  return json_text(out);
}

core::Result<bool> keep_learned(const std::string& path, const std::string& learned) try {
  auto run = parse_json(learned);
  if (!run) return core::Error{run.error()};
  const auto locked = lock_file(path);
  if (!locked) return core::Error{locked.error()};
  const auto text = core::read_file(path);
  if (!text) return core::Error{text.error()};
  Json file = {{"format", kFormat}, {"version", 1}, {"runs", Json::array()}};
  if (!text->empty()) {
    const auto before = parse_json(*text);
    if (before && before->is_object() && before->value("format", Json()) == kProfile) return true;
    if (!before || !before->is_object() || before->value("format", Json()) != kFormat || !before->contains("runs"))
      return core::Error{"'" + path + "' is another file, which stays"};
    file["runs"] = before->at("runs");
  }
  const Setup mine = setup_in(Value(*run));
  Json runs = Json::array({std::move(*run)});
  std::size_t bytes = learned.size();
  for (const Json& one : file["runs"]) {
    if (setup_in(Value(one)) == mine) continue;
    bytes += json_text(one).size();
    if (runs.size() == kMostRuns || bytes > kMostBytes) break;
    runs.push_back(one);
  }
  file["runs"] = std::move(runs);
  return write_file(path, json_text(file, 1) + "\n");
} catch (const std::exception& e) {
  return core::Error{"'" + path + "': " + e.what()};
}

}  // namespace latecomer::profiles
