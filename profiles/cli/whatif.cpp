// SPDX-License-Identifier: BSD-3-Clause
// `latecomer whatif FILE`: replays the recorded arrivals under changes of the program, and prints the gains.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "profiles/cli/advise.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/profile_file.hpp"
#include "profiles/replay.hpp"
#include "profiles/waiting.hpp"

namespace latecomer::cli {
namespace {

using core::Nanoseconds;
using core::Rank;
using profiles::Change;

struct Options {
  std::string file;
  int top = 5;
  bool json = false;
  Progress::Patience patience;
};

/// The recorded calls of a profile. The calls refer to the arrays of this object.
struct Record {
  std::deque<std::vector<Rank>> groups;
  std::deque<std::vector<Nanoseconds>> times;
  std::vector<profiles::ReplayCall> calls;
  std::uint64_t left_out = 0;  ///< calls whose group or site the profile does not name
  std::uint64_t non_blocking = 0;
};

[[noreturn]] void damaged(const std::string& file, std::size_t event) {
  throw BadUsage("'" + file + "': arrivals.events[" + std::to_string(event) +
                 "]: the arrays do not fit the members of its group");
}

Record read_record(const std::string& file, const Json& profile) {
  const Json& arrivals = profile["arrivals"];
  const int ranks = profile["job"]["ranks"];
  Record out;
  for (const Json& group : arrivals["groups"]) {
    auto& members = out.groups.emplace_back(group.get<std::vector<Rank>>());
    for (const Rank r : members)
      if (r >= ranks) throw BadUsage("'" + file + "': arrivals.groups: rank " + std::to_string(r) + " does not exist");
  }
  std::map<std::string, std::int32_t> sites;
  for (const Json& site : profile["sites"])
    sites.try_emplace(site["id"].get<std::string>(), static_cast<std::int32_t>(sites.size()));
  const auto window = std::max<std::int64_t>(1, arrivals["window_ns"]),
             stride = std::max<std::int64_t>(1, arrivals["stride"]);
  const Json& events = arrivals["events"];
  out.calls.reserve(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Json& event = events[i];
    const auto group = event["group"].get<std::size_t>();
    const auto site = sites.find(event["site"].get<std::string>());
    if (group >= out.groups.size()) damaged(file, i);
    const std::vector<Rank>& members = out.groups[group];
    std::optional<core::Collective> op;
    if (site != sites.end())
      op = core::find_collective(profile["sites"][static_cast<std::size_t>(site->second)]["op"].get<std::string>());
    if (members.empty() || !op) {
      ++out.left_out;
      continue;
    }
    const auto& begin = out.times.emplace_back(event["arrival_ns"].get<std::vector<Nanoseconds>>());
    const auto& end = out.times.emplace_back(event["exit_ns"].get<std::vector<Nanoseconds>>());
    if (begin.size() != members.size() || end.size() != members.size()) damaged(file, i);
    profiles::ReplayCall call{*op, site->second, event["root"], event.value("blocking", true), 0, members, begin, end};
    // With a stride of 1, all windows follow each other. Times start somewhere in the first window, so one window more
    // brings each kept window into its own span of `stride` windows.
    if (stride > 1) call.part = (*std::ranges::min_element(begin) + window) / window / stride;
    out.non_blocking += !call.blocking;
    out.calls.push_back(call);
  }
  return out;
}

struct Scenario {
  Change change;
  std::string text;      ///< "all ranks needed the same time between calls"
  bool at_most = false;  ///< the gain is an upper bound
  double gain = 0;       ///< of the recorded time
};

/// Time that ranks waited at each site, and for whom.
struct Waits {
  std::map<std::int32_t, double> at;
  std::map<std::int32_t, std::map<Rank, double>> for_rank;
  std::map<Rank, double> for_rank_anywhere;
};

Waits waits_of(const Record& record) {
  Waits out;
  for (const profiles::ReplayCall& c : record.calls) {
    if (!c.blocking) continue;
    profiles::for_each_awaited(
        c.op, c.root, c.ranks.size(), [&](std::size_t i) { return c.arrivals[i]; },
        [&](std::size_t i, std::size_t awaited) {
          const Nanoseconds until = c.exits[i] < 0 ? c.arrivals[awaited] : std::min(c.arrivals[awaited], c.exits[i]);
          const auto spent = static_cast<double>(until - c.arrivals[i]);
          if (i == awaited || spent <= 0) return;
          out.at[c.site] += spent;
          out.for_rank[c.site][c.ranks[awaited]] += spent, out.for_rank_anywhere[c.ranks[awaited]] += spent;
        });
  }
  return out;
}

template <typename Key>
std::vector<Key> largest(const std::map<Key, double>& values, int most) {
  std::vector<Key> out;
  for (const auto& [key, value] : values) out.push_back(key);
  std::ranges::stable_sort(out, [&](const Key& a, const Key& b) { return values.at(a) > values.at(b); });
  if (out.size() > static_cast<std::size_t>(most)) out.resize(static_cast<std::size_t>(most));
  return out;
}

std::vector<Scenario> scenarios_of(const Record& record, const Json& profile, int top) {
  const Waits waits = waits_of(record);
  std::vector<Scenario> out;
  out.push_back({{.kind = Change::Kind::equal_work}, "all ranks needed the same time between the calls"});
  for (const Rank rank : largest(waits.for_rank_anywhere, top))
    out.push_back({{.kind = Change::Kind::on_time, .rank = rank},
                   "rank " + std::to_string(rank) + " needed no longer between the calls than the others"});
  const auto advised = advised_algorithms(profile);
  for (const std::int32_t index : largest(waits.at, top)) {
    const Json& site = profile["sites"][static_cast<std::size_t>(index)];
    const std::string name = "the " + site["op"].get<std::string>() + " at " + place(site["frames"][0]);
    const Rank rank = largest(waits.for_rank.at(index), 1).front();
    out.push_back({{.kind = Change::Kind::on_time, .site = index, .rank = rank},
                   "rank " + std::to_string(rank) + " needed no longer than the others before " + name});
    out.push_back({{.kind = Change::Kind::no_wait, .site = index},
                   name + " were non-blocking, and the program never waited for its result",
                   true});
    if (const auto found = advised.find(site["id"]); found != advised.end())
      out.push_back({{.kind = Change::Kind::faster, .site = index, .factor = found->second.factor},
                     name + " ran " + found->second.algorithm + ", as the model forecasts it"});
  }
  return out;
}

/// A smaller gain is not printed. Derived: the last digit of the column.
constexpr double kLittle = 0.001;

constexpr const char* kKinds[] = {"none", "on_time", "equal_work", "no_wait", "faster"};

constexpr const char* kModel =
    "Model: a rank arrives at its next call after its own interval, and leaves a call after the arrival that it waits "
    "for plus the time that it took from there. Messages between the calls count as the ranks' own intervals.";

int whatif(const Options& o) {
  Json profile = load_profile(o.file, o.patience, true);
  if (!profile.contains("arrivals"))
    throw BadUsage("whatif: '" + o.file +
                   "' holds no arrivals of single calls; record them with latecomer run --record, or with \"record\": "
                   "\"arrivals\" in the policy");
  resolve_names(profile, o.patience);
  const Record record = read_record(o.file, profile);
  if (record.calls.empty()) throw BadUsage("whatif: '" + o.file + "' records no call");
  const profiles::Replay replay(record.calls, profile["job"]["ranks"]);
  // The first arrivals and last exits of the record itself, to compare the replay with.
  std::map<std::int64_t, std::pair<Nanoseconds, Nanoseconds>> parts;
  for (const profiles::ReplayCall& c : record.calls) {
    const Nanoseconds first = *std::ranges::min_element(c.arrivals),
                      last_arrival = *std::ranges::max_element(c.arrivals),
                      last = c.blocking ? std::max(last_arrival, *std::ranges::max_element(c.exits)) : last_arrival;
    auto& [begin, end] = parts.try_emplace(c.part, first, last).first->second;
    begin = std::min(begin, first), end = std::max(end, last);
  }
  double recorded = 0;
  for (const auto& [part, span] : parts) recorded += static_cast<double>(span.second - span.first);
  const double unchanged = replay.time();
  std::vector<Scenario> scenarios = scenarios_of(record, profile, o.top);
  for (Scenario& s : scenarios) s.gain = unchanged > 0 ? 1 - replay.time(s.change) / unchanged : 0;
  std::ranges::stable_sort(scenarios, [](const Scenario& a, const Scenario& b) { return a.gain > b.gain; });
  const Json& arrivals = profile["arrivals"];
  const double wall = profile["job"]["wall_time_s"].get<double>() * 1e9;
  if (o.json) {
    Json rows = Json::array();
    for (const Scenario& s : scenarios) {
      const Json& sites = profile["sites"];
      rows.push_back(
          {{"kind", kKinds[static_cast<int>(s.change.kind)]},
           {"site", s.change.site < 0 ? Json(nullptr) : sites[static_cast<std::size_t>(s.change.site)]["id"]},
           {"rank", s.change.rank < 0 ? Json(nullptr) : Json(s.change.rank)},
           {"gain", s.gain},
           {"bound", s.at_most ? "upper" : "estimate"},
           {"text", s.text}});
    }
    std::printf("%s\n", Json({{"recorded_ns", recorded},
                              {"recorded_share", wall > 0 ? recorded / wall : 0},
                              {"calls", arrivals["calls"]},
                              {"calls_replayed", record.calls.size()},
                              {"non_blocking", record.non_blocking},
                              {"replay_error", recorded > 0 ? unchanged / recorded - 1 : 0},
                              {"model", kModel},
                              {"scenarios", rows}})
                            .dump(1)
                            .c_str());
    return 0;
  }
  std::printf("The record holds %zu of %llu calls, and %s of the run (%s of %s).\n", record.calls.size(),
              static_cast<unsigned long long>(arrivals["calls"].get<std::uint64_t>()), percent(recorded / wall).c_str(),
              human_time(recorded).c_str(), human_time(wall).c_str());
  std::printf("Replayed without a change, it takes %+.2f%% more time than recorded.\n",
              recorded > 0 ? 100 * (unchanged / recorded - 1) : 0);
  if (record.non_blocking > 0)
    std::printf("%llu of the calls are non-blocking: waits for them count as the ranks' own intervals.\n",
                static_cast<unsigned long long>(record.non_blocking));
  std::printf("%s\n\n%15s  if\n", kModel, "less time");
  std::size_t small = 0;
  for (const Scenario& s : scenarios) {
    if (std::abs(s.gain) < kLittle && ++small) continue;
    std::printf("%7s %7s  %s\n", s.at_most ? "at most" : "", percent(s.gain).c_str(), s.text.c_str());
  }
  if (small > 0) std::printf("%zu more changes would save less than 0.1%%.\n", small);
  if (profile["job"].value("network", Json(nullptr)).is_null())
    std::printf(
        "\nNo algorithm is compared, because the profile holds no figures of the network: set \"network\" in the "
        "policy.\n");
  return 0;
}

}  // namespace

void add_whatif(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "whatif", "Say how much less time the run would take if a rank were on time or a call did not wait");
  auto o = std::make_shared<Options>();
  command->add_option("FILE", o->file, "Profile of a run with recorded arrivals (latecomer run --record).")->required();
  command->add_option("--top", o->top, "Number of ranks and of sites to try, those with the longest waits.")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  Progress::add_option(*command, o->patience);
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(
      R"(Each line gives the share of the recorded time that the run would save. "at most" marks an upper bound.

Example:
  $ latecomer run --record --output job.json -- -n 8 ./program
  $ latecomer whatif job.json)");
  command->callback([o, &action] { action = [o] { return whatif(*o); }; });
}

}  // namespace latecomer::cli
