// SPDX-License-Identifier: BSD-3-Clause
// `latecomer whatif FILE`: replays the recorded arrivals under changes of the program, and prints the gains.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "profiles/analysis/gain.hpp"
#include "profiles/base/json.hpp"
#include "profiles/cli/advise.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/record/replay.hpp"
#include "profiles/render/network_text.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles::cli {
namespace {

using core::Nanoseconds;
using core::Rank;

struct WhatifOptions {
  std::string file;
  int top = 5;
  bool json = false;
  Progress::Patience patience;
};

struct Scenario {
  Change change;
  std::string text;      ///< "all ranks had the same mean time before the calls of each site"
  bool at_most = false;  ///< the gain is an upper bound
  double gain = 0;       ///< of the recorded time
};

/// The time that ranks waited at each site, by the awaited rank.
struct WhatIfWaits {
  std::map<std::int32_t, double> at;
  std::map<std::int32_t, std::map<Rank, double>> for_rank;
  std::map<Rank, double> for_rank_anywhere;
};

WhatIfWaits waits_of(const RecordedArrivals& record) {
  WhatIfWaits out;
  for (const RecordedCall& c : record.calls)
    for (std::size_t i = 0; i < c.awaited.size(); ++i) {
      if (c.awaited[i] < 0) continue;
      const auto site = static_cast<std::int32_t>(c.site);
      const auto spent = static_cast<double>(c.wait_ends[i] - c.arrivals[i]);
      const Rank rank = record.groups[c.group][static_cast<std::size_t>(c.awaited[i])];
      out.at[site] += spent;
      out.for_rank[site][rank] += spent;
      out.for_rank_anywhere[rank] += spent;
    }
  return out;
}

template <typename Key>
std::vector<Key> largest(const std::map<Key, double>& values, int most) {
  std::vector<Key> out;
  out.reserve(values.size());
  for (const auto& [key, value] : values) out.push_back(key);
  std::ranges::stable_sort(out, [&](const Key& a, const Key& b) { return values.at(a) > values.at(b); });
  if (out.size() > static_cast<std::size_t>(most)) out.resize(static_cast<std::size_t>(most));
  return out;
}

/// The rank that the others waited for most in the first call of the record.
std::optional<Rank> longest_set_up(const RecordedArrivals& record) {
  const RecordedCall& call = record.calls.front();
  std::map<Rank, double> waits;
  for (std::size_t i = 0; i < call.awaited.size(); ++i)
    if (call.awaited[i] >= 0)
      waits[record.groups[call.group][static_cast<std::size_t>(call.awaited[i])]] +=
          static_cast<double>(call.wait_ends[i] - call.arrivals[i]);
  const std::vector<Rank> most = largest(waits, 1);
  return most.empty() ? std::nullopt : std::optional(most.front());
}

std::vector<Scenario> scenarios_of(const RecordedArrivals& record, const Profile& profile, int top) {
  const WhatIfWaits waits = waits_of(record);
  std::vector<Scenario> out;
  out.push_back({{.kind = Change::Kind::equal_work}, "all ranks had the same mean time before the calls of each site"});
  for (const Rank rank : largest(waits.for_rank_anywhere, top))
    out.push_back({{.kind = Change::Kind::on_time, .rank = rank},
                   "rank " + std::to_string(rank) + " needed no longer than the others before each call"});
  if (const auto rank = longest_set_up(record))
    out.push_back(
        {{.kind = Change::Kind::on_time, .rank = *rank, .set_up = true},
         "rank " + std::to_string(*rank) + " needed no longer than the others before its first call: set-up"});
  const auto advised = advised_algorithms(profile);
  for (const std::int32_t index : largest(waits.at, top)) {
    const Site& site = profile.sites[static_cast<std::size_t>(index)];
    const std::string name = "the " + site.op + " at " + site.place();
    const Rank rank = largest(waits.for_rank.at(index), 1).front();
    out.push_back({{.kind = Change::Kind::on_time, .site = index, .rank = rank},
                   "rank " + std::to_string(rank) + " needed no longer than the others before " + name});
    out.push_back({{.kind = Change::Kind::no_wait, .site = index},
                   name + " were non-blocking, and the program never waited for its result",
                   true});
    if (const auto found = advised.find(site.id); found != advised.end())
      out.push_back({{.kind = Change::Kind::faster, .site = index, .factor = found->second.factor},
                     name + " ran " + found->second.algorithm + ", as the model forecasts it"});
  }
  return out;
}

/// A smaller gain is not printed. Derived: the last digit of the column.
constexpr double kLeastGain = 0.001;

constexpr const char* kKinds[] = {"none", "on_time", "equal_work", "scaled", "no_wait", "faster"};

constexpr const char* kModel =
    "Model: a rank arrives at its next call after its own interval, and leaves a call after the arrival that it waits "
    "for plus the time that it took from there. Its interval is its own time and its waits for messages, in the shares of "
    "the whole run; such a wait becomes shorter where the other rank comes earlier.";

struct WhatIfAnswer {
  std::string why_not;                 ///< why the report gives no gain, or ""
  double recorded = 0, unchanged = 0;  ///< time of the record, and of its replay without a change, ns
  std::size_t non_blocking = 0;        ///< calls
  std::vector<Scenario> scenarios;     ///< largest gain first
};

WhatIfAnswer answer_of(const RecordedArrivals& record, const Profile& profile, int top) {
  const std::vector<ReplayCall> calls = analysis::replay_calls(record);
  const analysis::Gains gains(profile);
  const Replay& replay = *gains.replay();
  WhatIfAnswer out;
  // The first arrivals and last exits of the record itself, to compare the replay with.
  std::map<std::int64_t, std::pair<Nanoseconds, Nanoseconds>> parts;
  for (const ReplayCall& c : calls) {
    const Nanoseconds first = *std::ranges::min_element(c.arrivals),
                      last_arrival = *std::ranges::max_element(c.arrivals),
                      last = c.blocking ? std::max(last_arrival, *std::ranges::max_element(c.exits)) : last_arrival;
    auto& [begin, end] = parts.try_emplace(c.part, first, last).first->second;
    begin = std::min(begin, first);
    end = std::max(end, last);
    out.non_blocking += !c.blocking;
  }
  for (const auto& [part, span] : parts) out.recorded += static_cast<double>(span.second - span.first);
  out.why_not = gains.why_not();
  out.unchanged = replay.time();
  out.scenarios = scenarios_of(record, profile, top);
  for (Scenario& s : out.scenarios) s.gain = out.unchanged > 0 ? 1 - replay.time(s.change) / out.unchanged : 0;
  std::ranges::stable_sort(out.scenarios, std::greater(), &Scenario::gain);
  return out;
}

void print_json(const WhatIfAnswer& answer, const RecordedArrivals& record, const Profile& profile) {
  Json rows = Json::array();
  for (const Scenario& s : answer.scenarios)
    rows.push_back(
        {{"kind", s.change.set_up ? "set_up" : kKinds[static_cast<int>(s.change.kind)]},
         {"site", s.change.site < 0 ? Json(nullptr) : Json(profile.sites[static_cast<std::size_t>(s.change.site)].id)},
         {"rank", s.change.rank < 0 ? Json(nullptr) : Json(s.change.rank)},
         {"gain", s.gain},
         {"bound", s.at_most ? "upper" : "estimate"},
         {"text", s.text}});
  const double wall = profile.job.wall;
  print_answer({{"recorded_ns", answer.recorded},
                {"recorded_share", share_json(Share::of(answer.recorded, wall))},
                {"calls", record.calls_of_job},
                {"calls_replayed", record.calls.size()},
                {"sample", record.sample > 0},
                {"non_blocking", answer.non_blocking},
                {"replay_error", answer.recorded > 0 ? answer.unchanged / answer.recorded - 1 : 0},
                {"model", kModel},
                {"network_from", profile.job.network_from.empty() ? Json(nullptr) : Json(profile.job.network_from)},
                {"scenarios", rows}},
               1);
}

void print_text(const WhatIfAnswer& answer, const RecordedArrivals& record, const Profile& profile) {
  std::printf("The record holds %zu of %llu calls%s, and %s of the run (%s of %s).\n", record.calls.size(),
              static_cast<unsigned long long>(record.calls_of_job), record.sample > 0 ? " on MPI_COMM_WORLD" : "",
              percent(answer.recorded, profile.job.wall).c_str(), human_time(answer.recorded).c_str(),
              human_time(profile.job.wall).c_str());
  if (record.sample > 0)
    print_paragraph(
        "It is the sample that every run keeps. Calls on other communicators and non-blocking calls are not "
        "in it: they count as the ranks' own intervals. `latecomer run --record` records them, too.");
  const double longer = answer.unchanged - answer.recorded;
  const auto share = Share::of(std::abs(longer), answer.recorded);
  std::printf("Replayed without a change, it takes %s%s more time than recorded.\n",
              !share.known() ? ""
              : longer < 0   ? "-"
                             : "+",
              share.percent(2, "much").c_str());
  if (record.left_out > 0)
    std::printf("%llu calls are left out: the profile folds their site, or does not name their ranks.\n",
                static_cast<unsigned long long>(record.left_out));
  if (answer.non_blocking > 0)
    std::printf("%zu of the calls are non-blocking: waits for them count as the ranks' own intervals.\n",
                answer.non_blocking);
  if (!answer.why_not.empty())
    print_paragraph("The report gives no gain, and these figures are doubtful. " + answer.why_not);
  std::printf("%s\n%15s  if\n", paragraph(kModel, kLineWidth).c_str(), "less time");
  std::size_t small = 0;
  for (const Scenario& s : answer.scenarios) {
    if (std::abs(s.gain) < kLeastGain && ++small) continue;
    std::printf("%7s %7s  %s\n", s.at_most ? "at most" : "", saving(s.gain, 1).c_str(), s.text.c_str());
  }
  if (small > 0) std::printf("%zu more changes would save less than 0.1%%.\n", small);
  if (profile.network) std::printf("\n%s", paragraph(network_sentence(profile), kLineWidth).c_str());
  else
    std::printf(
        "\nNo algorithm is compared, because the profile holds no figures of the network: set \"network\" in the "
        "policy.\n");
}

int whatif(const WhatifOptions& o) {
  const Profile profile =
      load_profile(o.file, {.patience = o.patience, .names = true, .offsets = true, .record = true});
  const RecordedArrivals& record = record_of(profile, o.file);
  if (record.calls.empty()) throw BadUsage("whatif: '" + o.file + "' records no call");
  const WhatIfAnswer answer = answer_of(record, profile, o.top);
  o.json ? print_json(answer, record, profile) : print_text(answer, record, profile);
  return 0;
}

}  // namespace

void add_whatif(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "whatif", "Say how much less time the run would take if a rank were on time or a call did not wait");
  auto o = std::make_shared<WhatifOptions>();
  command->add_option("FILE", o->file, "Profile to read.")->required();
  command->add_option("--top", o->top, "Number of ranks and of sites to try, those with the longest waits.")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  Progress::add_option(*command, o->patience);
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(
      R"(Each line gives the share of the recorded time that the run would save. "at most" marks an upper bound.

Example:
  $ latecomer run --record --output job.json -- -n 8 ./program
  $ latecomer whatif job.json

Without --record, the profile of an observed run holds a sample of the blocking calls on MPI_COMM_WORLD.)");
  command->callback([o, &action] { action = [o] { return whatif(*o); }; });
}

}  // namespace latecomer::profiles::cli
