// SPDX-License-Identifier: BSD-3-Clause
// Writes the verdict from the sums of a profile.
#include "profiles/cli/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "profiles/cli/callers.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/profile_file.hpp"
#include "profiles/waiting.hpp"

namespace latecomer::cli {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && value != std::floor(value) ? "%.1f" : "%.0f", value);
  return text;
}

double of(const Json& object, const char* key) { return object.value(key, 0.0); }

/// The parts of an interval that may make a rank late, and what a sentence says of them.
struct Part {
  const char* key;
  const char* does;  ///< with a ratio to the others
  const char* only;  ///< where the others have nearly none
};
constexpr Part kParts[] = {
    {"computing_ns", "computes %s times as long as the others", "computes while the others do not"},
    {"messages_ns", "waits %s times as long as the others in other MPI calls", "waits in other MPI calls"},
    {"runnable_ns", "waits %s times as long as the others for a processor", "waits for a processor that others use"},
    {"blocked_ns", "is asleep or stopped %s times as long as the others", "is asleep or stopped"},
    {"kernel_ns", "spends %s times as long as the others in the kernel (system calls, page faults)",
     "spends its time in the kernel (system calls, page faults)"},
    {"io_ns", "spends %s times as long as the others in MPI's file calls", "spends its time in MPI's file calls"},
};

/// Below this share of rank-time, waiting is no subject. Derived: a report of the whole run cannot gain more.
constexpr double kLittle = 0.01;
/// The share of a site's waiting from which one rank is named. Derived: with two ranks, chance gives each one half.
constexpr double kMostly = 0.6;
/// The least samples of an interval for a cause: the mean of fewer says little.
constexpr double kFewSamples = 5;

/// The largest payload in bytes for which only the number of messages in a row counts. MPICH's own limit: up to it,
/// native has the fewest.
constexpr double kSmall = 2048;

struct Totals {
  double time = 0, waited = 0, collectives = 0, after_last = 0, large = 0, seen = 0, calls = 0;
};

Totals totals(const Json& profile) {
  Totals t;
  t.time = rank_time(profile);
  for (const Json& p : profile.value("processes", Json::array())) t.collectives += of(p, "collectives_ns");
  for (const Json& s : profile["sites"]) {
    if (of(s, "comm_size") < 2) continue;
    t.waited += of(s, "waited_ns");
    t.seen += of(s, "patterns"), t.calls += unrested(s);
    double after = 0;
    for (const auto& [name, d] : s["dispatch"].items()) after += of(d, "calls") * of(d, "mean_after_last_ns");
    t.after_last += after * of(s, "comm_size");
    if (!s["bytes"].is_null() && of(s["bytes"], "mean") > kSmall) t.large += after * of(s, "comm_size");
  }
  return t;
}

/// "the allreduce of 8 B at glmax (plib.f90:360)", with the caller that `worst` names.
std::string name_of(const Json& site, const CallerNode* worst) {
  std::string out = "the " + site["op"].get<std::string>();
  if (!site["bytes"].is_null() && of(site["bytes"], "mean") > 0)
    out += " of " + human_bytes(std::round(of(site["bytes"], "mean")));
  out += " at " + place(site["frames"][0]);
  return worst ? out + ", called from " + place_of(*worst) : out;
}

/// The mean interval of a rank before a site's calls, and that of the other ranks, in the parts of kParts.
struct Compared {
  double late_ns = 0;
  double mine[std::size(kParts)], others[std::size(kParts)];
};
std::optional<Compared> compare(const Json& site, const Json& row) {
  const auto all = site.find("before"), mine = row.find("before");
  if (all == site.end() || mine == row.end()) return {};
  Compared out;
  const double samples = of(*mine, "samples"), others = of(*all, "samples") - samples;
  if (others < kFewSamples || samples < kFewSamples) return {};
  const auto of_others = [&](const char* key) {
    return (of(*all, key) * of(*all, "samples") - of(*mine, key) * samples) / others;
  };
  out.late_ns = of(*mine, "wall_ns") - of_others("wall_ns");
  for (std::size_t k = 0; k < std::size(kParts); ++k)
    out.mine[k] = of(*mine, kParts[k].key), out.others[k] = of_others(kParts[k].key);
  return out;
}

const Json* most_awaited(const Json& site) {
  const Json* out = nullptr;
  for (const Json& row : site["ranks"])
    if (!out || of(row, "awaited_ns") > of(*out, "awaited_ns")) out = &row;
  return out;
}

/// Why a rank was late at a site: its intervals before the site's calls, compared with those of the other ranks.
struct Cause {
  double late_ns = 0;        ///< by which the rank's mean interval is longer than the others'
  double share = 0;          ///< of that in the part that grew most
  std::string part;          ///< key of that part, such as "computing_ns"; empty: no interval of the rank was sampled
  double ratio = 0;          ///< of that part to the others' mean; 0: the others have none
  std::string text() const;  ///< "computes 1.8 times as long as the others"
};

std::string Cause::text() const {
  for (const Part& p : kParts)
    if (part == p.key) {
      char text[128];
      if (ratio <= 0 || ratio > 100) return p.only;
      std::snprintf(text, sizeof text, p.does, number(ratio).c_str());
      return text;
    }
  return "";
}

Cause cause_of(const Json& site, const Json& row) {
  Cause out;
  const auto compared = compare(site, row);
  if (!compared) return out;
  out.late_ns = compared->late_ns;
  double most = 0;
  for (std::size_t k = 0; k < std::size(kParts); ++k) {
    const double more = compared->mine[k] - compared->others[k];
    if (more <= most) continue;
    most = more, out.part = kParts[k].key;
    out.ratio = compared->others[k] > 0.01 * more ? compared->mine[k] / compared->others[k] : 0;
  }
  if (out.late_ns > 0) out.share = most / out.late_ns;
  return out;
}

/// What is wrong with the set-up; "" if nothing is known to be.
std::string set_up(const Json& profile) {
  std::map<std::string, std::pair<double, double>> hosts;  // ranks, cores
  double free = 0, ranks = 0, yielding = 0;
  for (const Json& p : profile.value("processes", Json::array())) {
    auto& [there, cores] = hosts[p["host"].get<std::string>()];
    ++there, ++ranks, cores = of(p, "host_cores");
    free += of(p, "cores") > 1 && of(p, "cores") == of(p, "host_cores");
    yielding += p.value("waiting", "") == "courteous";
  }
  for (const auto& [host, counts] : hosts)
    if (counts.second > 0 && counts.first > counts.second)
      return "Host " + host + " runs " + number(counts.first) + " ranks on " + number(counts.second) +
             " cores, so ranks also wait for a core" +
             (yielding > 0 ? "; latecomer let waiting ranks give their core away." : ".");
  if (ranks > 0 && free == ranks && hosts.begin()->second.first > 1)
    return "No rank is bound to a core, so the operating system may move them.";
  return "";
}

}  // namespace

double wait_share(const Json& profile) {
  const Totals t = totals(profile);
  return t.time > 0 ? t.waited / t.time : 0;
}

Json ranks_json(const Json& profile) {
  struct Sums {
    double last = 0, calls = 0, late = 0, waited = 0, awaited = 0, sampled = 0;
    double parts[std::size(kParts)] = {};
  };
  std::map<long, Sums> all;
  for (const Json& site : profile["sites"]) {
    const double calls = of(site, "patterns"), ranks = static_cast<double>(site["ranks"].size());
    if (calls == 0 || ranks < 2) continue;
    double offsets = 0;
    for (const Json& row : site["ranks"]) offsets += of(row, "mean_offset_ns");
    for (const Json& row : site["ranks"]) {
      Sums& s = all[row["rank"].get<long>()];
      const double own = of(row, "mean_offset_ns"), late = own - (offsets - own) / (ranks - 1);
      s.last += of(row, "last_count"), s.calls += calls, s.late += late * calls;
      s.waited += of(row, "waited_ns"), s.awaited += of(row, "awaited_ns");
      const auto compared = compare(site, row);
      if (!compared || late <= 0) continue;
      s.sampled += late * calls;
      for (std::size_t k = 0; k < std::size(kParts); ++k)
        s.parts[k] += (compared->mine[k] - compared->others[k]) * calls;
    }
  }
  std::map<long, std::string> hosts;
  for (const Json& p : profile.value("processes", Json::array()))
    hosts[p["rank"].get<long>()] = p["host"].get<std::string>();
  Json out = Json::array();
  for (const auto& [rank, s] : all) {
    double longer = 0;
    for (const double part : s.parts) longer += std::max(0.0, part);
    Json causes = nullptr;
    if (s.sampled > 0 && longer > 0) {
      // What made some parts shorter made others longer by as much, so the longer ones may exceed the lateness.
      const double whole = std::max(longer, s.sampled);
      for (std::size_t k = 0; k < std::size(kParts); ++k)
        causes[std::string(kParts[k].key).substr(0, std::string(kParts[k].key).size() - 3)] =
            std::max(0.0, s.parts[k]) / whole;
      causes["unexplained"] = (whole - longer) / whole;
    }
    out.push_back({{"rank", rank},
                   {"host", hosts[rank]},
                   {"times_last", s.last},
                   {"mean_lateness_ns", s.late / s.calls},
                   {"waited_ns", s.waited},
                   {"awaited_ns", s.awaited},
                   {"causes", causes}});
  }
  return out;
}

namespace {

/// Why the site's calls wait for that rank: a sentence without its full stop.
std::string why(const Json& site, const Json& row) {
  const std::string rank = "rank " + row_name(row);
  const Cause cause = cause_of(site, row);
  if (cause.part.empty()) return "Too few intervals of " + rank + " were sampled to say why";
  if (cause.late_ns <= 0 || cause.late_ns < 0.5 * of(row, "mean_offset_ns"))
    return "R" + rank.substr(1) + " was late already at an earlier collective";
  const std::string share = " (" + percent(std::min(1.0, cause.share)) + " of its lateness)";
  return cause.share < kMostly ? "Its lateness has no single cause, and the largest is that it " + cause.text() + share
                               : "R" + rank.substr(1) + " " + cause.text() + share;
}

}  // namespace

std::vector<std::string> verdict(const Json& profile) {
  std::vector<std::string> out;
  if (!profile.contains("processes") || profile["job"]["ranks"].get<int>() < 2) return out;
  const Totals t = totals(profile);
  if (t.time <= 0) return out;
  const bool part_only = t.seen < 0.9 * t.calls;
  out.push_back("Ranks spent " + std::string(part_only ? "at least " : "") + percent(t.waited / t.time) +
                " of their time waiting for late ranks in collectives, and " + percent(t.collectives / t.time) +
                " in collectives altogether.");
  if (part_only)
    out.back() += " Arrivals are known for " + percent(t.seen / std::max(1.0, t.calls)) + " of the calls only.";
  std::vector<const Json*> sites;
  for (const Json& s : profile["sites"])
    if (of(s, "waited_ns") > 0) sites.push_back(&s);
  std::stable_sort(sites.begin(), sites.end(),
                   [](const Json* a, const Json* b) { return of(*a, "waited_ns") > of(*b, "waited_ns"); });
  if (t.waited > kLittle * t.time && !sites.empty()) {
    const Json& site = *sites.front();
    // Of a site that serves many callers, one may cause most of the waiting. Then the sentences are about that one.
    const auto tree = callers_of(site);
    const auto& callers = served(tree);
    const bool many = serves_many(callers);
    const CallerNode* caller =
        many && callers.front().frame && of(callers.front().figures, "waited_ns") >= kMostly * of(site, "waited_ns")
            ? &callers.front()
            : nullptr;
    const Json& worst = caller ? caller->figures : site;
    const Json* row = most_awaited(worst);
    const double share = row ? of(*row, "awaited_ns") / of(worst, "waited_ns") : 0;
    const bool one = row && share >= kMostly;
    out.push_back(percent(of(worst, "waited_ns") / t.waited) + " of the waiting is in " + name_of(site, caller) +
                  (one ? ", and " + percent(share) + " of that is for rank " + row_name(*row) + "."
                       : ", for no rank in particular: the rank that is awaited most, " + (row ? row_name(*row) : "-") +
                             ", causes " + percent(share) + "."));
    if (many && !caller && callers.front().frame)
      out.back() += " Of its " + number(static_cast<double>(callers.size())) + " callers, " +
                    place_of(callers.front()) + " waits longest (" +
                    percent(of(callers.front().figures, "waited_ns") / of(site, "waited_ns")) + ").";
    // A call ends earlier by what the late rank makes each of the others wait, or by the mean wait if all are equal.
    const auto op = core::find_collective(worst["op"].get<std::string>());
    const bool all_wait = op && profiles::waiting_in(*op) == profiles::Waiting::all_for_last;
    const double gain =
        one && all_wait ? of(*row, "awaited_ns") / (of(worst, "comm_size") - 1) / t.time * of(profile["job"], "ranks")
                        : t.waited / t.time;
    out.push_back(one ? why(worst, *row) + "; " + (all_wait ? "without the waits for it there" : "with equal work") +
                            ", the run would take about " + percent(gain) + " less time."
                      : "With equal work on all ranks, the run would take about " + percent(gain) + " less time.");
  } else {
    out.push_back("Late ranks are no subject in this run.");
  }
  // An algorithm can shorten only what follows the last arrival.
  const double large = t.large / t.time, small = (t.after_last - t.large) / t.time;
  if (large >= kLittle)
    out.push_back("An algorithm may shorten what follows the last arrival in calls of more than 2 KiB: " +
                  percent(large) + " of rank-time. `latecomer advise` says by how much.");
  else
    out.push_back(
        "An algorithm cannot help: in calls of more than 2 KiB, " + percent(large) +
        " of rank-time follows the last arrival" +
        (small >= kLittle ? ", and " + percent(small) + " in smaller calls, which no algorithm shortens." : "."));
  if (const std::string text = set_up(profile); !text.empty()) out.push_back(text);
  return out;
}

}  // namespace latecomer::cli
