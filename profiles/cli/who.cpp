// SPDX-License-Identifier: BSD-3-Clause
// `latecomer who`: which ranks of a running job wait in which collective, and for whom. Prints what hang.hpp finds, and
// says which ranks it cannot see.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "profiles/base/json.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/files/spool.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/render/hang.hpp"
#include "profiles/watch/live_ranks.hpp"

namespace latecomer::profiles::cli {
namespace {

struct WhoOptions {
  std::string job;
  double seconds = 1;
  bool json = false, all = false;
};

/// The limits of this look, one sentence each: ranks without a visible state, and hosts whose copies are old.
std::vector<std::string> limits(const Hang& hang, const std::string& output) {
  std::vector<std::string> out;
  const auto& seen = hang.ranks();
  std::map<std::string, std::pair<double, std::vector<int>>> stale;
  std::vector<bool> known(static_cast<std::size_t>(std::max(0, seen.front().ranks)));
  for (const LiveRank& r : seen) {
    if (r.stale) {
      stale[r.host].first = r.copy_age_s;
      stale[r.host].second.push_back(r.rank);
    }
    if (r.rank < seen.front().ranks) known[static_cast<std::size_t>(r.rank)] = true;
  }
  constexpr std::size_t kMostHosts = 8;  // derived: a sentence each takes about 16 lines
  if (stale.size() > kMostHosts) {
    std::vector<int> ranks;
    double youngest = stale.begin()->second.first;
    for (const auto& [host, what] : stale) {
      ranks.insert(ranks.end(), what.second.begin(), what.second.end());
      youngest = std::min(youngest, what.first);
    }
    std::ranges::sort(ranks);
    out.push_back("The states of " + ranks_named(ranks) + " on " + std::to_string(stale.size()) + " hosts are " +
                  human_time(1e9 * youngest) +
                  " old or older and are not judged: `latecomer relay` has ended there, or the shared folder is slow.");
    stale.clear();
  }
  for (const auto& [host, what] : stale)
    out.push_back("The state of " + ranks_named(what.second) + " on " + host + " is " + human_time(1e9 * what.first) +
                  " old and is not judged: `latecomer relay` has ended there, or the shared folder is slow.");
  std::set<std::uint64_t> others;  // other jobs with this name
  for (const LiveRank& r : live_ranks_here())
    if (r.output == output && r.state != 'X' && r.job != seen.front().job && others.insert(r.job).second)
      out.push_back("Another job has a profile of this name, in a container perhaps: process " + std::to_string(r.pid) +
                    " on " + r.host + ". It is not shown.");
  std::map<std::string, std::vector<int>> unseen;  // by host
  std::map<int, std::string> hosts;
  if (std::ranges::find(known, false) == known.end()) return out;
  if (const auto spool = read_spool(output + ".parts"))
    for (const auto& part : spool->parts) hosts[part.rank] = part.host;
  for (std::size_t r = 0; r < known.size(); ++r)
    if (!known[r]) unseen[hosts[static_cast<int>(r)]].push_back(static_cast<int>(r));
  std::string names;
  for (const auto& [host, ranks] : unseen)
    names += (names.empty() ? "" : "; ") + ranks_named(ranks) + (host.empty() ? "" : " of " + host);
  names[0] = 'R';
  const bool one = std::ranges::count(known, false) == 1;
  const std::string command = "latecomer relay " + shell_word(output);
  out.push_back(names + (one ? " is" : " are") + " not visible here. The state of other hosts needs, once per host: " +
                command + " (under Slurm: srun --overlap -N $SLURM_NNODES --ntasks-per-node=1 " + command + ")");
  return out;
}

void print_hang(const Hang& hang, const std::vector<std::string>& findings, const std::vector<std::string>& limits,
                const WhoOptions& o) {
  for (const std::string& f : findings) std::printf("%s\n", f.c_str());
  const auto& ranks = hang.ranks();
  if (findings.empty() && std::ranges::any_of(ranks, [](const LiveRank& r) { return !r.stale; }))
    std::printf("No rank stood still in a collective for the last %s.\n", human_time(1e9 * o.seconds).c_str());
  for (const std::string& l : limits) std::printf("%s\n", l.c_str());
  std::printf("\n%s", hang.table(o.all).c_str());
}

void print_json(const Hang& hang, const std::vector<std::string>& findings, const std::vector<std::string>& limits) {
  Json ranks = Json::array();
  for (const LiveRank& r : hang.ranks())
    ranks.push_back({{"rank", r.rank},
                     {"host", r.host},
                     {"pid", r.pid},
                     {"state", Hang::state(r)},
                     {"moves", r.moves},
                     {"inside", r.inside == 1},
                     {"op", r.comm_size > 0 ? Json(Hang::operation(r)) : Json(nullptr)},
                     {"call", r.n},
                     {"communicator", Hang::communicator(r)},
                     {"root", r.root < 0 ? Json(nullptr) : Json(r.root)},
                     {"bytes", r.bytes < 0 ? Json(nullptr) : Json(r.bytes)},
                     {"site", hang.site(r)},
                     {"since_ns", Hang::age(r).ns < 0 ? Json(nullptr) : Json(Hang::age(r).ns)},
                     {"copy_age_s", r.copy == 0 ? Json(nullptr) : Json(r.copy_age_s)},
                     {"stale", r.stale},
                     {"where", hang.where(r)}});
  print_answer({{"findings", findings}, {"limits", limits}, {"ranks", ranks}});
}

int who(const WhoOptions& o) {
  const std::string output = live_job(o.job);
  if (live_ranks(output).empty()) {
    std::string list;
    for (const LiveRank& r : live_ranks_here())
      if (list.find("\n  " + r.output + "\n") == std::string::npos) list += "\n  " + r.output + "\n";
    throw BadUsage("no process of '" + output + "' is visible on this host" +
                   (list.empty() ? "" : "; visible jobs:" + list));
  }
  std::vector<LiveRank> seen = live_ranks_twice(output, o.seconds);
  if (seen.empty()) throw BadUsage("the job has ended meanwhile");
  const Hang hang(with_places(std::move(seen)));
  const auto findings = hang.sentences(), unseen = limits(hang, output);
  if (o.json) print_json(hang, findings, unseen);
  else print_hang(hang, findings, unseen, o);
  return findings.empty() ? 0 : 1;
}

}  // namespace

void add_who(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("who", "Show which ranks of a running job wait in which collective, and for whom");
  auto o = std::make_shared<WhoOptions>();
  command->add_option("PROFILE", o->job,
                      "The job, by the path of the profile that it will write. Default: the only job on this host.");
  command
      ->add_option("--seconds", o->seconds, "Time between two looks. A rank that does not move meanwhile stands still.")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  command->add_flag("--all", o->all, "A line for each rank, also of a job of more than 64.");
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(
      R"(The command reads shared memory of this host, and the copies that `latecomer relay` writes on other hosts. Run it as the
same user, on a host of the job or where the profile's folder is. It exits with 1 if a rank stands still. The policy key
`live` turns the shared memory off.

Example: a job that seems to hang
  $ latecomer who job.json)");
  command->callback([o, &action] { action = [o] { return who(*o); }; });
}

}  // namespace latecomer::profiles::cli
