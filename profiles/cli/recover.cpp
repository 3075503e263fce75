// SPDX-License-Identifier: BSD-3-Clause
// `latecomer recover`: makes a profile from the snapshots of a job.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "core/base/text.hpp"
#include "profiles/base/json.hpp"
#include "profiles/base/text.hpp"
#include "profiles/cli/answer_file.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/files/spool.hpp"
#include "profiles/format/last_state.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/format/redact.hpp"
#include "profiles/launch/name_profile.hpp"
#include "profiles/symbols/names.hpp"
#include "profiles/watch/live_copies.hpp"
#include "profiles/watch/live_ranks.hpp"

namespace latecomer::profiles::cli {
namespace {

namespace fs = std::filesystem;

struct RecoverOptions {
  std::vector<std::string> places;
  std::string output;
  bool redact = false, force = false;
};

/// The last state of a job's ranks: from the copies in its folders, and from shared memory of this host, where the
/// files of killed processes stay. `job`: 0 stands for the last one.
std::vector<LiveRank> last_ranks(const std::vector<std::string>& folders, std::uint64_t job) {
  std::vector<LiveRank> copies;
  for (const std::string& folder : folders)
    for (LiveRank& one : read_live_copies(folder, true)) copies.push_back(std::move(one));
  std::ranges::stable_sort(copies, {}, &LiveRank::copy_age_s);
  std::vector<LiveRank> here = live_ranks_here();
  if (job == 0 && !copies.empty()) job = copies.front().job;
  if (job == 0) {
    const std::string output = live_job(folders.front());
    std::uint64_t youngest = 0;
    for (const LiveRank& one : here)
      if (one.output == output && one.started >= youngest) {
        job = one.job;
        youngest = one.started;
      }
  }
  std::map<int, LiveRank> ranks;
  for (LiveRank& one : copies)
    if (one.job == job) ranks.try_emplace(one.rank, std::move(one));
  for (LiveRank& one : here) {
    const auto was = ranks.find(one.rank);
    if (one.job != job || (was != ranks.end() && was->second.same_process(one) && was->second.same_place(one)))
      continue;
    // Nobody has seen the rank there, or it moved after it was last seen.
    if (was != ranks.end()) one.watched = 0;
    ranks.insert_or_assign(one.rank, std::move(one));
  }
  std::vector<LiveRank> out;
  for (auto& [rank, one] : ranks) {
    one.state = one.alive;
    one.moves = one.watched >= 0 && one.watched < analysis::kStandsStill_ns;
    out.push_back(std::move(one));
  }
  return out;
}

/// The profile of a job that ended before its first snapshot.
void without_snapshots(const std::vector<LiveRank>& ranks, const std::string& last_state, const Sink& sink) {
  std::set<std::string> hosts;
  for (const LiveRank& one : ranks) hosts.insert(one.host);
  const Json job = {{"program", "an unknown program"},
                    {"command_line", "an unknown program"},
                    {"ranks", ranks.front().ranks},
                    {"hosts", hosts},
                    {"start", ""},
                    {"wall_time_s", 0},
                    {"unfinished", ranks.front().ranks},
                    {"mpi_library", "an unknown MPI library"},
                    {"mode", "observe"},
                    {"network", nullptr},
                    {"edges", nullptr},
                    {"first_call", nullptr}};
  const Json profile = {
      {"job_key", core::hex16(ranks.front().job)},
      {"job", job},
      {"clock", Json::array()},
      {"sites", Json::array()},
      {"last_state", Json::parse(last_state)},
      {"plans", Json::array()},
      {"warnings", {"recovered: the job ended before its first snapshot, so this profile has no calls"}}};
  write_sections(profile, {}, sink);
}

int recover(const RecoverOptions& o) {
  std::vector<Contribution> parts;
  std::vector<std::string> folders;
  std::string output = o.output, problem;
  for (const std::string& place : o.places) {
    std::string directory = snapshots_of(place);
    while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
    auto read = read_spool(directory);
    if (!read) problem = read.error();
    else {
      for (const std::string& one : read->problems) std::cerr << "latecomer: " << one << "\n";
      for (auto& part : read->parts) parts.push_back(std::move(part));
    }
    if (output.empty())
      output = directory.ends_with(".parts") ? directory.substr(0, directory.size() - 6) : directory + ".json";
    folders.push_back(std::move(directory));
  }
  const std::size_t found = parts.size();
  const auto first = std::ranges::min_element(parts, {}, &Contribution::rank);
  const std::vector<LiveRank> last = last_ranks(folders, found > 0 ? first->job_key : 0);
  if (!problem.empty() && (found > 0 || last.empty())) throw BadUsage("recover: " + problem);
  const int ranks = found > 0 ? first->job.ranks : last.front().ranks;
  std::string ends;
  if (!std::ranges::all_of(parts, &Contribution::finished)) {
    const auto [least, most] =
        std::ranges::minmax_element(parts, {}, [](const Contribution& part) { return part.job.wall_time_s; });
    const std::string from = human_time(1e9 * least->job.wall_time_s), to = human_time(1e9 * most->job.wall_time_s);
    ends = ", snapshots end after " + (from == to ? to : from + " to " + to);
  }
  LiveState state;
  state.ranks = last;
  for (const LiveRank& one : last)
    for (const auto& [site, frame] : one.frames) state.places.try_emplace(site, frame);
  const std::string last_state = last.empty() ? "" : json_text(last_state_json(state), 1);
  // A profile of the same job may be there: of an earlier recovery, or of snapshots from other hosts.
  const AnswerFile file("recover", output, kProfileFile, o.force,
                        found > 0 ? "\"" + first->job.start + "\"" : core::hexadecimal(last.front().job).substr(2));
  file.write([&](const Sink& sink) {
    if (!o.redact && found > 0) return write_profile(parts, sink, nullptr, nullptr, last_state);
    if (!o.redact) return without_snapshots(last, last_state, sink);
    std::string text;
    const Sink keep = [&](std::string_view more) { text += more; };
    if (found > 0) write_profile(parts, keep, nullptr, nullptr, last_state);
    else without_snapshots(last, last_state, keep);
    WholeProfile whole(output, text);
    resolve_names(whole.profile, Progress::Patience{});
    redact(whole.profile);
    whole.write(sink);
  });
  if (!file.to_stdout() && !o.redact) name_profile(output);
  (file.to_stdout() ? std::cerr : std::cout)
      << output << ": " << found << " of " << ranks << " ranks" << ends
      << (last.empty() ? "" : ", and the last state of " + std::to_string(last.size())) << "\n";
  return 0;
}

}  // namespace

std::string snapshots_of(const std::string& place) {
  if (fs::is_directory(place)) return place;
  if (fs::is_directory(place + ".parts")) return place + ".parts";
  throw BadUsage("'" + place + "' is not a directory of snapshots; give PROFILE or PROFILE.parts");
}

void add_recover(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("recover", "Make a profile from the snapshots that a killed job left on disk");
  auto o = std::make_shared<RecoverOptions>();
  command
      ->add_option("PARTS", o->places, "The folder PROFILE.parts, or PROFILE. Name several if each host has its own.")
      ->required();
  command->add_option("-o,--output", o->output, "Profile to write. - is stdout. Default: PARTS without .parts.");
  AnswerFile::add_force(*command, o->force);
  command->add_flag("--redact", o->redact,
                    "Leave out command lines, names of hosts and directories. Names of functions are resolved first.");
  command->footer(
      R"(If `latecomer run` or `latecomer relay` saw that ranks stood still, the profile says where. The command also reads what killed
processes left in shared memory of this host.

Example: after a job was killed
  $ latecomer recover job.json
  $ latecomer report job.json)");
  command->callback([o, &action] { action = [o] { return recover(*o); }; });
}

}  // namespace latecomer::profiles::cli
