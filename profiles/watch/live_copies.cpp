// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads the copies as JSON.
#include "profiles/watch/live_copies.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "profiles/base/json.hpp"
#include "profiles/files/shared_folder.hpp"
#include "profiles/record/job_size.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "latecomer-live";
constexpr int kVersion = 3;

/// The numbers of a rank in a copy, by key.
template <typename Rank, typename Visit>
void for_each_number(Rank& r, Visit visit) {
  visit("rank", r.rank);
  visit("ranks", r.ranks);
  visit("pid", r.pid);
  visit("started", r.started);
  visit("communicator", r.communicator);
  visit("n", r.n);
  visit("site", r.site);
  visit("bytes", r.bytes);
  visit("since", r.since);
  visit("message", r.message);
  visit("message_site", r.message_site);
  visit("message_call", r.message_call);
  visit("message_peer", r.message_peer);
  visit("message_tag", r.message_tag);
  visit("looked", r.looked);
  visit("root", r.root);
  visit("comm_size", r.comm_size);
  visit("op", r.op);
  visit("inside", r.inside);
  visit("watched", r.watched);
}

std::uint64_t nanoseconds_now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

constexpr std::size_t kMostBytes = 16 << 20;  // ten times the largest copy

void read_one(const std::string& path, std::vector<LiveRank>& out) {
  const auto text = read_placed_file(path, geteuid(), kMostBytes);
  if (!text) return;
  const auto read = parse_json(*text);
  if (!read) return;
  const Json& copy = *read;
  if (!copy.is_object() || copy.value("format", "") != kFormat || copy.value("version", 0) != kVersion) return;
  std::vector<LiveRank> ranks;
  const double age = 1e-9 * static_cast<double>(nanoseconds_now()) - copy.at("time_s").get<double>();
  for (const Json& row : copy.at("ranks")) {
    LiveRank& one = ranks.emplace_back();
    for_each_number(one, [&](const char* key, auto& number) { row.at(key).get_to(number); });
    one.host = copy.at("host").get<std::string>();
    one.output = copy.at("output").get<std::string>();
    copy.at("job").get_to(one.job);
    copy.at("number").get_to(one.copy);
    const auto letter = [&](const char* key) {
      const auto text = row.at(key).get<std::string>();
      return text.size() == 1 ? text[0] : '?';
    };
    one.state = letter("state");
    one.alive = letter("alive");
    one.copy_age_s = std::max(0.0, age);
    if (one.op < 0 || !is_rank_of(one.rank, one.ranks) || one.copy == 0) return;
  }
  if (ranks.empty()) return;
  for (const Json& frame : copy.at("frames"))
    ranks.front().frames.emplace_back(
        frame.at("site").get<std::uint64_t>(),
        live_frame(frame.at("module").get<std::string>(), frame.at("offset").get<std::uint64_t>()));
  std::move(ranks.begin(), ranks.end(), std::back_inserter(out));
}

}  // namespace

core::Result<bool> write_live_copy(const std::string& path, const std::vector<LiveRank>& ranks) {
  Json rows = Json::array(), frames = Json::array();
  std::set<std::uint64_t> known;
  for (const LiveRank& one : ranks) {
    if (rows.size() == kMostCopied) break;
    Json& row = rows.emplace_back();
    for_each_number(one, [&](const char* key, const auto& value) { row[key] = value; });
    row["state"] = std::string(1, one.state);
    row["alive"] = std::string(1, one.alive);
    for (const auto& [site, frame] : one.frames)
      if (frames.size() < kMostFramesCopied && known.insert(site).second)
        frames.push_back(
            {{"site", site}, {"module", frame.module}, {"offset", std::strtoull(frame.offset.c_str(), nullptr, 16)}});
  }
  const LiveRank& any = ranks.front();
  const Json copy = {{"format", kFormat},
                     {"version", kVersion},
                     {"host", any.host},
                     {"output", any.output},
                     {"job", any.job},
                     {"number", nanoseconds_now()},
                     {"time_s", 1e-9 * static_cast<double>(nanoseconds_now())},
                     {"ranks", rows},
                     {"frames", frames}};
  return write_file(path, json_text(copy));
}

std::vector<LiveRank> read_live_copies(const std::string& folder, bool last_states) {
  std::vector<LiveRank> out;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error))
    if (const std::string name = file.path().filename().string();
        is_live_copy_name(name) || (last_states && is_last_state_name(name)))
      try {
        read_one(file.path().string(), out);
      } catch (const Json::exception&) {
        // Another version, or damaged.
      }
  return out;
}

}  // namespace latecomer::profiles
