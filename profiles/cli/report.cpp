// SPDX-License-Identifier: BSD-3-Clause
// `latecomer report`: lists the collectives by waiting time, worst first. Resolves names after the run.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/text.hpp"
#include "core/select/candidates.hpp"
#include "profiles/analysis/callers.hpp"
#include "profiles/base/json.hpp"
#include "profiles/cli/answer_file.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/format/last_state.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/record/not_counted.hpp"
#include "profiles/record/waiting.hpp"
#include "profiles/render/communicator_table.hpp"
#include "profiles/render/finding_text.hpp"
#include "profiles/render/hang.hpp"
#include "profiles/render/html.hpp"
#include "profiles/render/network_text.hpp"
#include "profiles/render/rank_table.hpp"
#include "profiles/render/set_up.hpp"
#include "profiles/render/shown_sites.hpp"
#include "profiles/render/site_table.hpp"
#include "profiles/render/text_table.hpp"
#include "profiles/render/timed_table.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::profiles::cli {
namespace {

struct ReportOptions {
  std::string file, sort = "wait", site, html;
  int top = 10;
  Progress::Patience patience;
  std::vector<std::string> more;
  bool all = false, json = false, tsv = false, tsv_calls = false, redact = false, force = false;
};

/// A sort key and its value of a site. Sites are sorted by descending value.
struct SortKey {
  std::string_view name;
  double (*value)(const Site& site);
};
constexpr SortKey kSortKeys[] = {
    {"wait", [](const Site& s) { return s.waited; }},
    {"calls", [](const Site& s) { return s.calls; }},
    {"imbalance", [](const Site& s) { return s.imbalance; }},
    {"elapsed", [](const Site& s) { return s.spent(); }},
    {"after_last", [](const Site& s) { return s.after_last; }},
    {"bytes", [](const Site& s) { return s.bytes.value_or(0); }},
};

std::string sort_keys() {
  std::string out;
  for (const SortKey& k : kSortKeys) out.append(out.empty() ? "" : ", ").append(k.name);
  return out;
}

void bars(const char* title, const analysis::HistogramFigures& histogram) {
  const std::vector<double>&counts = histogram.counts, &edges = histogram.edges;
  const double most = counts.empty() ? 0 : *std::ranges::max_element(counts);
  if (most == 0) return;
  const auto median = histogram.bounds(0.5);
  std::printf("    %s: mean %s, median %s to %s, 90%% below %s, max %s\n", title, human_time(histogram.mean).c_str(),
              human_time(median.first).c_str(), human_time(median.second).c_str(),
              human_time(histogram.bounds(0.9).second).c_str(), human_time(histogram.max).c_str());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const int width = static_cast<int>(std::ceil(40 * counts[i] / most));
    std::printf("      %11s |%-40s %.0f\n", human_time(edges[i]).c_str(),
                std::string(static_cast<std::size_t>(width), '#').c_str(), counts[i]);
  }
}

/// Whether the modelled time of native is close enough to the measured time for the model to describe this machine.
bool native_is_forecast(const analysis::DecisionFigures& d) {
  return !d.native_predicted || !d.native_measured || core::is_forecast(*d.native_predicted, *d.native_measured);
}

/// One line per caller, and below it those that called it.
void print_callers(const Site& site, const std::vector<analysis::CallerNode>& callers, int level) {
  const auto share = [&](double part, double whole) { return percent(part, whole, "-"); };
  for (std::size_t i = 0; i < callers.size(); ++i) {
    const analysis::CallFigures& f = callers[i].figures;
    if (i == analysis::kMostCallers) {
      std::printf("      %17s%*s%zu more callers\n", "", 2 * level, "", callers.size() - i);
      return;
    }
    std::printf("      %7s %7s  %*s%s\n", share(f.calls, site.calls).c_str(), share(f.waited, site.waited).c_str(),
                2 * level, "", callers[i].place().c_str());
    print_callers(site, callers[i].callers, level + 1);
  }
}

void print_arrivals(const Site& site) {
  if (const auto op = core::find_collective(site.op)) std::printf("    %s\n", std::string(waiting_text(*op)).c_str());
  bars("first to last arrival", site.first_to_last);
  std::printf("    comes last: %s\n", site.comes_last(4).c_str());
  const auto latest = site.latest(4);
  std::printf("    latest on average:");
  for (std::size_t i = 0; i < latest.size(); ++i)
    std::printf("%s %s +%s (sd %s)", i ? "," : "", latest[i]->named().c_str(), human_time(latest[i]->offset).c_str(),
                human_time(latest[i]->stddev).c_str());
  std::printf("\n");
}

void print_sources(const Site& site) {
  constexpr std::pair<std::string_view, const char*> kSources[] = {
      {"edge", "the program's edge calls"}, {"history", "earlier calls"}, {"none", "nothing yet"}};
  std::string text;
  for (const auto& [name, words] : kSources)
    for (const analysis::SourceFigures& source : site.sources)
      if (source.name == name)
        text += (text.empty() ? "" : "; ") + std::string(words) + " in " +
                std::to_string(static_cast<long>(source.calls)) +
                (source.error ? ", off by " + human_time(*source.error) + " per rank" : "");
  if (!site.sources.empty()) std::printf("    arrival pattern from %s\n", text.c_str());
}

void print_decision(const analysis::DecisionFigures& d) {
  const auto time_or = [](const std::optional<double>& ns) { return ns ? human_time(*ns) : std::string("-"); };
  const std::string bytes = d.bytes < 0 ? "any size" : std::to_string(static_cast<long>(d.bytes)) + " B";
  std::printf("    %s x %.0f: %s%s%s\n", bytes.c_str(), d.calls, d.algorithm.c_str(),
              d.reason.empty() ? "" : ", because ", d.reason.c_str());
  if (d.last_rank)
    std::printf("      forecast (%s): rank %d last, %s after the first, off by %s\n", d.predictor.c_str(), *d.last_rank,
                human_time(d.spread).c_str(), human_time(d.error).c_str());
  if (d.predicted || d.native_measured)
    std::printf("      modelled %s, native %s%s; measured %s, native %s\n", time_or(d.predicted).c_str(),
                time_or(d.native_predicted).c_str(),
                native_is_forecast(d) ? "" : " (the model does not describe this machine)", time_or(d.measured).c_str(),
                time_or(d.native_measured).c_str());
}

void print_ways(const Site& site) {
  if (site.frames.size() > 1) {
    std::printf("    called by");
    for (std::size_t i = 1; i < site.frames.size(); ++i)
      std::printf("%s %s", i > 1 ? "," : "", place_of(site.frames[i]).c_str());
    std::printf("\n");
  }
  if (const auto callers = analysis::callers_of(site); !callers.empty()) {
    std::printf("    callers, with their share of the calls and of the waiting:\n");
    print_callers(site, callers, 0);
  }
  if (site.divergent > 0)
    std::printf("    %.0f of the calls were reached from different call sites on different ranks\n", site.divergent);
}

void print_site(const Site& site) {
  std::printf("\n  %s  %s on %.0f ranks, site %s\n", site.place().c_str(), site.op.c_str(), site.comm_size,
              site.id.c_str());
  if (site.rested > 0)
    std::printf(
        "    %.0f of the calls are in idle epochs, which are not logged: arrivals were balanced and native ran "
        "(policy key `rest`)\n",
        site.rested);
  if (site.logged < site.patterns)
    std::printf("    %.0f of %.0f calls were logged: waiting about %s +- %s\n", site.logged, site.calls,
                human_time(site.waited).c_str(), human_time(site.waited_error).c_str());
  if (site.patterns == 0) {
    std::printf("    no call has records of all ranks; %.0f calls by single ranks\n", site.rank_calls);
    return;
  }
  print_arrivals(site);
  for (const analysis::Dispatch& d : site.dispatch)
    std::printf("    %-20s %8.0f calls, elapsed %s, after the last arrival %s\n", d.algorithm.c_str(), d.calls,
                human_time(d.elapsed).c_str(), human_time(d.after_last).c_str());
  print_sources(site);
  for (const analysis::DecisionFigures& d : site.decisions) print_decision(d);
  print_ways(site);
}

/// The profile in the order of the report, with the shares of callers and the figures of the report. Scripts find the
/// rows of ranks in their sites, as in version 1.
void print_json(WholeProfile& whole, const Profile& profile, const ShownSites& shown) {
  std::vector<std::size_t> sites;
  for (const Site* s : shown.collectives) {
    Json& site = whole.profile["sites"][s->index];
    for (std::size_t i = 0; i < s->callers.size(); ++i)
      site["callers"][i]["share"] = Share::of(s->callers[i].waited, s->waited).value();
    sites.push_back(s->index);
  }
  whole.choose_sites(sites);
  for (const auto& [key, kept] : {std::pair("timed_sites", &shown.timed), std::pair("thread_sites", &shown.threads)})
    if (const auto timed = whole.profile.find(key); timed != whole.profile.end())
      std::erase_if(timed->get_ref<Json::array_t&>(), [&, kept = kept](const Json& one) {
        return std::ranges::find(*kept, one["id"].get<std::string>(), [](const auto* site) { return site->id; }) ==
               kept->end();
      });
  if (!profile.last_state.ranks.empty()) {
    Json state = last_state_json(profile.last_state);
    state["findings"] = Hang(profile.last_state).sentences();
    whole.profile["last_state"] = std::move(state);
  }
  Json sentences = Json::array();
  for (const analysis::Finding& one : set_up(profile))
    for (const std::string& sentence : one.text) sentences.push_back(sentence);
  whole.profile["setup"] = std::move(sentences);
  const Judgement judgement = judge(profile);
  whole.profile["verdict"] = verdict(judgement);
  whole.profile["findings"] = findings_json(judgement);
  whole.profile["wait_share"] = share_json(analysis::wait_share(profile));
  whole.profile["ranks"] = ranks_json(profile.analysis);
  std::map<std::string, Json> loads;
  for (const Json& host : whole.profile.value("hosts", Json::array()))
    if (host.contains("load")) loads[host["host"].get<std::string>()] = host["load"];
  whole.profile["hosts"] = hosts_json(profile.analysis);
  for (Json& host : whole.profile["hosts"])
    if (const auto load = loads.find(host["host"].get<std::string>()); load != loads.end()) host["load"] = load->second;
  whole.profile["efficiency"] = efficiency_json(profile.analysis.efficiency());
  whole.write_version_1([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
}

/// A number from 0 to 1; -1 stands for unknown, as for the size of a payload.
std::string tsv_share(Share share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", share.known() ? share.value() : -1);
  return text;
}

void print_tsv(const Profile& profile, const ShownSites& shown) {
  std::printf(
      "op\tcomm_size\tcalls\tbytes\timbalance_ns\telapsed_ns\tafter_last_ns\tlast_ranks\tplace\twaited_ns\tshare\n");
  for (const Site* s : shown.collectives)
    std::printf("%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%s\t%.0f\t%s\n", s->op.c_str(), s->comm_size, s->calls,
                s->bytes.value_or(-1), s->imbalance, s->elapsed.mean, s->after_last, s->last_ranks(3).c_str(),
                s->place().c_str(), s->waited, tsv_share(Share::of(s->waited, profile.job.rank_time())).c_str());
}

void print_calls_tsv(const Profile& profile, const ShownSites& shown) {
  std::printf(
      "call\tpart\tcalls\ttime_ns\ttime_error_ns\tshare\tmost_on\twaits_for\tplace\tthreads\tmessages\tbytes\t"
      "matched\tlate_sender\tlate_receiver\ttransfer\tnot_known\tmatched_messages\n");
  const auto print = [&](const std::vector<const analysis::TimedCalls*>& sites, const char* threads) {
    const std::vector<TimedRow> rows = timed_rows(profile, sites);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::printf("%s\t%s\t%.0f\t%.0f\t%.0f\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.0f", rows[i].call.c_str(),
                  sites[i]->part.c_str(), rows[i].calls, rows[i].time, sites[i]->error,
                  tsv_share(rows[i].share).c_str(), rows[i].most_on.c_str(), rows[i].waits_for.c_str(),
                  rows[i].place.c_str(), threads, rows[i].messages, rows[i].bytes);
      const analysis::KindFigures& kinds = sites[i]->kinds;
      for (const Share& share :
           {kinds.share_matched(), kinds.share(kinds.late_sender), kinds.share(kinds.late_receiver),
            kinds.share(kinds.transfer), kinds.share(kinds.not_known)})
        std::printf("\t%s", tsv_share(share).c_str());
      std::printf("\t%.0f\n", kinds.matched);
    }
  };
  print(shown.timed, "main");
  print(shown.threads, "other");
}

/// What latecomer took, and how many of the calls it logged.
std::string cost_text(const Profile& profile) {
  /// Above this share, the largest part is named.
  constexpr double kMuch = 0.02;
  constexpr std::pair<std::string_view, const char*> kParts[] = {
      {"log_ns", "for logs of calls"},     {"exchange_ns", "to exchange logs"},
      {"files_ns", "for snapshots"},       {"causes_ns", "to read the kernel's counters"},
      {"messages_ns", "to time messages"}, {"count_ns", "for counting calls"}};
  double calls = 0, patterns = 0, logged = 0;
  for (const Site& s : profile.sites) {
    calls += s.calls;
    patterns += s.patterns;
    logged += s.logged;
  }
  const analysis::ProfileJob::Cost& cost = profile.job.cost;
  std::string out;
  if (cost.start > 0) out = "Latecomer took " + human_time(cost.start) + " per rank to start and to find call sites";
  if (!out.empty() && cost.later.known())
    out += ", then " + percent(cost.later.value(), 1, "0%") + " of the ranks' time";
  if (cost.later.value() > kMuch)
    for (const auto& [part, purpose] : kParts)
      if (part == cost.most) out += std::string(", most of it ") + purpose;
  if (logged < patterns)
    out += (out.empty() ? "Latecomer" : ". It") + (" logged " + percent(logged, calls, "0%")) +
           " of the calls (policy key `budget`), so times and waits are estimates";
  return out.empty() ? out : out + ".";
}

/// The calls that some figures leave out.
std::string not_counted_text(const Profile& profile) {
  std::string out;
  for (const analysis::UncountedFigures& one : profile.not_counted)
    if (const auto kind = std::ranges::find(kUncounted, one.what, &UncountedKind::key); kind != std::end(kUncounted))
      out += (out.empty() ? "Not counted: " : "; ") + std::string(kind->words) + " (" +
             core::grouped(static_cast<std::int64_t>(one.calls)) + (one.calls == 1 ? " call of " : " calls of ") +
             core::grouped(static_cast<std::int64_t>(one.ranks)) + (one.ranks == 1 ? " rank)" : " ranks)");
  return out.empty() ? out : out + ".";
}

/// The findings, the job and its set-up.
void print_head(const Profile& profile, const std::string& file, bool all) {
  const Judgement judgement = judge(profile);
  const std::string text =
      judgement_text(judgement, all ? judgement.findings.size() : kFirstFindings, kLineWidth, shell_word(file));
  const analysis::ProfileJob& job = profile.job;
  // Else the headline has the time.
  const std::string time = judgement.headline.empty() ? human_time(job.mean_run()) + ", " : "";
  std::printf("%s%s%s\n%d rank%s on %zu host%s, %s%s, mode %s\n", text.c_str(), text.empty() ? "" : "\n",
              (all ? job.command_line : cut(job.command_line, kLineWidth)).c_str(), job.ranks,
              job.ranks == 1 ? "" : "s", job.hosts, job.hosts == 1 ? "" : "s", time.c_str(), job.mpi_library.c_str(),
              job.mode.c_str());
  if (const std::string cost = cost_text(profile); !cost.empty()) print_paragraph(cost);
  if (job.unfinished > 0)
    print_paragraph("The job had not ended: the snapshots end after " + reach_text(job) +
                    ", and counts and sums are at least those shown.");
  if (!job.history.file.empty())
    print_paragraph("history " + shown_path(job.history.file) +
                    (job.history.why_not.empty()
                         ? ": its winners served " + core::grouped(static_cast<std::int64_t>(job.history.calls)) +
                               " calls, from the first on; the decisions of the sites name them"
                         : ": not used, " + job.history.why_not));
  if (all)
    for (const analysis::Finding& one : set_up(profile))
      if (one.variant == "unbound") print_paragraph("set-up: " + one.text.front());
  if (all && profile.network) print_paragraph(network_sentence(profile));
  if (const std::string text = not_counted_text(profile); all && !text.empty()) print_paragraph(text);
  std::printf("\n");
}

void print_warnings(const Profile& profile, std::size_t most) {
  for (std::size_t i = 0; i < std::min(most, profile.warnings.size()); ++i)
    std::printf("\n%s", paragraph("warning: " + profile.warnings[i], kLineWidth).c_str());
  if (profile.warnings.size() > most) std::printf("... and %zu more warnings.\n", profile.warnings.size() - most);
}

/// The first screen: the verdict and the largest sites, and the command that shows the rest.
void print_short(const Profile& profile, const ShownSites& shown, const ReportOptions& o) {
  print_head(profile, o.file, false);
  print_sites(profile, shown.collectives, static_cast<std::size_t>(o.top), false);
  constexpr std::size_t kTimedSites = 5;
  constexpr double kShare = 0.01;  // chosen: as for the sentence on messages
  print_timed_sites(profile, shown.timed, kTimedSites, kShare, false);
  if (!o.site.empty())
    for (const Site* s : shown.collectives) print_site(*s);
  constexpr std::size_t kWarnings = 2;
  print_warnings(profile, kWarnings);
  std::printf("\nRanks, hosts, causes and histograms: latecomer report --all %s\n", shell_word(o.file).c_str());
}

void print_all(const Profile& profile, const ShownSites& shown, const std::string& file, int top) {
  print_head(profile, file, true);
  print_sites(profile, shown.collectives, shown.collectives.size(), true);
  print_timed_sites(profile, shown.timed, shown.timed.size(), 0, true);
  print_ranks(profile.analysis, top);
  print_threads(profile, shown.threads, static_cast<std::size_t>(top));
  print_communicators(profile, top);
  if (!profile.last_state.ranks.empty())
    std::printf("\nlast state of the ranks\n%s", Hang(profile.last_state).table(true).c_str());
  int details = 0;
  for (const Site* s : shown.collectives)
    if (s->calls > 0 && s->comm_size > 1 && details++ < top) print_site(*s);
  print_warnings(profile, profile.warnings.size());
}

int report(const ReportOptions& o) {
  if (!o.more.empty()) {
    std::string files = " " + shell_word(o.file);
    for (const std::string& file : o.more) files += " " + shell_word(file);
    throw BadUsage("report: reads one profile; to compare two runs, write: latecomer diff" +
                   (o.more.size() == 1 ? files : std::string(" BEFORE AFTER")));
  }
  const SortKey* key = nullptr;
  std::vector<std::string_view> names;
  for (const SortKey& k : kSortKeys) {
    names.push_back(k.name);
    if (k.name == o.sort) key = &k;
  }
  if (!key) throw BadUsage("--sort: unknown key '" + o.sort + "'" + core::suggestion(o.sort, names));
  std::optional<AnswerFile> page;
  if (!o.html.empty()) page.emplace("--html", o.html, kPageFile, o.force);
  WholeProfile whole(o.file, o.patience);
  const Profile profile = read_profile(
      whole, {.patience = o.patience, .names = true, .redacted = o.redact, .cells = page.has_value(), .record = true});
  ShownSites shown(profile);
  std::ranges::stable_sort(shown.collectives,
                           [&](const Site* a, const Site* b) { return key->value(*a) > key->value(*b); });
  if (!o.site.empty()) {
    std::erase_if(shown.collectives, [&](const Site* s) { return !site_matches(s->id, s->place(), o.site); });
    for (auto* sites : {&shown.timed, &shown.threads})
      std::erase_if(*sites, [&](const analysis::TimedCalls* s) {
        return !site_matches(s->id, analysis::place_of(s->frames), o.site);
      });
    if (shown.collectives.empty() && shown.timed.empty() && shown.threads.empty())
      throw BadUsage("--site: no site matches '" + o.site + "'");
  }
  if (page) {
    page->write(html_report(profile, shown));
    if (page->is_file()) std::printf("%s\n", o.html.c_str());
  } else if (o.json) {
    print_json(whole, profile, shown);
  } else if (o.tsv) {
    print_tsv(profile, shown);
  } else if (o.tsv_calls) {
    print_calls_tsv(profile, shown);
  } else {
    if (o.sort == "wait") put_large_first(profile, shown.collectives);
    if (o.all) print_all(profile, shown, o.file, o.top);
    else print_short(profile, shown, o);
  }
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("report", "Show which ranks the collectives of a profile wait for, longest wait first");
  auto o = std::make_shared<ReportOptions>();
  command->add_option("FILE", o->file, "Profile to read.")->required();
  command->add_option("MORE", o->more)->group("");  // not shown: names `diff` for two profiles
  command->add_option("--sort", o->sort, "Order of the sites, by one of: " + sort_keys() + ".")->capture_default_str();
  command->add_option("--site", o->site, "Show only sites whose id or place matches this glob.");
  command->add_flag("--all", o->all,
                    "Print all sites with all columns, the ranks, hosts, efficiencies and communicators, and the sites "
                    "in detail.");
  command->add_option("--top", o->top, "Rows of a table; with --all, ranks, hosts and sites in detail.")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option(
      "--html", o->html,
      "Write a page with plots and tables to this file (- for stdout), and print its path instead of the text.");
  AnswerFile::add_force(*command, o->force);
  Progress::add_option(*command, o->patience);
  command->add_flag("--tsv", o->tsv, "Print one line per site, separated by tabs, times in nanoseconds.");
  command->add_flag("--tsv-calls", o->tsv_calls,
                    "The same for sites of MPI calls that are no collectives and may wait.");
  command->add_flag("--json", o->json,
                    "Print the profile with the names of functions and files filled in, and with findings, "
                    "verdict, setup, wait_share, ranks, hosts and efficiency.");
  command->add_flag("--redact", o->redact,
                    "Leave out command lines, names of hosts and directories, for others to read.");
  command->footer(
      R"(Columns of the table, with all of them under --all. A row is a call site. Those that take 1% of the ranks' time
come first, and within both parts those with the longest total wait:
  collective   the operation
  ranks        size of the communicator
  calls        calls from this site; 0 if other ranks make the same calls from another line, whose row counts them
  bytes        mean payload of a call
  wait, sum    time that ranks waited for others, from their arrival to that of the awaited rank, sum of all ranks
  share        its share of the time of all ranks
  in call      the time of all ranks in these calls, waits and all else, as a share of the same; "-" of callers
  wait, mean   first to last arrival, mean of all calls
  after last   last arrival to last exit, mean of all calls
  comes last   the rank that arrives last most often, two under --all, with their share of the calls; "-": nobody waited
  called from  function, file and line; module and offset if the function has no name. Below a line that serves several
               callers, "<" marks the three that wait longest. Their calls and waits are parts of its row.

Columns of --tsv: op, comm_size, calls, bytes, then means in nanoseconds: imbalance_ns (first to last arrival),
elapsed_ns (arrival to exit, mean over ranks), after_last_ns; last_ranks; place; waited_ns (sum of all ranks) and its share of
the time of all ranks, 0 to 1.

Columns of --tsv-calls: call, part (messages, files, or other: calls that make communicators, windows and the like), calls,
time_ns (sum of all ranks), its standard error where not every call was timed, its share of the time of all ranks; the rank
with the most of it, and the rank whose messages the calls awaited longest, with their shares of time_ns; place.
Then of a sample of messages: the share that was matched, and by kind the shares of their time, late_sender, late_receiver,
transfer and not_known; and the number of those that were matched.

Examples:
  $ latecomer report job.json
  $ latecomer report --html page.html job.json
  $ latecomer report --tsv --sort calls job.json)");
  command->callback([o, &action] { action = [o] { return report(*o); }; });
}

}  // namespace latecomer::profiles::cli
