// SPDX-License-Identifier: BSD-3-Clause
// Writes the verdict from the sums of a profile.
#include "profiles/render/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "profiles/analysis/callers.hpp"
#include "profiles/analysis/messages.hpp"
#include "profiles/base/text.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/record/waiting.hpp"
#include "profiles/render/hang.hpp"
#include "profiles/render/set_up.hpp"

namespace latecomer::profiles {
namespace {

using analysis::CallerNode;
using analysis::ChainEnd;
using analysis::RankRow;
using analysis::SiteIntervals;
using analysis::SleepsFor;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && value != std::floor(value) ? "%.1f" : "%.0f", value);
  return text;
}

/// The words of a sentence for a cause, in the order of Cause.
struct Words {
  const char* does;  ///< with a ratio to the others
  const char* only;  ///< where the others have nearly none
};
constexpr Words kWords[analysis::kCauses] = {
    {"computes %s times as long as the others", "computes while the others do not"},
    {"waits %s times as long as the others for messages", "waits for messages"},
    {"waits %s times as long as the others for a core", "waits for a core that others use"},
    {"is asleep or stopped %s times as long as the others", "is asleep or stopped"},
    {"spends %s times as long as the others on page faults", "spends its time on page faults"},
    {"spends %s times as long as the others in system calls", "spends its time in system calls"},
    {"spends %s times as long as the others in MPI's file calls", "spends its time in MPI's file calls"},
    {"spends %s times as long as the others in other MPI calls, such as those that make communicators",
     "spends its time in other MPI calls, such as those that make communicators"},
};

/// The same of the parts between MPI_Init and MPI_Finalize, in the order of kTimeColumns.
constexpr Words kPartWords[analysis::kPartsBetween] = {
    kWords[analysis::computing],
    {"spends %s times as long as the others in the kernel", "spends its time in the kernel"},
    kWords[analysis::no_core],
    kWords[analysis::blocked],
    kWords[analysis::mpi_wait],
    kWords[analysis::io],
    kWords[analysis::other_mpi],
    {"spends %s times as long as the others in collectives", "spends its time in collectives"},
};

/// The share of time in messages, or in other calls, that a sentence names. Chosen: a program that exchanges halos
/// spends a few per cent.
constexpr double kMessages = 0.05;
/// The largest share in messages over the least from which a rank is named. Chosen: equal ranks differ by less.
constexpr double kMore = 1.1;
/// The least lateness, as a share of the run time, that a difference of whole runs may explain. Chosen: the parts of
/// equal ranks' times differ by a few per cent without cause.
constexpr double kLongOverRun = 0.05;
/// The share of a site's waiting from which one rank is named. Derived: with two ranks, chance gives each one half.
constexpr double kMostly = 0.6;
/// The largest payload in bytes for which only the number of messages in a row counts. MPICH's own limit: up to it,
/// native has the fewest.
constexpr double kSmall = 2048;
/// The share of the time from which calls that were not logged make the waits a lower bound. Chosen: the sentence shows
/// two digits.
constexpr double kNoticed = 0.02;
/// The share of the calls whose arrivals must be known for the sum of the waits to stand for all of them. Chosen: the
/// missing calls then change the sum by less than its digits show.
constexpr double kKnown = 0.9;

struct Totals {
  double time = 0, own_time = 0;  ///< of all ranks: in which their waits are known, and in which their own parts are
  double waited = 0, collectives = 0, messages = 0, other_mpi = 0, after_last = 0, large = 0, seen = 0, calls = 0;
  double messages_error = 0, waited_error = 0;  ///< standard errors
  double unlogged = 0;  ///< share of the ranks' time in calls that were not logged, and for which no logged ones stand

  /// Whether the waits are a lower bound, because calls are missing.
  bool part_only() const { return seen < kKnown * calls || unlogged >= kNoticed; }
  /// What ranks waited at least, as far as the sampling error says.
  double bound() const { return std::max(0.0, waited - 2 * waited_error); }
  bool bound_says_nothing() const {
    return part_only() && (percent(bound(), time) == percent(0, 1) || bound() < unlogged * time);
  }
};

Totals totals(const Profile& profile) {
  Totals t;
  t.time = profile.job.rank_time();
  t.unlogged = profile.job.cost.unlogged.value();
  for (const analysis::RankFigures& rank : profile.analysis.ranks()) {
    t.collectives += rank.times.collectives;
    t.messages += rank.times.messages;
    t.other_mpi += rank.times.other_mpi;
    t.messages_error = std::hypot(t.messages_error, rank.messages_error);
    t.own_time += rank.wall;
  }
  if (profile.job.covered <= 0) t.own_time = t.time;
  for (const Site& s : profile.sites) {
    if (s.comm_size < 2) continue;
    t.waited += s.waited;
    t.waited_error = std::hypot(t.waited_error, s.waited_error);
    t.seen += s.patterns;
    t.calls += s.unrested();
    const double after = s.after_last_sum * s.comm_size;
    t.after_last += after;
    if (s.bytes.value_or(0) > kSmall) t.large += after;
  }
  // `after_last_sum` ends with the last rank that leaves. All ranks together spent no more than this there.
  const double room = t.collectives > 0 ? std::max(0.0, t.collectives - t.waited) : t.after_last;
  t.after_last = std::min(t.after_last, room);
  t.large = std::min(t.large, room);
  return t;
}

/// "the allreduce of 8 B at glmax (plib.f90:360)", with the caller that `worst` names.
std::string name_of(const Site& site, const CallerNode* worst) {
  std::string out = "the " + site.op;
  if (site.bytes.value_or(0) > 0) out += " of " + human_bytes(std::round(*site.bytes));
  out += " at " + site.place();
  return worst ? out + ", called from " + worst->place() : out;
}

/// "computes 1.8 times as long as the others"
std::string text_of(const Words& words, double mine, double others) {
  const double ratio = others > 0.01 * (mine - others) ? mine / others : 0;
  if (ratio <= 0 || ratio > 100) return words.only;
  std::string text = words.does;
  const std::string_view factor = "%s times as long as";
  const bool shows = ratio >= 1.05;  // otherwise the text would be 1.0
  return text.replace(text.find(factor), factor.size(),
                      shows ? number(ratio) + " times as long as" : "slightly longer than");
}

std::string own_threads_text(SleepsFor sleeps_for) {
  return sleeps_for == SleepsFor::own_calls ? "waits for its own threads, which are in MPI calls"
                                            : "waits for its own threads";
}

std::string text_of(const SiteIntervals::Compared& compared, const RankRow& row, double cores) {
  const analysis::Cause cause = compared.largest();
  if (cause == analysis::no_core && own_threads_run(row.before, cores))
    return "waits for a core that its own threads use";
  if (cause == analysis::blocked && compared.sleeps_for() != SleepsFor::unknown)
    return own_threads_text(compared.sleeps_for());
  return text_of(kWords[cause], compared.mine[cause], compared.others[cause]);
}

std::string text_of(const analysis::LongerPart& longer) {
  if (longer.sleeps_for != SleepsFor::unknown) return own_threads_text(longer.sleeps_for);
  return text_of(kPartWords[longer.part], longer.mine, longer.others);
}

}  // namespace

Share wait_share(const Profile& profile) {
  const Totals t = totals(profile);
  return Share::of(t.waited, t.time);
}

Share shortened_share(const Profile& profile) {
  const Totals t = totals(profile);
  return Share::of(t.large, t.time);
}

std::string reach_text(const analysis::ProfileJob& job) {
  const std::string last = human_time(job.last_end > 0 ? job.last_end : job.wall), first = human_time(job.first_end);
  return job.last_end > 0 && first != last ? first + " to " + last : last;
}

namespace {

/// "rank 2, which waits for rank 1": the ranks of a chain after the first.
std::string hops(const SiteIntervals::Chain& chain) {
  std::string out;
  for (std::size_t i = 1; i < chain.rows.size(); ++i)
    out += (i == 1 ? "" : ", which waits for ") + chain.rows[i]->named();
  return out;
}

/// The row as the beginning of a sentence.
std::string sentence_of(const RankRow& row) {
  std::string out = row.named();
  out[0] = out[0] == 'r' ? 'R' : 'T';
  return out;
}

/// The activity on which the rank spends more time over the whole run, in words without a full stop. Empty if it does
/// not explain most of the waits for the rank in these calls.
std::string longer_over_run(const Profile& profile, const analysis::CallFigures& calls, const RankRow& row) {
  const auto& ranks = profile.analysis.ranks();
  const auto rank = std::ranges::find_if(ranks, [&](const analysis::RankFigures& r) { return r.first == row.rank; });
  if (rank == ranks.end() || rank->ranks != 1) return "";
  const auto op = core::find_collective(calls.op);
  const bool one_waits = op && waiting_in(*op) == WaitRule::root_for_last;
  // Each waiting rank waits as long as the rank is late.
  const double late =
      row.awaited / (one_waits ? 1 : std::max(1.0, calls.comm_size - 1)) / std::max(1.0, profile.job.wall);
  if (late < kLongOverRun) return "";
  const auto longer = analysis::longer_part(ranks, *rank, &analysis::ProcessTimes::collectives, kMostly * late);
  return longer ? sentence_of(row) + " " + text_of(*longer) + " over the whole run" : "";
}

/// The cause for calls with too few sampled intervals: from the whole run, or the missing data and the way to get them.
/// Empty if these waits are too short for a word.
std::string why_by_run(const Profile& profile, const analysis::CallFigures& calls, const RankRow& row) {
  if (row.awaited < kLittle * profile.job.rank_time()) return "";
  if (const std::string longer = longer_over_run(profile, calls, row); !longer.empty())
    return longer + ", of which too few intervals before these calls were sampled to say more";
  const std::string known = "Why " + row.named() + " is late is not known: ";
  if (std::ranges::all_of(profile.analysis.ranks(), [](const analysis::RankFigures& r) { return r.wall <= 0; }))
    return known + "the policy key `causes` is off, or the kernel has no /proc/self/schedstat";
  return known + "too few intervals before these calls were sampled, and a longer run samples more";
}

/// Where the sampled intervals are not as long as the rank is late.
std::string why_not_before(const Profile& profile, const analysis::CallFigures& calls, const RankRow& row) {
  if (row.before.samples >= kKnown * calls.calls)
    return sentence_of(row) + " was late already at an earlier collective";
  const std::string longer = longer_over_run(profile, calls, row);
  return longer.empty() ? sentence_of(row) +
                              " was late already at an earlier collective, or in intervals before these "
                              "calls that were not sampled"
                        : longer + ", and the sampled intervals before these calls do not show it";
}

/// Why the site's calls wait for that rank: a sentence without its full stop, or nothing.
std::string why(const Profile& profile, const analysis::CallFigures& calls, const SiteIntervals& intervals,
                const RankRow& row) {
  const auto compared = intervals.compare(row);
  if (!compared) return why_by_run(profile, calls, row);
  if (compared->late_ns <= 0 || compared->late_ns < 0.5 * row.offset) return why_not_before(profile, calls, row);
  const auto cores_of = [&](const RankRow& of_row) {
    for (const analysis::ProcessFigures& p : profile.processes)
      if (p.rank == of_row.rank) return p.cores;
    return 0.0;
  };
  const double most = compared->excess(compared->largest()) / compared->late_ns;
  const std::string share = " (" + percent(std::min(1.0, most), 1) + " of its lateness)";
  if (most < kMostly)
    return "Its lateness has no single cause, and the largest is that it " + text_of(*compared, row, cores_of(row)) +
           share;
  const auto chain = intervals.follow(row);
  if (compared->largest() != analysis::mpi_wait || chain.end == ChainEnd::several)
    if (chain.rows.size() == 1) return sentence_of(row) + " " + text_of(*compared, row, cores_of(row)) + share;
  const RankRow& last = *chain.rows.back();
  const std::string at_end = last.named(), peer = "rank " + std::to_string(chain.peer);
  std::string out = sentence_of(row) + " waits for messages from " + hops(chain);
  if (chain.end == ChainEnd::own)
    return out + share + ", and " + at_end + " " + text_of(*intervals.compare(last), last, cores_of(last));
  if (chain.end == ChainEnd::several)
    return out + share + ", and " + at_end + " waits for several ranks or for one-sided calls";
  out += (chain.rows.size() == 1 ? "" : ", which waits for ") + peer + share;
  if (chain.end == ChainEnd::transfer)
    return out + ", and " + peer + " is not late: the transfer itself takes the time";
  if (chain.end == ChainEnd::unsampled) return out + ", of which too few intervals were sampled to say why";
  return out + ", and the ranks wait for each other in a circle";
}

/// The ranks that sent no data.
std::vector<int> absent_ranks(const Profile& profile) {
  std::vector<bool> there(static_cast<std::size_t>(std::max(0, profile.job.ranks)));
  for (const analysis::ProcessFigures& p : profile.processes)
    if (p.rank >= 0 && p.rank < profile.job.ranks) there[static_cast<std::size_t>(p.rank)] = true;
  std::vector<int> out;
  for (std::size_t r = 0; r < there.size(); ++r)
    if (!there[r]) out.push_back(static_cast<int>(r));
  return out;
}

/// The missing data of the profile and the way to get them, as the rest of a sentence.
std::string missing(const Profile& profile) {
  const std::vector<int> absent = absent_ranks(profile);
  if (absent.empty()) return "";
  return ": it lacks " + ranks_named(absent) + ", and arrivals count only where all ranks of a call are observed. " +
         (absent.size() == 1 ? "That rank" : "Those ranks") +
         " ran without the preload, which `latecomer run` gives to all ranks, or left snapshots in a folder that " +
         "`latecomer recover` did not read, or none";
}

/// Whether the figures cover only a part of the job: it runs still, or it was cut short.
bool cut_short(const Profile& profile) { return profile.job.unfinished > 0; }

/// Why no waits are named: there are few, or the profile does not say.
std::string few_waits(const Profile& profile, const Totals& t) {
  if (t.part_only() || !absent_ranks(profile).empty())
    return "The profile cannot say which rank is late" + missing(profile) + ".";
  if (!cut_short(profile)) return "The waits for late ranks in collectives are too short to look for their cause.";
  return "Until then, the waits for late ranks in collectives were too short to look for their cause. The figures do "
         "not cover what the job did later" +
         std::string(profile.last_state.ranks.empty()
                         ? ": `latecomer who` shows where a running job waits, and `latecomer run` "
                           "keeps it of one that is killed."
                         : ".");
}

/// Adds the sentence on the start and the end of the run.
void judge_ends(const Profile& profile, const Totals& t, std::vector<std::string>& out) {
  double init = 0, end = 0;
  const analysis::RankFigures* last = nullptr;
  for (const analysis::RankFigures& rank : profile.analysis.ranks()) {
    init += rank.times.init;
    end += rank.times.end;
    if (!last || rank.times.end / rank.ranks < last->times.end / last->ranks) last = &rank;
  }
  if (const double share = end / t.own_time; share >= kNoticed)
    out.back() += " They waited for " + percent(share, 1) + " of their time in MPI_Finalize, until " + last->named() +
                  " had come there.";
  if (const double share = init / t.own_time; share >= kMessages)
    out.back() += " They spent " + percent(share, 1) + " of their time in MPI_Init.";
}

/// The call site with most of the time in messages. Where no site has most of it, an example.
std::string where_in_messages(const Profile& profile, const Totals& t) {
  for (const analysis::TimedCalls& site : profile.timed_sites)
    if (site.part == "messages") {
      if (site.time - 2 * site.error < 0.5 * t.messages) break;
      return percent(std::min(1.0, site.time / t.messages), 1) + " of it in " + site.call + " at " +
             analysis::place_of(site.frames);
    }
  return "such as receives";
}

/// Adds the sentence on calls that wait for messages.
void judge_messages(const Profile& profile, const Totals& t, std::vector<std::string>& out) {
  if (t.messages < kMessages * t.own_time) return;
  const auto chain = analysis::follow_messages(profile.analysis.ranks());
  if (!chain) return;
  const analysis::RankFigures& most = *chain->ranks.front();
  const double its_own = most.times.messages / most.wall;
  const std::string error = percent(t.messages_error, t.own_time);
  std::string text = " They spent " + percent(t.messages, t.own_time) + (error == "0.0%" ? "" : " (+- " + error + ")") +
                     " of their time in calls that wait for messages, " + where_in_messages(profile, t);
  const auto share = [](const analysis::RankFigures& r) { return r.wall > 0 ? r.times.messages / r.wall : 1; };
  if (its_own - 2 * most.messages_error / most.wall >=
      kMore * share(*std::ranges::min_element(profile.analysis.ranks(), {}, share))) {
    text += "; " + most.named() + " spent most, " + percent(its_own, 1) + " of its own";
    for (std::size_t i = 1; i < chain->ranks.size(); ++i)
      text += std::string(i == 1            ? ", "
                          : chain->apart[i] ? ", which waits, "
                                            : ", which waits ") +
              (chain->apart[i] ? "apart from ranks that wait longer for it, mostly " : "mostly ") +
              (i == 1 ? "in messages with " : "for ") + chain->ranks[i]->named();
    if (chain->longer) text += ", which " + text_of(*chain->longer);
  }
  out.back() += text + ".";
}

/// Adds the sentence on calls that may wait and are neither collectives nor messages nor for files.
void judge_other_calls(const Totals& t, std::vector<std::string>& out) {
  if (t.other_mpi >= kMessages * t.own_time)
    out.back() += " They spent " + percent(t.other_mpi, t.own_time) +
                  " of their time in other MPI calls, such as those that make communicators.";
}

/// The sentences on the site with the longest waits.
void judge_waits(const Profile& profile, const Totals& t, std::vector<std::string>& out) {
  const auto worst_site = std::ranges::max_element(profile.sites, {}, &Site::waited);
  if (t.waited <= kLittle * t.time || worst_site == profile.sites.end() || worst_site->waited <= 0) {
    out.push_back(few_waits(profile, t));
    return;
  }
  const Site& site = *worst_site;
  // Of a site that serves many callers, one may cause most of the waiting. Then the sentences are about that one.
  const auto tree = callers_of(site);
  const auto& callers = served(tree);
  const bool many = serves_many(callers);
  const CallerNode* caller = many && callers.front().frame && callers.front().figures.waited >= kMostly * site.waited
                                 ? &callers.front()
                                 : nullptr;
  const analysis::CallFigures& worst = caller ? caller->figures : site;
  const analysis::Baseline baseline = caller ? analysis::Baseline(worst) : site.baseline;
  const RankRow* row = worst.most_awaited();
  const double share = row ? row->awaited / worst.waited : 0;
  // With few logged calls, chance may name a rank.
  const double chance =
      worst.waited > 0 ? 2 * std::sqrt(share * (1 - std::min(share, 1.0))) * site.waited_error / site.waited : 0;
  const bool one = row && share - chance >= kMostly;
  out.push_back(
      percent(worst.waited, t.waited) + (t.part_only() ? " of the known waiting is in " : " of the waiting is in ") +
      name_of(site, caller) +
      (one ? ", and " + percent(share, 1) + " of that is for " + row->named() + "."
           : ", for no rank in particular" +
                 (row ? ": " + row->named() + ", which is awaited most, causes " + percent(share, 1) + "." : ".")));
  if (many && !caller && callers.front().frame && callers.front().figures.waited > 0)
    out.back() += " Of its " + number(static_cast<double>(callers.size())) + " callers, " + callers.front().place() +
                  " waits longest (" + percent(callers.front().figures.waited, site.waited) + ").";
  // A call ends earlier by the time that each rank waits for the late one, or by the mean wait if all are equal.
  const auto op = core::find_collective(worst.op);
  const bool all_wait = op && waiting_in(*op) == WaitRule::all_for_last;
  const double gone = one && all_wait ? row->awaited / (worst.comm_size - 1) / t.time * profile.job.ranks : 0;
  const double equal = gone > 0 ? gone * (1 - 1 / worst.comm_size) : t.waited / t.time;
  // The calls of one caller may have too few samples where those of the whole site have enough.
  const RankRow* of_site = one && caller ? site.row_of(row->rank) : nullptr;
  const bool all_callers =
      of_site && !SiteIntervals(worst, baseline).compare(*row) && SiteIntervals(site, site.baseline).compare(*of_site);
  const SiteIntervals intervals(all_callers ? site : worst, all_callers ? site.baseline : baseline);
  const RankRow* shown = all_callers ? of_site : row;
  std::string text = one ? why(profile, all_callers ? site : worst, intervals, *shown) : "";
  const double known = t.part_only() ? t.bound() / t.waited : 1;  // a bound of the gain, as of the waits
  text += std::string(text.empty() ? "With" : "; with") + " equal work on all ranks, " +
          (cut_short(profile) ? "that part of the run would have taken" : "the run would take") +
          (t.part_only() ? " at least " : " about ") + percent(known * equal, 1) + " less time";
  // Work can only move to other ranks, also that of a rank's threads. Sleep and foreign processes can go away, and the
  // rest of the lateness stays.
  const auto compared = one ? intervals.compare(*shown) : std::nullopt;
  const auto cause = compared ? compared->largest() : analysis::computing;
  if (gone > 0 && compared && compared->late_ns > 0.5 * shown->offset &&
      (cause == analysis::no_core || (cause == analysis::blocked && compared->sleeps_for() == SleepsFor::unknown)))
    text += ", and " + percent(known * gone * std::clamp(compared->excess(cause) / compared->late_ns, 0.0, 1.0), 1) +
            " less if that cause alone went away";
  out.push_back(text + ".");
}

/// The sentence on the time that an algorithm can shorten. If calls are missing, it never says that none can.
void judge_algorithms(const Profile& profile, const Totals& t, std::vector<std::string>& out) {
  // An algorithm can shorten only the time after the last arrival.
  const double large = t.large / t.time, small = (t.after_last - t.large) / t.time;
  if (large >= kLittle)
    out.push_back("An algorithm may shorten what follows the last arrival in calls of more than 2 KiB: " +
                  percent(large, 1) + " of the ranks' time. `latecomer advise` says by how much.");
  else if (!cut_short(profile) && absent_ranks(profile).empty() && !t.part_only())
    out.push_back("An algorithm cannot help: in calls of more than 2 KiB, " + percent(large, 1) +
                  " of the ranks' time follows the last arrival" +
                  (small >= kLittle
                       ? ", and " + percent(small, 1) + " in smaller calls, which only fewer calls would save."
                       : "."));
}

}  // namespace

std::vector<std::string> standstill(const analysis::LiveState& state) {
  if (state.ranks.empty()) return {};
  const Hang hang(state);
  const std::vector<std::string> findings = hang.findings();
  if (findings.empty()) return {};
  const int all = state.ranks.front().ranks;
  std::vector<bool> seen(static_cast<std::size_t>(std::max(0, all)));
  int still = 0;
  for (const LiveRank& r : state.ranks) {
    still += r.watched >= analysis::kStandsStill_ns;
    if (r.rank < all) seen[static_cast<std::size_t>(r.rank)] = true;
  }
  std::vector<int> unseen;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) unseen.push_back(static_cast<int>(i));
  std::string out;
  if (state.ended)
    out = (still == all ? "The job" : std::to_string(still) + " of " + std::to_string(all) + " ranks") +
          std::string(" stood still when last seen. ");
  constexpr std::size_t kMost = 3;  // `who` and `report --all` list the ranks
  for (std::size_t i = 0; i < std::min(kMost, findings.size()); ++i) out += (i ? " " : "") + findings[i];
  if (findings.size() > kMost) out += " And " + std::to_string(findings.size() - kMost) + " more like these.";
  if (!unseen.empty())
    out += " Where " + ranks_named(unseen) +
           (state.ended          ? unseen.size() == 1 ? " was" : " were"
            : unseen.size() == 1 ? " is"
                                 : " are") +
           " is not known: that takes `latecomer relay` on every host.";
  return {out};
}

namespace {

/// The sentences on the figures.
void judge_figures(const Profile& profile, std::vector<std::string>& out) {
  if (profile.processes.empty() || profile.job.ranks < 2) return;
  const Totals t = totals(profile);
  if (t.time <= 0) return;
  std::string known;
  if (t.unlogged >= kNoticed)
    known =
        " In stretches of calls that took " + percent(t.unlogged, 1) +
        " of their time, no call was logged, and no logged one stands for them: a longer run logs more, and the policy "
        "`{\"version\": 1, \"budget\": null}` logs every call.";
  else if (t.part_only())
    known = " Arrivals are known for " + percent(t.seen, std::max(1.0, t.calls)) + " of the calls only.";
  const std::string ranks =
      cut_short(profile) ? "Until the last snapshots, after " + reach_text(profile.job) + ", ranks" : "Ranks";
  const std::string altogether = t.collectives > 0 ? percent(t.collectives, t.own_time) : "";
  const std::string error = percent(t.waited_error, t.time);
  const bool unknown = t.bound_says_nothing();
  if (unknown) {
    // What was not logged counts as time outside collectives.
    out.push_back((altogether.empty() || t.unlogged >= kNoticed
                       ? ""
                       : ranks + " spent at least " + altogether + " of their time in collectives. ") +
                  "How long ranks waited for late ranks is not known." + known);
  } else {
    const bool bound = t.part_only() || cut_short(profile);
    out.push_back(ranks + " spent " + (bound ? "at least " + percent(t.bound(), t.time) : percent(t.waited, t.time)) +
                  (bound || error == "0.0%" ? "" : " (+- " + error + ")") +
                  " of their time waiting for late ranks in collectives" +
                  (altogether.empty() ? "."
                                      : ", and " + std::string(t.part_only() ? "at least " : "") + altogether +
                                            " in collectives altogether."));
  }
  if (const auto& first = profile.job.first_call; first.waited > kLittle * t.time)
    out.back() +=
        " At the first recorded collective alone, they waited for " + percent(first.waited, t.time) + " of their time" +
        (first.awaited >= kMostly * first.waited ? ", most of it for rank " + std::to_string(first.rank) + "." : ".");
  if (!unknown) out.back() += known;
  judge_messages(profile, t, out);
  judge_other_calls(t, out);
  judge_ends(profile, t, out);
  if (!unknown || t.unlogged < kNoticed) judge_waits(profile, t, out);
  judge_algorithms(profile, t, out);
  const std::string load = host_load(profile);
  if (const auto wrong = set_up(profile); !wrong.empty() && wrong.front() != load) out.push_back(wrong.front());
  if (!load.empty()) out.push_back(load);
  const std::vector<int> absent = absent_ranks(profile);
  const auto names_them = [](const std::string& sentence) { return sentence.find("it lacks") != std::string::npos; };
  if (!absent.empty() && std::ranges::none_of(out, names_them))
    out.push_back("The profile lacks " + ranks_named(absent) + ", so their times are in none of these figures.");
}

}  // namespace

std::vector<std::string> verdict(const Profile& profile) {
  std::vector<std::string> out = standstill(profile.last_state);
  judge_figures(profile, out);
  const LiveState& last = profile.last_state;
  if (!last.ranks.empty() && last.ended &&
      std::ranges::all_of(last.ranks, [](const LiveRank& r) { return r.watched < 0; }))
    out.emplace_back(
        "Whether the job stood still when it ended is not known: `latecomer run` and `latecomer relay` write that "
        "down, "
        "unless they are killed, too. `latecomer report --all` lists where each rank was.");
  return out;
}

}  // namespace latecomer::profiles
