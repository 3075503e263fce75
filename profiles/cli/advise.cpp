// SPDX-License-Identifier: BSD-3-Clause
// `latecomer advise FILE`: makes a policy from a profile and states the gain to expect, as a range.
#include "profiles/cli/advise.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/agreement/agreement.hpp"
#include "core/base/text.hpp"
#include "core/learning/samples.hpp"
#include "core/select/by_call.hpp"
#include "core/select/gain.hpp"
#include "profiles/base/json.hpp"
#include "profiles/cli/answer_file.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/tuning.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/render/network_text.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles::cli {
namespace {

struct AdviseOptions {
  std::string file, output, network, format, objective = "run_time";
  Progress::Patience patience;
  bool json = false, foreground = false, force = false;
};

/// The forecasts of the model for a site.
struct Advice {  // NOLINT(bugprone-exception-escape): the JSON library asserts in its move constructor
  const Site* site = nullptr;
  std::string algorithm = "native", reason;
  int segments = 0;
  std::optional<double> native_ns, native_modelled_ns, predicted_ns;  ///< of a call
  Json rule;                                                          ///< null: the site stays native
  core::Gain gain;                                                    ///< of all calls together, of the run time
  double factor = 1;                                                  ///< modelled time over modelled native
  bool background = false;
};

/// The input of the advice for all sites.
struct Terms {
  core::Network network;
  core::Objective objective = core::Policy().objective;
  bool foreground = false;
};

/// The site's element of --json.
Json json_of(const Advice& a) {
  const auto known = [](const std::optional<double>& ns) { return ns ? Json(*ns) : Json(nullptr); };
  return {{"id", a.site->id},
          {"place", a.site->place()},
          {"op", a.site->op},
          {"comm_size", static_cast<int>(a.site->comm_size)},
          {"calls", static_cast<std::uint64_t>(a.site->calls)},
          {"algorithm", a.algorithm},
          {"segments", a.segments},
          {"native_ns", known(a.native_ns)},
          {"native_modelled_ns", known(a.native_modelled_ns)},
          {"predicted_ns", known(a.predicted_ns)},
          {"gain_ns", a.gain.likely},
          {"gain_least_ns", a.gain.least},
          {"gain_most_ns", a.gain.most},
          {"reason", a.reason}};
}

/// Takes the mean offset of every rank as a forecast. Returns the reason as an error if the arrivals cannot be
/// predicted.
core::Result<core::Forecast> forecast_of(const Site& site, int ranks) {
  if (site.rows != static_cast<std::size_t>(ranks))
    return core::Error{"the rows of ranks cover several communicators, or a row groups several ranks"};
  core::Forecast out;
  // Eleven days. Derived: sums of a thousand such offsets stay below 2^63, and only a damaged profile contains a longer
  // one, which counts as this long.
  constexpr double kLongest = 1e15;
  // Derived: sqrt(2 / pi), the ratio of mean absolute to standard deviation of a normal distribution.
  constexpr double kAbsolute = 0.8;
  for (const double mean : site.offsets_ns)
    out.offsets.push_back(static_cast<core::Nanoseconds>(std::clamp(mean, -kLongest, kLongest)));
  for (const double deviation : site.stddevs_ns)
    out.error = std::max(out.error, static_cast<core::Nanoseconds>(std::clamp(kAbsolute * deviation, 0.0, kLongest)));
  const auto first = *std::ranges::min_element(out.offsets);
  for (auto& o : out.offsets) {
    o -= first;
    out.spread = std::max(out.spread, o);
  }
  if (!out.uncertain()) return out;
  const double imbalance = site.imbalance, calls = site.patterns, after = site.after_last;
  const std::string found =
      "the mean imbalance of " + core::grouped(static_cast<std::int64_t>(calls)) + " calls is " + human_time(imbalance);
  if (imbalance < (1 - core::kWorthTrying) * after)
    return core::Error{"arrivals are balanced: " + found + ", but an algorithm can pay only from " +
                       human_time((1 - core::kWorthTrying) * after) + " on, with " + human_time(after) +
                       " after the last arrival"};
  const analysis::RankRow* often = site.most_often_last();
  const std::string last = often ? often->named() + " came last in " + percent(often->last, calls) + " of the calls"
                                 : "no rank is known to come last";
  return core::Error{"arrivals cannot be predicted: " + last + " and " + found + ", but the ranks' mean offsets span " +
                     human_time(static_cast<double>(out.spread)) + " and deviate by " +
                     human_time(static_cast<double>(out.error)) + "; a pattern needs a deviation below " +
                     human_time(static_cast<double>(out.spread) / 3)};
}

/// The measured native calls of a site; nullptr: too few.
const analysis::Dispatch* native_calls(const Site& site) {
  const auto native = std::ranges::find(site.dispatch, "native", &analysis::Dispatch::algorithm);
  return native == site.dispatch.end() || native->calls < core::kEnoughMeasured ? nullptr : &*native;
}

/// The measured time of a native call in terms of the objective, in ns; -1 if too few calls were observed.
double native_measured(const Site& site, core::Objective objective) {
  const analysis::Dispatch* native = native_calls(site);
  if (!native) return -1;
  return objective == core::Objective::mean_elapsed ? native->elapsed : native->after_last;
}

/// Measured over modelled time of an algorithm at this site, where it ran.
std::optional<double> own_error(const Site& site, std::string_view algorithm) {
  const analysis::DecisionFigures* found = nullptr;
  for (const analysis::DecisionFigures& d : site.decisions)
    if (d.algorithm == algorithm && d.measured && d.predicted.value_or(0) > 0 && (!found || d.calls > found->calls))
      found = &d;
  return found ? std::optional(*found->measured / *found->predicted) : std::nullopt;
}

/// The number of calls on communicators of one size, and of those that can put a plan into force
/// (docs/explanation/agreement.md). The profile does not contain roots, so bcast and scatter do not count as such.
struct Showing {
  double all = 0, showing = 0;
};
using ShowingBySize = std::map<int, Showing>;
ShowingBySize showing_calls(const Profile& profile) {
  ShowingBySize out;
  for (const Site& site : profile.sites) {
    const auto op = core::find_collective(site.op);
    const bool sized = site.bytes && site.least_bytes > 0;
    Showing& of_size = out[static_cast<int>(site.comm_size)];
    of_size.all += site.calls;
    if (op && core::depends_on_all(*op, sized ? 1 : 0)) of_size.showing += site.calls;
  }
  return out;
}

/// The call of a site with its mean payload, or the reason why the model has none.
core::Result<core::Call> modelled_call(const Site& site) {
  const auto op = core::find_collective(site.op);
  if (!op || !core::is_dispatched(*op)) return core::Error{"this version has no algorithms for this collective"};
  if (core::is_irregular(*op))
    return core::Error{"a profile does not contain the sizes of the blocks; a rule with \"use\": \"auto\" learns them"};
  if (site.bytes.value_or(0) < 1) return core::Error{"the payload is empty or not known on all ranks"};
  if (site.patterns < core::kEnoughMeasured)
    return core::Error{"fewer than " + std::to_string(core::kEnoughMeasured) + " calls have records of all ranks"};
  core::Call call;
  call.op = *op;
  call.ranks = static_cast<int>(site.comm_size);
  call.element_bytes = 4;
  call.count = std::max<core::Elements>(
      1, static_cast<core::Elements>(*site.bytes) / 4 / (core::has_blocks(*op) ? call.ranks : 1));
  return call;
}

/// The rule of a site that gains. `planned`: a plan can come into force on its communicator.
Json rule_of(const Advice& advice, bool planned, bool measured) {
  const Site& site = *advice.site;
  const int ranks = static_cast<int>(site.comm_size);
  Json use = advice.algorithm;
  if (advice.segments) use = {{"algorithm", advice.algorithm}, {"segments", advice.segments}};
  Json match = {{"op", site.op}, {"site", site.id}, {"comm_size", {{"min", ranks}, {"max", ranks}}}};
  if (!planned) {
    // A rule by site comes into force through plans. All ranks know size and operation without a plan.
    match.erase("site");
    match["bytes"] = {{"min", site.least_bytes}, {"max", site.most_bytes}};
  }
  return {
      {"match", match},
      {"use", use},
      {"comment", site.place() + ": " + advice.reason + "; " + advice.algorithm + " modelled " +
                      human_time(*advice.predicted_ns) + ", native modelled " + human_time(*advice.native_modelled_ns) +
                      (measured ? ", measured " + human_time(*advice.native_ns) : "") + ", per call"}};
}

/// The algorithms that the model compares at a site, the fastest first.
core::Candidates candidates_of(const core::Call& call, const core::Forecast& forecast, const Terms& terms,
                               bool planned) {
  core::Parameters parameters;
  parameters.network = terms.network;
  return core::model_candidates(call, core::Pattern(forecast.offsets), parameters, terms.objective, planned,
                                core::kMostOffline);
}

bool has_all_ranks(const Site& site, const analysis::ProfileJob& job) {
  return static_cast<int>(site.comm_size) == job.ranks;
}

/// The gain of all calls that the rule serves. A rule by site waits for a plan: until the second boundary of its
/// communicator at the earliest, and until the third as a rule. The site's communicator is taken for the only one of
/// its size, and for MPI_COMM_WORLD if it has all ranks.
core::Gain gain_of_all(const core::Gain& of_call, const Site& site, const Showing& of_size, bool planned,
                       const analysis::ProfileJob& job) {
  const auto served = [&](double before) {
    return site.unrested() * (planned ? std::max(0.0, 1 - before / std::max(1.0, of_size.all)) : 1);
  };
  const double first = has_all_ranks(site, job) ? core::Sequence::kShortestEpoch : core::Sequence::kFirstBoundary;
  const double most = served(2 * first), fewest = served(4 * first);
  return {of_call.least * (of_call.least > 0 ? fewest : most), of_call.likely * (most + fewest) / 2,
          of_call.most * (of_call.most > 0 ? most : fewest)};
}

/// "6.8%", "-0.4% to 6.8%"
std::string share_range(const core::Gain& gain, double whole) {
  const auto shown = [&](double ns) { return saving(std::abs(ns / whole) < 5e-4 ? 0 : ns, whole); };
  const std::string least = shown(gain.least), most = shown(gain.most);
  return least == most ? most : least + " to " + most;
}
std::string time_range(const core::Gain& gain) {
  const std::string least = human_time(gain.least), most = human_time(gain.most);
  return least == most ? most : least + " to " + most;
}

Advice advise_site(const ShowingBySize& showing, const Site& site, const analysis::ProfileJob& job,
                   const Terms& terms) {
  const core::Objective objective = terms.objective;
  const bool foreground = terms.foreground;
  Advice out;
  out.site = &site;
  const auto leave = [&](const std::string& why) {
    out.reason = why;
    return out;
  };
  const auto call = modelled_call(site);
  if (!call) return leave(call.error());
  const auto forecast = forecast_of(site, call->ranks);
  if (!forecast) return leave(forecast.error());
  // A plan comes into force only if some calls of its communicator show that every rank passed the boundary.
  const Showing& shows = showing.at(call->ranks);
  const bool planned = shows.showing > 2 + site.calls / core::Sequence::kSteadyEpoch;
  auto candidates = candidates_of(*call, *forecast, terms, planned);
  const core::Algorithm* stand_in = core::native_stand_in(*call);
  const auto native_at = std::ranges::find(candidates.list, core::index_of(stand_in), &core::Candidate::algorithm);
  const auto native = native_at == candidates.list.end() ? std::nullopt : std::optional(*native_at);
  const std::string left_out = core::left_out_text(candidates, call->ranks);
  std::erase_if(candidates.list,
                [&](const core::Candidate& c) { return foreground && core::algorithm_at(c.algorithm).background; });
  if (candidates.list.empty() || !native)
    return leave("no algorithm to compare" + (left_out.empty()
                                                  ? std::string(foreground ? ": all need the background engine" : "")
                                                  : "; left out: " + left_out));
  const core::Candidate& best = candidates.list.front();
  const core::Algorithm& algorithm = core::algorithm_at(best.algorithm);
  // The model describes latecomer's schedules. Native is modelled by a stand-in, so prefer its measured time.
  const double measured = native_measured(site, objective), native_ns = measured >= 0 ? measured : candidates.native_ns;
  out.native_ns = native_ns;
  out.native_modelled_ns = candidates.native_ns;
  out.predicted_ns = best.modelled_ns;
  if (measured >= 0 && !core::is_forecast(candidates.native_ns, measured))
    return leave(
        "the model does not describe this machine: native modelled " + human_time(candidates.native_ns) +
        ", measured " + human_time(measured) +
        " (ranks share cores, or the network figures are wrong); a rule with \"use\": \"auto\" measures instead");
  const std::string compared = std::string(algorithm.name) + (best.closed_form ? " by closed form " : " modelled ") +
                               human_time(best.modelled_ns) + ", native modelled " + human_time(candidates.native_ns) +
                               (measured >= 0 ? ", measured " + human_time(measured) : "") +
                               (left_out.empty() ? "" : "; left out: " + left_out);
  if (&algorithm == stand_in) return leave("the model predicts no algorithm faster than native's own: " + compared);
  core::Observed observed;
  observed.arrivals = core::Pattern(forecast->offsets);
  observed.known = planned;
  if (const auto* calls = native_calls(site)) observed.native_ns = calls->after_last;
  observed.own_error = own_error(site, algorithm.name);
  core::Parameters parameters;
  parameters.network = terms.network;
  const auto of_call = core::gain_of(*call, *native, best, observed, parameters);
  const core::Gain gain = gain_of_all(of_call.value_or(core::Gain()), site, shows, planned, job);
  // Of the time of a call: for the run, as corrected; for another objective, as modelled.
  const double of_native = objective == core::Objective::run_time
                               ? (of_call ? of_call->likely : 0) / std::max(1.0, native_ns)
                               : 1 - best.modelled_ns / candidates.native_ns;
  if (of_native < 1 - core::kWorthTrying)
    return leave("the expected gain is " + share_range(gain, std::max(1.0, job.wall)) + " of the run time, and " +
                 saving(of_native, 1) + " of the time of a call; below " + percent(1 - core::kWorthTrying, 1) +
                 " of a call it is too little for a different rounding of results: " + compared);
  if (best.modelled_ns > core::kWorthTrying * native_ns)
    return leave("the measured native is as fast as the best algorithm in the model: " + compared);
  out.gain = gain;
  out.factor = best.modelled_ns / candidates.native_ns;
  out.algorithm = algorithm.name;
  out.segments = best.segments;
  out.background = algorithm.background;
  out.reason = "rank " + std::to_string(forecast->last()) + " comes last, " +
               human_time(static_cast<double>(forecast->spread)) + " after the first";
  if (!planned)
    out.reason +=
        "; no call on this communicator can put a plan into force, so the rule matches by size and uses no pattern";
  out.rule = rule_of(out, planned, measured >= 0);
  return out;
}

/// The network tells on which hosts the ranks of MPI_COMM_WORLD live. Those of other communicators are not known.
core::Network network_of(const Profile& profile, const Site& site, core::Network network) {
  if (!has_all_ranks(site, profile.job)) network.ranks_per_host = 1;
  return network;
}

std::vector<Advice> advise_sites(const Profile& profile, const Terms& terms) {
  std::vector<Advice> all;
  const ShowingBySize showing = showing_calls(profile);
  for (const Site& site : profile.sites) {
    if (site.comm_size < 2 || site.calls == 0) continue;
    Terms at_site = terms;
    at_site.network = network_of(profile, site, terms.network);
    all.push_back(advise_site(showing, site, profile.job, at_site));
  }
  std::ranges::stable_sort(all, std::greater(), [](const Advice& a) { return a.gain.likely; });
  return all;
}

/// `--format`: a tuning file of an MPI library instead of a policy.
int advise_library(const AdviseOptions& o, const AnswerFile* file, const Profile& profile, const core::Network& network,
                   core::Objective objective) {
  std::vector<TunedSite> sites;
  for (const Site& site : profile.sites) {
    if (site.comm_size < 2 || site.calls == 0) continue;
    TunedSite& one = sites.emplace_back();
    one.site = &site;
    one.parameters.network = network_of(profile, site, network);
    one.measured_ns = native_measured(site, objective);
    const auto call = modelled_call(site);
    if (call) one.call = *call;
    else one.problem = call.error();
    // The library does not know the pattern. The model still plays the call with the arrivals that are likely.
    if (call)
      if (const auto forecast = forecast_of(site, one.call.ranks)) one.arrivals = core::Pattern(forecast->offsets);
  }
  const Tuning tuning = tune(o.format, sites, objective);
  if (file) file->write(tuning.text);
  if (o.json) print_answer({{"gain_ns", tuning.gain_ns}, {"sites", tuning.sites}, {"text", tuning.text}}, 1);
  else if (!file) std::printf("%s", tuning.text.c_str());
  else if (!file->to_stdout())
    std::printf(
        "Modelled gain: %s, unless the ranks lose this time elsewhere; %s in %s, which gives the reason per site.\n",
        human_time(tuning.gain_ns).c_str(), tuning.empty ? "no setting" : "settings", o.output.c_str());
  return tuning.empty ? 1 : 0;
}

int advise(const AdviseOptions& o) {
  std::optional<AnswerFile> file;
  if (!o.output.empty()) file.emplace("-o", o.output, o.format.empty() ? kPolicyFile : kSettingsFile, o.force);
  const bool only_file = file && file->to_stdout();
  if (only_file && o.json) throw BadUsage("advise: --json prints to stdout, so -o needs the name of a file");
  const Profile profile = load_profile(o.file, {.patience = o.patience, .names = true, .offsets = true});
  std::optional<core::Network> network = profile.network;
  if (!o.network.empty()) {
    const auto parsed = core::parse_network(o.network);
    if (!parsed) throw BadUsage("--network: " + parsed.error());
    network = *parsed;
  } else if (!network) {
    throw BadUsage(
        "advise: '" + o.file +
        "' contains no network figures: give --network, or observe with \"network\": \"measure\" in the policy "
        "(without it, ranks measure at the end of a run of at least 2.5 s, and busy cores spoil that)");
  }
  // Read the policy back before modelling, so that the modelled policy is the written one.
  Json policy = {{"version", 1},
                 {"comment", std::string(kPolicyFile.mark) + "."},
                 {"mode", "apply"},
                 {"objective", o.objective},
                 {"network", Json::parse(core::network_text(*network))}};
  const auto read = core::parse_policy(json_text(policy));
  if (!read.ok()) throw BadUsage("advise: " + read.problems.front().path + ": " + read.problems.front().message);
  if (!o.format.empty())
    return advise_library(o, file ? &*file : nullptr, profile, read.policy.network, read.policy.objective);
  const std::vector<Advice> all = advise_sites(profile, {read.policy.network, read.policy.objective, o.foreground});
  Json rules = Json::array(), rows = Json::array();
  const Json source = !o.network.empty()                 ? Json("--network")
                      : profile.job.network_from.empty() ? Json(nullptr)
                                                         : Json(profile.job.network_from);
  const double wall = std::max(1.0, profile.job.wall);
  core::Gain total;
  for (const Advice& a : all) {
    rows.push_back(json_of(a));
    total.least += a.gain.least;
    total.likely += a.gain.likely;
    total.most += a.gain.most;
    if (!a.rule.is_null()) rules.push_back(a.rule);
    if (a.background) policy["background"] = {{"enabled", true}};
  }
  if (!rules.empty())
    policy["promised"] = {{"least", std::max(-1.0, total.least / wall)}, {"most", std::min(1.0, total.most / wall)}};
  policy["rules"] = rules;
  if (file) file->write(json_text(policy, 1) + "\n");
  if (only_file) return rules.empty() ? 1 : 0;
  if (o.json) {
    print_answer({{"gain_ns", total.likely},
                  {"gain_least_ns", total.least},
                  {"gain_most_ns", total.most},
                  {"network_from", source},
                  {"sites", rows},
                  {"policy", policy}},
                 1);
    return rules.empty() ? 1 : 0;
  }
  if (rules.empty())
    std::printf("No rule: no gain is expected at any of %zu sites%s. The reasons by site:\n\n", rows.size(),
                o.output.empty() ? "" : (", and " + o.output + " keeps every call native").c_str());
  std::printf("%-12s %5s %9s  %-22s %-26s %-24s  %s\n", "collective", "ranks", "calls", "advice", "modelled, of a call",
              "gain, all", "called from");
  for (const Advice& a : all) {
    const std::string advice = a.algorithm + (a.segments > 0 ? ", " + std::to_string(a.segments) + " segments" : ""),
                      change = a.predicted_ns ? human_time(*a.native_modelled_ns) + " > " + human_time(*a.predicted_ns)
                                              : "-";
    std::printf("%-12s %5.0f %9.0f  %-22s %-26s %-24s  %s\n    %s\n", a.site->op.c_str(), a.site->comm_size,
                a.site->calls, advice.c_str(), change.c_str(), a.rule.is_null() ? "-" : time_range(a.gain).c_str(),
                a.site->place().c_str(), a.reason.c_str());
  }
  if (!rules.empty())
    std::printf("\nGain: %s of the run time (%s of %s), unless the ranks lose this time elsewhere; %zu rule%s",
                share_range(total, wall).c_str(), time_range(total).c_str(), human_time(wall).c_str(), rules.size(),
                rules.size() == 1 ? "" : "s");
  else std::printf("\nGain: none; no rule");
  std::printf(o.output.empty() ? ". To write the policy, give -o POLICY.\n" : " in %s.\n", o.output.c_str());
  if (o.network.empty()) print_paragraph(network_sentence(profile));
  return rules.empty() ? 1 : 0;
}

}  // namespace

std::map<std::string, Advised> advised_algorithms(const Profile& profile) {
  std::map<std::string, Advised> out;
  if (!profile.network) return out;
  for (const Advice& a : advise_sites(profile, {*profile.network}))
    if (!a.rule.is_null()) out[a.site->id] = {a.algorithm, a.factor};
  return out;
}

void add_advise(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("advise", "Make a policy from a profile, with the gain to expect per site and in total");
  auto o = std::make_shared<AdviseOptions>();
  command->add_option("FILE", o->file, "Profile to read.")->required();
  command->add_option("-o,--output", o->output,
                      "File to write: the policy, or with --format the settings. - is stdout.");
  AnswerFile::add_force(*command, o->force);
  command->add_option("--format", o->format,
                      "Instead of a policy, write settings of an MPI library that choose its own algorithms: mpich "
                      "or openmpi.");
  command->add_option("--network", o->network,
                      "Network, as for latecomer simulate. Default: the network of the profile.");
  command->add_option("--objective", o->objective, "Time to minimise: run_time, mean_elapsed or after_last.")
      ->capture_default_str();
  command->add_flag("--foreground", o->foreground, "Leave out algorithms that need the background engine.");
  Progress::add_option(*command, o->patience);
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(R"(Columns of the table, one row per call site, largest gain first:
  collective           the operation
  ranks, calls         size of the communicator, calls from this site
  advice               the algorithm, with its number of segments if it has one
  modelled, of a call  time after the last arrival in the model: native, then the advised algorithm
  gain, all            part of the run time that all calls together save: least to most
  called from          the site; the line below gives the reason

The gain compares the model's native with the model's algorithm, corrected by the measured time of native. Its ends come
from the known errors of the model. The policy keeps it as "promised", and latecomer diff shows it beside the gain of a
run under that policy.

With --format, latecomer itself is not needed in later runs. The answer is a file of shell variables (mpich) or of rules
(openmpi) for allreduce, reduce and bcast. Its comments give the reason per site. Without -o it goes to stdout.

Examples:
  $ latecomer advise job.json -o policy.json
  $ latecomer advise job.json --format mpich -o settings.sh)");
  command->callback([o, &action] { action = [o] { return advise(*o); }; });
}

}  // namespace latecomer::profiles::cli
