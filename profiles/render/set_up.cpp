// SPDX-License-Identifier: BSD-3-Clause
// Compares each host's ranks with its cores, and the hosts with each other.
#include "profiles/render/set_up.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "profiles/analysis/cores.hpp"
#include "profiles/base/text.hpp"
#include "profiles/format/reader.hpp"

namespace latecomer::profiles {
namespace {

using analysis::Finding;
using analysis::FindingKind;
using analysis::HostCores;

std::string times(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, ratio < 10 ? "%.1f" : "%.0f", ratio);
  return text;
}

std::string counted(double number, const char* one, const char* several) {
  return std::to_string(static_cast<long>(number)) + " " + (number == 1 ? one : several);
}

/// The least share of time without a core that a sentence names. Measured: 0.1% to 1% on an idle machine.
constexpr double kCoreless = 0.02;

/// How many times as long the run would take if waiting ranks kept their cores: an estimate from below. Every rank that
/// is not asleep then wants a core all the time, so each has an equal share. The rank that works longest needs the time
/// of its own work divided by that share. nullopt: not measured.
std::optional<double> worth_of_courtesy(const HostCores& host) {
  double time = 0, asleep = 0, later = 0;
  for (const auto* r : host.ranks) {
    time = std::max(time, r->wall);
    asleep += r->times.blocked;
  }
  if (time <= 0) return {};
  const double stretch = std::max(1.0, (host.count() - asleep / time) / host.usable());
  for (const auto* r : host.ranks) {
    const double own = r->times.computing + r->times.kernel;
    later = std::max(later, stretch * own - own - r->times.runnable);
  }
  return 1 + later / time;
}

/// Below this, the estimate says nothing: the time slices that it leaves out cost as much. Measured: with 2 ms of work
/// between two calls, the estimate is 1.0 and the run takes 1.7 to 2.2 times as long (docs/explanation/causes.md).
constexpr double kLeastWorth = 0.05;

/// How waiting ranks treat the cores of a host that has too few, as the rest of a sentence.
std::string waiting_text(const HostCores& host) {
  if (!host.courteous())
    return "waiting ranks keep their core, so set the policy key `waiting` to `auto` or `courteous`.";
  const auto worth = worth_of_courtesy(host);
  const std::string text = "waiting ranks give their core away";
  if (!worth || *worth < 1 + kLeastWorth) return text + ".";
  return text + ". If they kept it, the run would take at least " + times(*worth) + " times as long by estimate.";
}

Finding about_host(FindingKind kind, const HostCores& host, double share, std::string sentence) {
  return {.kind = kind, .hosts = {host.name}, .time = Share::of(share, 1), .text = {std::move(sentence)}};
}

void judge_cores(const std::vector<HostCores>& hosts, std::vector<Finding>& out) {
  const HostCores* worst = nullptr;
  int crowded = 0;
  for (const HostCores& host : hosts) {
    if (!host.crowded() || host.count() <= host.cores) continue;
    ++crowded;
    if (!worst || host.count() / host.usable() > worst->count() / worst->usable()) worst = &host;
  }
  if (worst) {
    const double usable = worst->usable();
    out.push_back(about_host(FindingKind::binding, *worst, worst->coreless(),
                             "Host " + worst->name + " runs " + counted(worst->count(), "rank", "ranks") + " on " +
                                 (usable < worst->cores ? std::to_string(static_cast<long>(usable)) + " of its " +
                                                              counted(worst->cores, "core", "cores")
                                                        : counted(usable, "core", "cores")) +
                                 (worst->coreless() >= kCoreless
                                      ? ", so ranks had no core for " + percent(worst->coreless(), 1) + " of their time"
                                      : ", so ranks share cores") +
                                 (crowded > 1 ? ", as on " + counted(crowded - 1, "other host", "other hosts") : "") +
                                 "; " + waiting_text(*worst) + " A rank can compute for at most " +
                                 percent(usable / worst->count(), 1) + " of the time in the mean."));
    out.back().variant = "more_ranks";
  }
  for (const HostCores& host : hosts) {
    if (host.count() > host.cores) continue;
    const analysis::Sharing shared = analysis::sharing(host);
    if (shared.ranks.empty()) continue;
    const std::vector<int> cores(shared.cores.begin(), shared.cores.end());
    std::string names = ranks_named(shared.ranks), places = ranks_named(cores);
    names[0] = 'R';
    places = (cores.size() == 1 ? "core" : "cores") + places.substr(places.find(' '));
    out.push_back(about_host(FindingKind::binding, host, host.coreless(),
                             names + " share " + places + " of host " + host.name +
                                 ", which has a core for each of its " + counted(host.count(), "rank", "ranks") +
                                 ": bind each rank to a core of its own, such as with `mpiexec -bind-to core`."));
    if (std::string text = waiting_text(host); host.crowded()) {
      text[0] = 'W';
      out.back().text.push_back(text);
    }
    break;
  }
}

/// The least share of a host's cores that others take, and of the run in which a quota holds the job back, for a
/// sentence. Chosen: ranks without a core for less time than that seldom make a run longer by as much.
constexpr double kOthers = 0.05, kThrottled = 0.01;

/// The time in which a quota held the job back, in runs of the ranks there. It may exceed 1, because threads use more
/// cores than there are ranks.
double held_back(const analysis::HostLoadFigures& load) {
  return load.throttled.value_or(0) / std::max(1.0, load.span * load.used());
}

/// Names other processes on the cores of a host that has a core for each of its ranks.
void judge_load(const Profile& profile, const std::vector<HostCores>& hosts, std::vector<Finding>& out) {
  const HostCores* worst = nullptr;
  for (const HostCores& host : hosts)
    if (!host.crowded() && host.coreless() >= kCoreless && (!worst || host.coreless() > worst->coreless()))
      worst = &host;
  if (!worst) return;
  const bool quota = std::ranges::any_of(
      profile.loads, [&](const auto& load) { return load.host == worst->name && held_back(load) > kThrottled; });
  out.push_back(about_host(
      FindingKind::cores_taken, *worst, worst->coreless(),
      "Ranks of host " + worst->name + " were ready to run but had no core for " + percent(worst->coreless(), 1) +
          " of their time, although it has a core for each of its " + counted(worst->count(), "rank", "ranks") +
          (quota ? "." : ": other processes or threads use its cores.")));
  out.back().variant = "no_core";
}

/// "during the run", as far as the profile covers it.
std::string during(const Profile& profile, const analysis::HostLoadFigures& load) {
  return profile.job.unfinished > 0 ? "in the first " + human_time(load.span) + " of the run" : "during the run";
}

/// Names the host of which others took the largest share.
std::string others_text(const Profile& profile) {
  const auto worst = std::ranges::max_element(profile.loads, {}, &analysis::HostLoadFigures::others_least);
  if (worst == profile.loads.end() || worst->others_least() <= kOthers) return "";
  const auto hosts = std::ranges::count_if(profile.loads, [](const auto& h) { return h.others_least() > kOthers; });
  std::string out = "Other processes took " + percent(worst->others_share()) + " of the cores of host " + worst->host +
                    " " + during(profile, *worst);
  if (const Share waited = worst->pressure ? Share::of(*worst->pressure, worst->span) : Share(); waited.known())
    out += " (pressure: for " + percent(waited) + " of that time, some process waited for a core)";
  if (hosts > 1)
    out += ", and more than " + percent(kOthers, 1) + " on " +
           counted(static_cast<double>(hosts - 1), "other host", "other hosts");
  out += ".";
  if (worst->usable < worst->cores)
    out += " The ranks there may use " + std::to_string(static_cast<long>(worst->usable)) + " of its " +
           counted(worst->cores, "core", "cores") + ".";
  return out;
}

/// Names the host on which the quota of the job's control group held it back longest.
std::string quota_text(const Profile& profile) {
  const auto worst = std::ranges::max_element(profile.loads, {}, held_back);
  if (worst == profile.loads.end() || held_back(*worst) <= kThrottled) return "";
  const std::string cores = counted(worst->used(), "core", "cores");
  const Share share = Share::of(*worst->throttled, worst->span * worst->used());
  return "A quota limits the control group of the job on host " + worst->host + ": its processes were held back for " +
         // Threads use more cores than there are ranks.
         (share.known() ? percent(share) + " of the time of " + cores
                        : human_time(*worst->throttled) + " of processor time") +
         " " + during(profile, *worst) + ".";
}

/// What ran beside the job, and the quota of its control group.
void judge_beside(const Profile& profile, std::vector<Finding>& out) {
  const auto add = [&](std::string text, std::string_view variant, auto share) {
    if (text.empty()) return;
    // It is why ranks had no core.
    if (out.empty() || out.back().variant != "no_core") out.push_back({.kind = FindingKind::cores_taken});
    Finding& one = out.back();
    one.variant = variant;
    one.hosts.clear();
    one.text.push_back(std::move(text));
    double most = 0;
    for (const analysis::HostLoadFigures& load : profile.loads) {
      if (share(load) <= 0) continue;
      one.hosts.push_back(load.host);
      most = std::max(most, share(load));
    }
    one.time = Share::of(std::min(1.0, most), 1);
  };
  add(others_text(profile), "others",
      [](const auto& load) { return load.others_least() > kOthers ? load.others_share().value() : 0; });
  add(quota_text(profile), "quota",
      [](const auto& load) { return held_back(load) > kThrottled ? held_back(load) : 0; });
}

/// The least ratio of the fastest rank of a slow host to the slowest rank elsewhere. Chosen: equal cores differ by a
/// few per cent, by their clock rate and by their place in the machine.
constexpr double kSlower = 1.1;
/// The least share of the run time that a rank of a slow host computes longer. Below it, the verdict names no waiting
/// either.
constexpr double kSlowerShare = 0.01;

void judge_speed(const Profile& profile, const std::vector<HostCores>& hosts, std::vector<Finding>& out) {
  if (hosts.size() < 2) return;
  std::map<int, const HostCores*> host_of;
  for (const HostCores& host : hosts)
    for (const auto* r : host.ranks) host_of[static_cast<int>(r->rank)] = &host;
  const double run_ns = profile.job.wall;
  struct Speed {
    double ranks = 0, least = 0, most = 0, sum = 0, time_ns = 0;
  };
  std::map<const HostCores*, Speed> speeds;
  for (const analysis::RankFigures& rank : profile.analysis.ranks()) {
    const auto host = host_of.find(static_cast<int>(rank.first));
    if (host == host_of.end() || rank.ranks > 1 || rank.computed_by_all <= 0) continue;
    const double ratio = rank.computed / rank.computed_by_all;
    Speed& s = speeds[host->second];
    s.least = s.ranks == 0 ? ratio : std::min(s.least, ratio);
    s.most = std::max(s.most, ratio);
    ++s.ranks;
    s.sum += ratio;
    s.time_ns += rank.computed;
  }
  for (const auto& [host, mine] : speeds) {
    double others = 0, most = 0, sum = 0, time_ns = 0;
    for (const auto& [other, s] : speeds)
      if (other != host) {
        others += s.ranks;
        sum += s.sum;
        time_ns += s.time_ns;
        most = std::max(most, s.most);
      }
    // One rank may have more work. All ranks of a host seldom have.
    if (mine.ranks < 2 || mine.ranks < host->count() || others < 2 || mine.least < kSlower * most) continue;
    if (mine.time_ns / mine.ranks - time_ns / others < kSlowerShare * run_ns) continue;
    out.push_back(about_host(
        FindingKind::slow_core, *host, (mine.time_ns / mine.ranks - time_ns / others) / run_ns,
        "All " + counted(mine.ranks, "rank", "ranks") + " of host " + host->name + " compute " +
            times(mine.sum / mine.ranks / (sum / others)) +
            " times as long as the other hosts' ranks before the same calls: its cores are slower, or its ranks "
            "have more work."));
    return;
  }
}

}  // namespace

std::vector<Finding> set_up(const Profile& profile) {
  std::vector<Finding> out;
  const std::vector<HostCores> hosts = analysis::cores_by_host(profile);
  judge_cores(hosts, out);
  if (out.empty()) judge_load(profile, hosts, out);  // else the ranks take cores from each other
  judge_beside(profile, out);
  judge_speed(profile, hosts, out);
  if (!out.empty() || hosts.empty()) return out;
  bool unbound = true;
  for (const HostCores& host : hosts)
    for (const auto* r : host.ranks) unbound = unbound && r->cores > 1 && r->cores == r->host_cores;
  if (unbound)
    out.push_back({.kind = FindingKind::binding,
                   .variant = "unbound",
                   .text = {"No rank is bound to a core, so the operating system may move them."}});
  return out;
}

}  // namespace latecomer::profiles
