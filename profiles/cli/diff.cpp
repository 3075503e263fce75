// SPDX-License-Identifier: BSD-3-Clause
// `latecomer diff A B`: compares two runs site by site.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "profiles/base/json.hpp"
#include "profiles/base/text.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/render/finding_text.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles::cli {
namespace {

struct DiffOptions {
  std::string before, after, site;
  bool json = false;
  Progress::Patience patience;
};

/// Identifies the same place in two builds of a program, whose site ids differ.
std::string likeness(const Site& site) {
  std::string out = site.op + " " + std::to_string(static_cast<long>(site.comm_size));
  for (const analysis::NamedFrame& frame : site.frames) out += " < " + place_of(frame);
  return out;
}

std::string algorithms(const Site& site) {
  std::string out;
  for (const analysis::Dispatch& d : site.dispatch) out += (out.empty() ? "" : "+") + d.algorithm;
  return out.empty() ? "native" : out;
}

struct Pair {
  const Site *before = nullptr, *after = nullptr;
  /// Both sides in the same way: a call that was only counted takes as long as the others.
  static double time_of(const Site* site) { return site ? site->elapsed.mean * site->rank_calls : 0; }
  double change() const { return time_of(after) - time_of(before); }
  const Site& either() const { return after ? *after : *before; }
};

std::vector<Pair> match(const Profile& a, const Profile& b) {
  std::map<std::string, const Site*> ids, places;
  std::set<std::string> twice;
  for (const Site& s : a.sites) {
    ids[s.id] = &s;
    if (!places.emplace(likeness(s), &s).second) twice.insert(likeness(s));
  }
  std::vector<Pair> out;
  std::set<const Site*> used;
  std::vector<const Site*> rest;
  for (const Site& s : b.sites) {
    const auto same = ids.find(s.id);
    if (same == ids.end()) {
      rest.push_back(&s);
      continue;
    }
    out.push_back({same->second, &s});
    used.insert(same->second);
  }
  for (const Site* s : rest) {
    const auto alike = places.find(likeness(*s));
    const bool fits = alike != places.end() && !twice.count(alike->first) && !used.count(alike->second);
    if (fits) used.insert(alike->second);
    out.push_back({fits ? alike->second : nullptr, s});
  }
  for (const Site& s : a.sites)
    if (!used.count(&s)) out.push_back({&s, nullptr});
  std::ranges::stable_sort(out,
                           [](const Pair& x, const Pair& y) { return std::abs(x.change()) > std::abs(y.change()); });
  return out;
}

/// A figure before and after; empty: its side is missing.
struct ComparedFigure {
  std::optional<double> before, after;
  std::optional<double> ratio() const {
    return before && after && *before > 0 ? std::optional(*after / *before) : std::nullopt;
  }
};

struct DiffRow {
  const Pair* pair = nullptr;
  ComparedFigure elapsed, after_last, first_to_last;
  ComparedFigure predicted;  ///< of native, and of the algorithm that most calls of the second run got
};

DiffRow row_of(const Pair& p) {
  const auto of = [&](analysis::HistogramFigures Site::*histogram) {
    ComparedFigure out;
    if (p.before) out.before = (p.before->*histogram).mean;
    if (p.after) out.after = (p.after->*histogram).mean;
    return out;
  };
  DiffRow out{&p, of(&Site::elapsed), of(&Site::after_last_histogram), of(&Site::first_to_last), {}};
  double most = 0;
  if (p.after)
    for (const analysis::DecisionFigures& d : p.after->decisions)
      if (d.predicted && d.calls > most) {
        most = d.calls;
        out.predicted = {d.native_predicted, d.predicted};
      }
  return out;
}

Json json_of(const DiffRow& row) {
  const Pair& p = *row.pair;
  const Site& s = p.either();
  const auto sides = [&](auto value) {
    return Json{{"before", p.before ? Json(value(*p.before)) : Json(nullptr)},
                {"after", p.after ? Json(value(*p.after)) : Json(nullptr)}};
  };
  const auto known = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  const auto figures = [&](const ComparedFigure& c) {
    return Json{{"before", known(c.before)}, {"after", known(c.after)}, {"ratio", known(c.ratio())}};
  };
  return {{"id", s.id},
          {"place", s.place()},
          {"op", s.op},
          {"comm_size", static_cast<int>(s.comm_size)},
          {"calls", sides([](const Site& site) { return static_cast<std::uint64_t>(site.calls); })},
          {"elapsed_ns", figures(row.elapsed)},
          {"after_last_ns", figures(row.after_last)},
          {"imbalance_ns", figures(row.first_to_last)},
          {"predicted_ns", {{"before", known(row.predicted.before)}, {"after", known(row.predicted.after)}}},
          {"algorithms", sides(algorithms)},
          {"change_ns", p.change()}};
}

std::string cell(const ComparedFigure& c) {
  if (!c.before) return "- > " + human_time(*c.after);
  if (!c.after) return human_time(*c.before) + " > -";
  std::string out = human_time(*c.before) + " > " + human_time(*c.after);
  if (const auto ratio = c.ratio()) {
    char text[24];
    std::snprintf(text, sizeof text, " %.2fx", *ratio);
    out += text;
  }
  return out;
}

/// Whether both runs have the same mode, and the same algorithms at each common site.
bool ran_alike(const Profile& a, const Profile& b, const std::vector<Pair>& pairs) {
  return a.job.mode == b.job.mode && std::ranges::all_of(pairs, [](const Pair& p) {
           return !p.before || !p.after || algorithms(*p.before) == algorithms(*p.after);
         });
}

void print_row(const DiffRow& row) {
  const Pair& p = *row.pair;
  const Site& s = p.either();
  const auto count = [](const Site* site) { return site ? std::to_string(static_cast<long>(site->calls)) : "-"; };
  std::string where = s.place();
  if (p.before && p.after && algorithms(*p.before) != algorithms(*p.after))
    where += "  [" + algorithms(*p.before) + " > " + algorithms(*p.after) + "]";
  if (row.predicted.before && row.predicted.after)
    where += "  (after last, modelled: " + human_time(*row.predicted.before) + " > " +
             human_time(*row.predicted.after) + ")";
  std::printf("%-12s %5.0f %13s  %-34s %-34s %-34s %s\n", s.op.c_str(), s.comm_size,
              (count(p.before) + " > " + count(p.after)).c_str(), cell(row.elapsed).c_str(),
              cell(row.after_last).c_str(), cell(row.first_to_last).c_str(), where.c_str());
}

/// The largest gain that the report of a run promises, or -1.
int best_finding(const Judgement& judgement) {
  int best = -1;
  double most = analysis::kLittle;
  for (std::size_t i = 0; i < judgement.findings.size(); ++i)
    if (const auto& gain = judgement.findings[i].gain; gain && gain->high >= most) {
      most = gain->high;
      best = static_cast<int>(i);
    }
  return best;
}

/// "40% less"
std::string took(double gain) {
  return percent(std::abs(gain), 1, "more than twice as much") + (gain >= 0 ? " less" : gain > -1 ? " more" : "");
}

void print_text(const Profile& a, const Profile& b, const std::vector<DiffRow>& rows, bool alike) {
  const double before = a.job.wall / 1e9, after = b.job.wall / 1e9;
  if (alike)
    std::printf(
        "Both runs used the same algorithms at every common site, so no policy causes the differences below. They are "
        "noise, or\nthe program or the machine has changed.\n\n");
  std::printf("before: %s, %d ranks, %.2f s\nafter:  %s, %d ranks, %.2f s (%.2fx)\n\n", a.job.command_line.c_str(),
              a.job.ranks, before, b.job.command_line.c_str(), b.job.ranks, after, before > 0 ? after / before : 0);
  if (b.job.promised && before > 0) {
    std::printf(
        "The policy of the second run promised that it saves %s to %s of the run time. The second run took %s.\n\n",
        saving(b.job.promised->least, 1).c_str(), saving(b.job.promised->most, 1).c_str(),
        took(1 - after / before).c_str());
  }
  const Judgement judgement = judge(a);
  if (const int best = best_finding(judgement); best >= 0 && before > 0) {
    const FindingText& text = judgement.texts[static_cast<std::size_t>(best)];
    print_paragraph("The report of the first run says: " + text.title + ", " + text.saves + ". The second run took " +
                    took(1 - after / before) + ".");
    std::printf("\n");
  }
  std::printf("%-12s %5s %13s  %-34s %-34s %-34s %s\n", "collective", "ranks", "calls", "elapsed, mean",
              "after last, mean", "first to last arrival, mean", "called from");
  for (const DiffRow& row : rows) print_row(row);
  std::printf(
      "\nSites are sorted by change of time spent, largest first. Ignore changes that two runs\n"
      "of the same program show, too.\n");
}

int diff(const DiffOptions& o) {
  const Wanted wanted{.patience = o.patience, .names = true, .record = true};
  const Profile a = load_profile(o.before, wanted), b = load_profile(o.after, wanted);
  const std::vector<Pair> pairs = match(a, b);
  std::vector<DiffRow> rows;
  for (const Pair& p : pairs)
    if (o.site.empty() || site_matches(p.either().id, p.either().place(), o.site)) rows.push_back(row_of(p));
  if (!o.site.empty() && rows.empty()) throw BadUsage("--site: no site matches '" + o.site + "'");
  if (!o.json) {
    print_text(a, b, rows, ran_alike(a, b, pairs));
    return 0;
  }
  Json sites = Json::array();
  for (const DiffRow& row : rows) sites.push_back(json_of(row));
  const double before = a.job.wall / 1e9, after = b.job.wall / 1e9;
  const Judgement judgement = judge(a);
  const int best = best_finding(judgement);
  const Json out = {
      {"wall_time_s",
       {{"before", before}, {"after", after}, {"ratio", before > 0 ? Json(after / before) : Json(nullptr)}}},
      {"promised",
       b.job.promised ? Json({{"least", b.job.promised->least}, {"most", b.job.promised->most}}) : Json(nullptr)},
      {"finding", best < 0 ? Json(nullptr) : findings_json(judgement)[static_cast<std::size_t>(best)]},
      {"gain", before > 0 ? Json(1 - after / before) : Json(nullptr)},
      {"sites", sites}};
  print_answer(out, 1);
  return 0;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("diff", "Show what changed per site between two runs");
  auto o = std::make_shared<DiffOptions>();
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

If AFTER ran under a policy of latecomer advise, a line gives the promised and the measured gain of the whole run.
Another one gives the largest gain that the report of BEFORE promises, beside that of AFTER.

Example:
  $ latecomer diff before.json after.json)");
  command->callback([o, &action] { action = [o] { return diff(*o); }; });
}

}  // namespace latecomer::profiles::cli
