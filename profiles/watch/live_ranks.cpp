// SPDX-License-Identifier: BSD-3-Clause
// Reads the files of live processes in shared memory, and merges them with the copies of other hosts.
#include "profiles/watch/live_ranks.hpp"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/base/text.hpp"
#include "profiles/base/errors.hpp"
#include "profiles/files/shared_folder.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/record/job_size.hpp"
#include "profiles/record/live.hpp"
#include "profiles/symbols/names.hpp"
#include "profiles/watch/live_copies.hpp"

namespace latecomer::profiles {
namespace {

std::int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

template <typename Use>
void for_each_file(Use use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kLiveFolder), closedir);
  if (!folder) return;
  while (const dirent* entry = readdir(folder.get()))
    if (std::string name = entry->d_name; name.starts_with(kLivePrefix)) use(name);
}

/// The state in one file; rank -1 if it is no file of latecomer.
LiveRank read_file(const std::string& name) {
  LiveRank out;
  const std::string path = std::string(kLiveFolder) + "/" + name;
  const auto bytes = read_placed_file(path, geteuid(), sizeof(LiveFile));
  if (!bytes || bytes->size() != sizeof(LiveFile)) return out;
  // A copy: the owner of the file may cut it at any time, which ends a process that has mapped it.
  const auto copy = std::make_unique<LiveFile>();
  std::memcpy(static_cast<void*>(copy.get()), bytes->data(), bytes->size());
  const LiveFile& file = *copy;
  if (std::memcmp(file.magic, kLiveMagic, sizeof file.magic) == 0 && file.version == LiveFile::kVersion &&
      is_rank_of(file.rank, file.ranks)) {
    const LiveLine& line = file.line;
    const auto text = [](const char* from, std::size_t size) { return std::string(from, strnlen(from, size)); };
    out.host = text(file.host, sizeof file.host);
    out.output = text(file.output, sizeof file.output);
    out.pid = file.process.pid;
    out.started = file.process.started;
    out.job = file.job;
    out.rank = file.rank;
    out.ranks = file.ranks;
    out.inside = line.inside.load(std::memory_order_acquire);
    out.communicator = line.communicator;
    out.n = line.n;
    out.site = line.site;
    out.bytes = line.bytes;
    out.since = line.since;
    out.message = line.message;
    if (const LiveMessage& message = file.message; out.message != 0 && message.site != 0) {
      out.message_site = message.site;
      out.message_call = static_cast<int>(message.call);
      out.message_peer = message.peer;
      out.message_tag = message.tag;
    }
    out.root = line.root;
    out.comm_size = line.comm_size;
    out.op = line.op;
    const Life life = life_of(file.process);
    out.state = life == Life::ended     ? 'X'
                : life == Life::unknown ? '?'  // in another container
                                        : process_state(file.process.pid).state;
    if (out.state != 'X') {
      out.alive = out.state;
      out.looked = monotonic_ns();
    }
    const int frames = std::min(file.frames.load(std::memory_order_acquire), LiveFile::kFrames);
    for (int i = 0; i < frames; ++i)
      out.frames.emplace_back(file.frame[i].site, live_frame(text(file.frame[i].module, sizeof file.frame[i].module),
                                                             file.frame[i].offset));
  }
  return out;
}

void sort_by_rank(std::vector<LiveRank>& ranks) { std::ranges::stable_sort(ranks, {}, &LiveRank::rank); }

}  // namespace

analysis::NamedFrame live_frame(const std::string& module, std::uint64_t offset) {
  analysis::NamedFrame frame;
  frame.module = module;
  frame.offset = core::hexadecimal(offset);
  return frame;
}

LiveState with_places(std::vector<LiveRank> ranks) {
  LiveState out;
  for (const LiveRank& r : ranks)
    for (const auto& [site, frame] : r.frames) out.places.try_emplace(site, frame);
  out.ranks = std::move(ranks);
  Json names = {{"sites", Json::array()}};
  for (const auto& [site, frame] : out.places) names["sites"].push_back({{"frames", {frame_json(frame)}}});
  resolve_names(names, Progress::Patience{});
  std::size_t i = 0;
  for (auto& [site, frame] : out.places) frame = frame_of(names["sites"][i++]["frames"][0]);
  return out;
}

std::vector<LiveRank> live_ranks_here() {
  std::vector<LiveRank> out;
  for_each_file([&](const std::string& name) {
    if (LiveRank one = read_file(name); one.rank >= 0) out.push_back(std::move(one));
  });
  sort_by_rank(out);
  return out;
}

std::vector<LiveRank> RanksOfJob::look() {
  std::vector<LiveRank> out;
  std::unordered_set<std::string> others;
  for_each_file([&](const std::string& name) {
    if (others_.contains(name)) return void(others.insert(name));
    LiveRank one = read_file(name);
    if (one.rank < 0) return;  // still being made, or no file of this version
    if (one.job == job_) out.push_back(std::move(one));
    else others.insert(name);
  });
  others_ = std::move(others);
  sort_by_rank(out);
  return out;
}

std::vector<LiveRank> live_ranks(const std::string& output) {
  std::vector<LiveRank> out = live_ranks_here();
  std::erase_if(out, [&](const LiveRank& one) { return one.output != output; });
  // Containers may share this host's memory and have files of one name. Take one job: one that lives, the youngest.
  const auto chosen = std::ranges::max_element(out, [](const LiveRank& a, const LiveRank& b) {
    return std::pair(a.state != 'X', a.started) < std::pair(b.state != 'X', b.started);
  });
  if (chosen != out.end()) std::erase_if(out, [job = chosen->job](const LiveRank& one) { return one.job != job; });
  std::vector<LiveRank> copies = read_live_copies(output + ".parts");
  if (copies.empty()) return out;
  // Copies may be left from an earlier job of that name.
  const std::uint64_t job =
      !out.empty() ? out.front().job : std::ranges::min_element(copies, [](const auto& a, const auto& b) {
                                         return a.copy_age_s < b.copy_age_s;
                                       })->job;
  const auto here = static_cast<std::ptrdiff_t>(out.size());
  for (LiveRank& copy : copies)
    if (copy.job == job &&
        std::none_of(out.begin(), out.begin() + here, [&](const LiveRank& direct) { return direct.rank == copy.rank; }))
      out.push_back(std::move(copy));
  sort_by_rank(out);
  out.erase(std::unique(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.rank == b.rank; }),
            out.end());
  return out;
}

namespace {

const LiveRank* found_in(const std::vector<LiveRank>& before, const LiveRank& one) {
  const auto at = std::ranges::find_if(
      before, [&](const LiveRank& b) { return b.same_process(one) && (b.copy == 0) == (one.copy == 0); });
  return at == before.end() ? nullptr : &*at;
}

bool same_copy(const LiveRank* was, const LiveRank& one) {
  return one.copy != 0 && one.state != 'X' && was && was->copy == one.copy;
}

}  // namespace

void compare_looks(const std::vector<LiveRank>& before, std::vector<LiveRank>& now) {
  for (LiveRank& one : now) {
    const LiveRank* was = found_in(before, one);
    one.stale = same_copy(was, one);
    const bool same = was && was->same_place(one);
    one.moves = !one.stale && !same;
    one.watched =
        same ? std::max<std::int64_t>(0, was->watched) + std::max<std::int64_t>(0, one.looked - was->looked) : 0;
  }
}

std::vector<LiveRank> live_ranks_twice(const std::string& output, double seconds) {
  constexpr std::chrono::seconds kForCopies{3};  // three times the relay's period
  constexpr std::chrono::milliseconds kBetween{100};
  const std::vector<LiveRank> before = live_ranks(output);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  std::vector<LiveRank> out = live_ranks(output);
  const auto until = std::chrono::steady_clock::now() + kForCopies;
  const auto old = [&](const LiveRank& one) { return same_copy(found_in(before, one), one); };
  while (std::ranges::any_of(out, old) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kBetween);
    out = live_ranks(output);
  }
  compare_looks(before, out);
  return out;
}

std::string live_job(const std::string& named) {
  if (!named.empty()) {
    std::string path = std::filesystem::absolute(named).lexically_normal().string();
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path.ends_with(".parts") ? path.substr(0, path.size() - 6) : path;
  }
  std::vector<std::string> jobs;
  for (const LiveRank& one : live_ranks_here())
    if (std::ranges::find(jobs, one.output) == jobs.end()) jobs.push_back(one.output);
  if (jobs.empty()) throw BadUsage("no job under latecomer is visible on this host");
  std::string list;
  for (const std::string& job : jobs) list += "\n  " + job;
  if (jobs.size() > 1) throw BadUsage("several jobs are visible; name one:" + list);
  return jobs.front();
}

}  // namespace latecomer::profiles
