// SPDX-License-Identifier: BSD-3-Clause
// `latecomer diff A B`: compares two runs site by site.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "profiles/base/json.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::cli {
namespace {

struct Options {
  std::string before, after, site;
  bool json = false;
  Progress::Patience patience;
};

/// Identifies the same place in two builds of a program, whose site ids differ.
std::string likeness(const Json& site) {
  std::string out = site["op"].get<std::string>() + " " + std::to_string(site["comm_size"].get<int>());
  for (const Json& frame : site["frames"]) out += " < " + place(frame);
  return out;
}

double figure(const Json& site, const char* histogram) { return site[histogram]["mean"].get<double>(); }
/// The time of all ranks together in the calls, in ns.
double spent(const Json& site) { return figure(site, "elapsed_ns") * site["rank_calls"].get<double>(); }

std::string algorithms(const Json& site) {
  std::string out;
  for (const auto& [name, d] : site["dispatch"].items()) out += (out.empty() ? "" : "+") + name;
  return out.empty() ? "native" : out;
}

struct Pair {
  const Json *before = nullptr, *after = nullptr;
  double change() const { return (after ? spent(*after) : 0) - (before ? spent(*before) : 0); }
  const Json& either() const { return after ? *after : *before; }
};

std::vector<Pair> match(const Json& a, const Json& b) {
  std::map<std::string, const Json*> ids, places;
  std::set<std::string> twice;
  for (const Json& s : a["sites"]) {
    ids[s["id"].get<std::string>()] = &s;
    if (!places.emplace(likeness(s), &s).second) twice.insert(likeness(s));
  }
  std::vector<Pair> out;
  std::set<const Json*> used;
  std::vector<const Json*> rest;
  for (const Json& s : b["sites"]) {
    const auto same = ids.find(s["id"].get<std::string>());
    if (same == ids.end()) {
      rest.push_back(&s);
      continue;
    }
    out.push_back({same->second, &s});
    used.insert(same->second);
  }
  for (const Json* s : rest) {
    const auto alike = places.find(likeness(*s));
    const bool fits = alike != places.end() && !twice.count(alike->first) && !used.count(alike->second);
    if (fits) used.insert(alike->second);
    out.push_back({fits ? alike->second : nullptr, s});
  }
  for (const Json& s : a["sites"])
    if (!used.count(&s)) out.push_back({&s, nullptr});
  std::stable_sort(out.begin(), out.end(),
                   [](const Pair& x, const Pair& y) { return std::abs(x.change()) > std::abs(y.change()); });
  return out;
}

/// Before, after and their ratio. A value is null if its side is missing.
Json compared(const Pair& p, const char* histogram) {
  Json out = {{"before", nullptr}, {"after", nullptr}, {"ratio", nullptr}};
  if (p.before) out["before"] = figure(*p.before, histogram);
  if (p.after) out["after"] = figure(*p.after, histogram);
  if (p.before && p.after && figure(*p.before, histogram) > 0)
    out["ratio"] = figure(*p.after, histogram) / figure(*p.before, histogram);
  return out;
}

std::string cell(const Json& c) {
  if (c["before"].is_null()) return "- > " + human_time(c["after"]);
  if (c["after"].is_null()) return human_time(c["before"]) + " > -";
  std::string out = human_time(c["before"]) + " > " + human_time(c["after"]);
  if (!c["ratio"].is_null()) {
    char ratio[24];
    std::snprintf(ratio, sizeof ratio, " %.2fx", c["ratio"].get<double>());
    out += ratio;
  }
  return out;
}

/// Whether both runs have the same mode, and the same algorithms at each common site.
bool ran_alike(const Json& a, const Json& b, const std::vector<Pair>& pairs) {
  return a["job"]["mode"] == b["job"]["mode"] && std::all_of(pairs.begin(), pairs.end(), [](const Pair& p) {
           return !p.before || !p.after || algorithms(*p.before) == algorithms(*p.after);
         });
}

int diff(const Options& o) {
  Profile first = load_profile(o.before, o.patience), second = load_profile(o.after, o.patience);
  Json &a = first.json, &b = second.json;
  for (Json* profile : {&a, &b}) resolve_names(*profile, o.patience);
  Json sites = Json::array();
  const std::vector<Pair> pairs = match(a, b);
  for (const Pair& p : pairs) {
    const Json& s = p.either();
    if (!o.site.empty() && !site_matches(s["id"], place(s["frames"][0]), o.site)) continue;
    Json row = {{"id", s["id"]}, {"place", place(s["frames"][0])}, {"op", s["op"]}, {"comm_size", s["comm_size"]}};
    row["calls"] = {{"before", p.before ? (*p.before)["calls"] : Json(nullptr)},
                    {"after", p.after ? (*p.after)["calls"] : Json(nullptr)}};
    for (const char* name : {"elapsed_ns", "after_last_ns", "imbalance_ns"}) row[name] = compared(p, name);
    row["predicted_ns"] = {{"before", nullptr}, {"after", nullptr}};
    std::uint64_t most = 0;
    for (const Json& d : p.after ? p.after->value("decisions", Json::array()) : Json::array())
      if (!d["predicted_ns"].is_null() && d["calls"].get<std::uint64_t>() > most) {
        most = d["calls"];
        row["predicted_ns"] = {{"before", d["native_predicted_ns"]}, {"after", d["predicted_ns"]}};
      }
    row["algorithms"] = {{"before", p.before ? Json(algorithms(*p.before)) : Json(nullptr)},
                         {"after", p.after ? Json(algorithms(*p.after)) : Json(nullptr)}};
    row["change_ns"] = p.change();
    sites.push_back(row);
  }
  if (!o.site.empty() && sites.empty()) throw BadUsage("--site: no site matches '" + o.site + "'");
  const double before = a["job"]["wall_time_s"], after = b["job"]["wall_time_s"];
  if (o.json) {
    const Json out = {
        {"wall_time_s",
         {{"before", before}, {"after", after}, {"ratio", before > 0 ? Json(after / before) : Json(nullptr)}}},
        {"sites", sites}};
    std::printf("%s\n", profiles::json_text(out, 1).c_str());
    return 0;
  }
  if (ran_alike(a, b, pairs))
    std::printf(
        "Both runs used the same algorithms at every common site, so no policy causes the differences below. They are "
        "noise, or\nthe program or the machine has changed.\n\n");
  std::printf("before: %s, %d ranks, %.2f s\nafter:  %s, %d ranks, %.2f s (%.2fx)\n\n",
              a["job"]["command_line"].get<std::string>().c_str(), a["job"]["ranks"].get<int>(), before,
              b["job"]["command_line"].get<std::string>().c_str(), b["job"]["ranks"].get<int>(), after,
              before > 0 ? after / before : 0);
  std::printf("%-12s %5s %13s  %-34s %-34s %-34s %s\n", "collective", "ranks", "calls", "elapsed, mean",
              "after last, mean", "first to last arrival, mean", "called from");
  for (const Json& row : sites) {
    const auto count = [&](const char* side) {
      return row["calls"][side].is_null() ? std::string("-") : std::to_string(row["calls"][side].get<std::uint64_t>());
    };
    std::string where = row["place"].get<std::string>();
    if (row["algorithms"]["before"] != row["algorithms"]["after"] && !row["algorithms"]["before"].is_null() &&
        !row["algorithms"]["after"].is_null())
      where += "  [" + row["algorithms"]["before"].get<std::string>() + " > " +
               row["algorithms"]["after"].get<std::string>() + "]";
    if (const Json& said = row["predicted_ns"]; !said["after"].is_null() && !said["before"].is_null())
      where += "  (after last, modelled: " + human_time(said["before"]) + " > " + human_time(said["after"]) + ")";
    std::printf("%-12s %5d %13s  %-34s %-34s %-34s %s\n", row["op"].get<std::string>().c_str(),
                row["comm_size"].get<int>(), (count("before") + " > " + count("after")).c_str(),
                cell(row["elapsed_ns"]).c_str(), cell(row["after_last_ns"]).c_str(), cell(row["imbalance_ns"]).c_str(),
                where.c_str());
  }
  std::printf(
      "\nSites are sorted by change of time spent, largest first. Ignore changes that two "
      "runs\nof the same program show, too.\n");
  return 0;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("diff", "Show what changed per site between two runs");
  auto o = std::make_shared<Options>();
  command->add_option("BEFORE", o->before, "Profile of the first run.")->required();
  command->add_option("AFTER", o->after, "Profile of the second run.")->required();
  command->add_option("--site", o->site, "Show only sites whose id or place matches this glob.");
  Progress::add_option(*command, o->patience);
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(
      R"(Columns of the table, one row per call site, largest change first. A cell shows BEFORE > AFTER and their ratio:
  collective, ranks, calls       the operation, size of the communicator, number of calls
  elapsed, mean                  arrival to exit, mean over ranks and calls
  after last, mean               last arrival to last exit
  first to last arrival, mean    the imbalance of a call
  called from                    the site; in brackets the algorithms that ran, if they differ

Example:
  $ latecomer diff before.json after.json)");
  command->callback([o, &action] { action = [o] { return diff(*o); }; });
}

}  // namespace latecomer::cli
