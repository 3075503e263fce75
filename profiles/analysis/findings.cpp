// SPDX-License-Identifier: BSD-3-Clause
// Derives findings from the sums of a profile.
#include "profiles/analysis/findings.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/algorithms/algorithm.hpp"
#include "profiles/analysis/error_of_sum.hpp"
#include "profiles/record/waiting.hpp"

namespace latecomer::profiles::analysis {
namespace {

/// The share of the time in messages, in files, or in other calls from which it is a finding. Chosen: a program that
/// exchanges halos spends a few per cent.
constexpr double kMessages = 0.05;
/// The largest share in messages over the least from which a rank is named, and of computing times. Chosen: equal ranks
/// differ by less.
constexpr double kMore = 1.1;
/// The least lateness, as a share of the run time, that a difference of whole runs may explain. Chosen: the parts of
/// equal ranks' times differ by a few per cent without cause.
constexpr double kLongOverRun = 0.05;
/// The largest payload in bytes for which only the number of messages in a row counts. MPICH's own limit: up to it,
/// native has the fewest.
constexpr double kSmall = 2048;
/// The share of the time from which calls that were not logged make the waits a lower bound. Chosen: the text shows
/// two digits.
constexpr double kNoticed = 0.02;
/// The share of the calls whose arrivals must be known for the sum of the waits to stand for all of them. Chosen: the
/// missing calls then change the sum by less than its digits show.
constexpr double kKnown = 0.9;
/// The share of the lateness from which the intervals before the calls say why. Chosen: below, they differ by chance.
constexpr double kSomeOfIt = 0.2;

/// Whether the catalogue has an algorithm for the collective that native has not: one that knows the arrivals.
bool served(std::string_view op) {
  return std::ranges::any_of(core::catalogue(), [&](const core::Algorithm& algorithm) {
    return core::kCollectiveNames[static_cast<std::size_t>(algorithm.op)] == op && algorithm.uses_pattern();
  });
}

Why not_known(std::string missing) { return {.source = Why::Source::not_known, .missing = std::move(missing)}; }

/// The activity on which the rank spends more time over the whole run, if it explains most of the waits for the rank in
/// these calls.
std::optional<LongerPart> longer_over_run(const Profile& profile, const CallFigures& calls, const RankRow& row) {
  const auto& ranks = profile.analysis.ranks();
  const auto rank = std::ranges::find(ranks, row.rank, &RankFigures::first);
  if (rank == ranks.end() || rank->ranks != 1) return {};
  const auto op = core::find_collective(calls.op);
  const bool one_waits = op && waiting_in(*op) == WaitRule::root_for_last;
  // Each waiting rank waits as long as the rank is late.
  const double late =
      row.awaited / (one_waits ? 1 : std::max(1.0, calls.comm_size - 1)) / std::max(1.0, profile.job.wall);
  if (late < kLongOverRun) return {};
  return longer_part(ranks, *rank, &ProcessTimes::collectives, kNamed * late);
}

Why why_over_run(const LongerPart& longer) {
  return {.source = Why::Source::whole_run,
          .cause = longer.part,
          .value = longer.mine,
          .reference = longer.others,
          .sleeps_for = longer.sleeps_for};
}

double cores_of(const Profile& profile, long rank) {
  const auto found = std::ranges::find(profile.processes, rank, &ProcessFigures::rank);
  return found == profile.processes.end() ? 0 : found->cores;
}

/// The call in which most of the waits of one rank for messages of another one pass.
const TimedCalls* waits_at(const Profile& profile, long rank, long awaited) {
  double all = 0, most = 0;
  const TimedCalls* out = nullptr;
  for (const TimedCalls& site : profile.timed_sites) {
    double here = 0;
    for (const TimedCalls::Row& row : site.rows)
      for (const IntervalFigures::Peer& peer : row.peers)
        if (row.rank == rank && peer.rank == awaited) here += peer.waited;
    all += here;
    if (here > most && !site.frames.empty()) {
      most = here;
      out = &site;
    }
  }
  return most >= kNamed * all ? out : nullptr;
}

std::vector<ChainStep> chain_of(const Profile& profile, const std::vector<long>& ranks) {
  std::vector<ChainStep> out;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    out.push_back({ranks[i], i + 1 < ranks.size() ? waits_at(profile, ranks[i], ranks[i + 1]) : nullptr});
  return out;
}

/// Why the site's calls wait for that rank.
Why why(const Profile& profile, const CallFigures& calls, const SiteIntervals& intervals, const RankRow& row) {
  const auto compared = intervals.compare(row);
  // A part of the lateness may have begun before an earlier collective. Then the causes here explain a part of it.
  const bool shown = compared && compared->late_ns > 0 && compared->late_ns >= kSomeOfIt * row.offset;
  if (!shown) {
    const bool all = compared && row.before.samples >= kKnown * calls.calls;
    const bool others = std::ranges::count_if(profile.sites, [](const Site& s) { return s.comm_size > 1; }) > 1;
    if (all && others) return {.source = Why::Source::earlier};
    if (all)
      return not_known(
          "all intervals before these calls were sampled, and they are hardly longer than those of the others");
    if (const auto longer = longer_over_run(profile, calls, row)) return why_over_run(*longer);
    if (std::ranges::all_of(profile.analysis.ranks(), [](const RankFigures& r) { return r.wall <= 0; }))
      return not_known("the policy key `causes` is off, or the kernel has no /proc/self/schedstat");
    return not_known(compared ? "the sampled intervals before these calls are hardly longer than those of the others"
                              : "too few intervals before these calls were sampled, and a longer run samples more");
  }
  const Cause cause = compared->largest();
  if (compared->excess(cause) < kSomeOfIt * std::max(compared->late_ns, row.offset))
    return not_known("no part of the intervals before these calls explains it");
  Why out{.source = Why::Source::intervals,
          .cause = cause,
          .value = compared->mine[cause],
          .reference = compared->others[cause],
          .share = std::min(1.0, compared->excess(cause) / std::max(compared->late_ns, row.offset))};
  // A sleep also costs the calls that begin it, and a core at its end.
  const double with_it = cause == blocked ? compared->excess(system_calls) + compared->excess(no_core) : 0;
  out.goes = std::min(1.0, (compared->excess(cause) + with_it) / std::max(compared->late_ns, row.offset));
  if (cause == no_core) out.own_threads = own_threads_run(row.before, cores_of(profile, row.rank));
  if (cause == blocked) out.sleeps_for = compared->sleeps_for();
  if (cause != mpi_wait || out.share < kNamed) return out;
  const auto chain = intervals.follow(row);
  out.end = chain.end;
  std::vector<long> ranks;
  for (const RankRow* one : chain.rows) ranks.push_back(one->rank);
  if (chain.end == ChainEnd::own && chain.rows.size() > 1) {
    const auto last = intervals.compare(*chain.rows.back());
    out.last_cause = last->largest();
    out.last_value = last->mine[*out.last_cause];
    out.last_reference = last->others[*out.last_cause];
  } else if (chain.peer >= 0 && chain.end != ChainEnd::several) {
    ranks.push_back(chain.peer);
  }
  out.chain = chain_of(profile, ranks);
  return out;
}

/// Where the time of the late rank is, or of the last one of its chain. `site`: before its calls; nullptr: in the whole
/// run.
LateCode code_of(const Profile& profile, const Site* site, const Why& why, long rank) {
  const bool chained = !why.chain.empty();
  if (chained && why.source == Why::Source::intervals) {
    if (why.end != ChainEnd::own || !why.last_cause) return {};
    rank = why.chain.back().rank;
  }
  std::size_t cause = chained && why.last_cause ? *why.last_cause : why.cause;
  double mine = chained && why.last_cause ? why.last_value : why.value,
         reference = chained && why.last_cause ? why.last_reference : why.reference;
  double slept = 0;
  std::optional<Execution> execution;
  if (why.source == Why::Source::intervals) {
    // The samples are those of all callers of the site.
    const RankRow* const row = site->row_of(rank);
    const auto compared = row ? SiteIntervals(*site, site->baseline).compare(*row) : std::nullopt;
    if (!compared) return {};
    mine = compared->mine[computing];
    reference = compared->others[computing];
    if (cause == computing) execution = compared->execution;
    if (!chained && why.sleeps_for == SleepsFor::own_threads) slept = compared->excess(blocked);
  } else if (why.source == Why::Source::whole_run) {
    site = nullptr;
    const auto part = kTimeColumns[cause].value;
    cause = part == &ProcessTimes::computing  ? std::size_t{computing}
            : part == &ProcessTimes::blocked  ? std::size_t{blocked}
            : part == &ProcessTimes::runnable ? std::size_t{no_core}
                                              : std::size_t{kCauses};
    if (cause == no_core) {
      const std::vector<RankFigures>& ranks = profile.analysis.ranks();
      const auto its = std::ranges::find(ranks, rank, &RankFigures::first);
      const auto shares = its == ranks.end() ? std::nullopt : shares_of_part(ranks, *its, &ProcessTimes::computing);
      if (!shares) return {};
      mine = shares->mine;
      reference = shares->others;
    }
  } else {
    return {};
  }
  if (cause == no_core && mine >= kMore * reference) {
    // A rank that computes longer lacks the core for longer. Only the processor time has samples.
    LateCode out = late_functions(profile, site, rank, mine, reference);
    return out.kind == LateCode::Kind::functions ? out : LateCode();
  }
  if (cause != computing && cause != blocked) return {};
  if (cause == computing || slept > 0) {
    LateCode out = slept > 0 ? late_threads(profile, site, rank, mine, reference, slept)
                             : late_functions(profile, site, rank, mine, reference);
    out.execution = execution;
    if (out.kind != LateCode::Kind::none || (slept == 0 && out.missing.empty())) return out;
    const std::string missing = out.missing;
    out = late_stretch(profile, site, rank);
    out.missing = missing;
    out.execution = execution;
    return out;
  }
  return late_stretch(profile, site, rank);
}

/// How the awaited rank follows from stretch to stretch of the record.
LatePattern pattern_of(const Profile& profile, const Site& site, long rank) {
  constexpr std::size_t kWindows = 16, kLeast = 8;
  if (!profile.record) return LatePattern::unknown;
  std::vector<const RecordedCall*> calls;
  for (const RecordedCall& call : profile.record->calls)
    if (call.site == site.index) calls.push_back(&call);
  const std::size_t windows = std::min(kWindows, calls.size() / Replay::kLeastCalls);
  if (windows < kLeast) return LatePattern::unknown;
  struct Window {
    double waited = 0;
    std::map<long, double> awaited;
    long most = -1;  // the rank that causes most of it
  };
  std::vector<Window> all(windows);
  double sum = 0;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    Window& window = all[c * windows / calls.size()];
    for (std::size_t i = 0; i < calls[c]->awaited.size(); ++i) {
      if (calls[c]->awaited[i] < 0) continue;
      const auto waits = static_cast<double>(calls[c]->wait_ends[i] - calls[c]->arrivals[i]);
      window.waited += waits;
      window.awaited[profile.record->groups[calls[c]->group][static_cast<std::size_t>(calls[c]->awaited[i])]] += waits;
      sum += waits;
    }
  }
  double dominated = 0, mine = 0, before = 0;  // waits: what few long ones decide, many short ones must not outvote
  std::size_t first = windows;
  for (std::size_t w = 0; w < windows; ++w) {
    Window& window = all[w];
    for (const auto& [awaited, waits] : window.awaited)
      if (waits >= kNamed * window.waited) window.most = awaited;
    if (window.most >= 0) dominated += window.waited;
    if (rank >= 0 && window.most == rank) {
      mine += window.waited;
      if (first == windows && window.waited > 0.25 * sum / static_cast<double>(windows)) first = w;
    }
    if (first == windows) before += window.waited;
  }
  constexpr double kNearlyAll = 0.8, kFew = 0.05;
  if (mine >= kNearlyAll * sum && mine > 0)
    return first >= windows / 5 && windows - first > 2 && before < kFew * sum ? LatePattern::since : LatePattern::fixed;
  return dominated >= kNearlyAll * sum ? LatePattern::moves : LatePattern::random;
}

/// Whether the lateness can go away, and need not move to other ranks.
bool can_go(const Why& why) {
  return why.source == Why::Source::intervals && why.share >= kNamed &&
         ((why.cause == no_core && !why.own_threads) || (why.cause == blocked && why.sleeps_for == SleepsFor::unknown));
}

/// The waits at one of the worst sites. `delays`: the lack of cores is a finding of its own.
Finding of_site(const Profile& profile, const Gains& gains, const RunTotals& t, bool delays, const Site& site) {
  Finding out{.kind = FindingKind::imbalance};
  // Of a site that serves many callers, one may cause most of the waiting. Then the finding is about that one.
  const auto tree = callers_of(site);
  const auto& callers = analysis::served(tree);
  const CallerNode* caller =
      serves_many(callers) && callers.front().frame && callers.front().figures.waited >= kNamed * site.waited
          ? &callers.front()
          : nullptr;
  if (caller) out.callers = caller->place();
  const CallFigures& worst = caller ? caller->figures : site;
  out.set_site(site, worst);
  out.time = Share::of(worst.waited, t.time);
  out.at_least = t.part_only() || cut_short(profile);
  const RankRow* row = worst.most_awaited();
  const double share = row && worst.waited > 0 ? row->awaited / worst.waited : 0;
  // With few logged calls, chance may name a rank.
  const double chance =
      worst.waited > 0 ? 2 * std::sqrt(share * (1 - std::min(share, 1.0))) * site.waited_error / site.waited : 0;
  const auto index = static_cast<std::int32_t>(site.index);
  out.pattern = pattern_of(profile, site, row ? row->rank : -1);
  if (row && share - chance >= kNamed && out.pattern != LatePattern::moves && out.pattern != LatePattern::random) {
    out.rank = row->rank;
    out.ranks = row->ranks;
    out.last_in = row->last;
    // The calls of one caller may have too few samples where those of the whole site have enough.
    const Baseline baseline = caller ? Baseline(worst) : site.baseline;
    const RankRow* of_site = caller ? site.row_of(row->rank) : nullptr;
    const bool whole = of_site && !SiteIntervals(worst, baseline).compare(*row);
    const CallFigures& calls = whole ? site : worst;
    out.why = why(profile, calls, SiteIntervals(calls, whole ? site.baseline : baseline), whole ? *of_site : *row);
    if (out.ranks == 1 && static_cast<std::size_t>(out.rank) < profile.hosts.size() &&
        !profile.hosts[static_cast<std::size_t>(out.rank)].empty())
      out.hosts = {profile.hosts[static_cast<std::size_t>(out.rank)]};
  }
  if (const auto& first = profile.job.first_call; first.may_be_at(site.id) && first.waited >= kKnown * site.waited) {
    out.kind = FindingKind::wait_at_start_or_end;
    out.variant = "first_call";
    out.time = Share::of(first.waited, t.time);
    if (site.calls > 1) out.why = {};  // the means over all calls are not those of the first one
    return out;
  }
  const bool goes = out.ranks == 1 && can_go(out.why);
  // Lateness that began earlier ends with a change there.
  const auto change_at = out.why.source == Why::Source::earlier ? -1 : index;
  out.basis = goes ? "on_time" : delays ? "equal_computing" : "equal_work";
  out.gain = goes     ? gains.on_time(static_cast<core::Rank>(out.rank), change_at)
             : delays ? gains.equal_computing(change_at)
                      : gains.equal_work(change_at);
  out.no_gain = gains.why_no(out.gain);
  if (goes && out.gain) {  // the rest of the difference stays
    out.gain->low *= out.why.goes;
    out.gain->high *= out.why.goes;
  }
  const bool cause = out.why.source == Why::Source::intervals || out.why.source == Why::Source::whole_run;
  // Others wait for it, but it is not late.
  if (out.gain && out.gain->high < 2 * kLittle && !cause) out.accuse_nobody();
  // Several ranks may be equally late, of which one comes last by chance.
  if (out.ranks == 1 && !goes && out.gain && out.gain->low >= kLittle)
    if (const auto alone = gains.on_time(static_cast<core::Rank>(out.rank), change_at);
        alone && alone->high < 0.5 * out.gain->low)
      out.accuse_nobody();
  if (out.ranks > 0 && out.why.source == Why::Source::not_known && gains.lacks_cores()) {
    out.accuse_nobody();
    out.why = not_known(
        "ranks share cores, or others take them, and the order in which ranks get one may decide who comes last");
  }
  if (out.ranks == 1) out.code = code_of(profile, &site, out.why, out.rank);
  if (out.gain && out.gain->low >= kLittle && out.ranks == 0)
    if ((out.own_times = gains.extremes(index))) out.pattern = LatePattern::unknown;
  return out;
}

void find_waits(const Profile& profile, const Gains& gains, const RunTotals& t, bool delays,
                std::vector<Finding>& out) {
  std::vector<const Site*> worst;
  for (const Site& site : profile.sites)
    if (site.comm_size >= 2 && site.waited > kLittle * t.time) worst.push_back(&site);
  std::ranges::stable_sort(worst, std::greater(), &Site::waited);
  if (worst.size() > kWorstSites) worst.resize(kWorstSites);
  for (const Site* site : worst) out.push_back(of_site(profile, gains, t, delays, *site));
}

void find_ends(const Profile& profile, const RunTotals& t, std::vector<Finding>& out) {
  const bool said = std::ranges::find(out, FindingKind::wait_at_start_or_end, &Finding::kind) != out.end();
  if (const auto& first = profile.job.first_call; !said && first.waited > kLittle * t.time) {
    Finding one{
        .kind = FindingKind::wait_at_start_or_end, .variant = "first_call", .time = Share::of(first.waited, t.time)};
    if (first.awaited >= kNamed * first.waited) {
      one.rank = first.rank;
      one.ranks = 1;
    }
    out.push_back(one);
  }
  std::vector<std::pair<double, const RankFigures*>> ends;
  for (const RankFigures& rank : profile.analysis.ranks()) ends.emplace_back(rank.times.end / rank.ranks, &rank);
  std::ranges::sort(ends);
  if (t.own_time > 0 && t.end / t.own_time >= kNoticed) {
    Finding one{.kind = FindingKind::wait_at_start_or_end, .variant = "end", .time = Share::of(t.end, t.own_time)};
    // Ranks that come together with the last one may have waited for each other.
    if (ends.size() > 1 && ends[1].first - ends[0].first > 0.5 * ends.back().first) {
      one.rank = ends[0].second->first;
      one.ranks = static_cast<long>(ends[0].second->ranks);
    }
    out.push_back(one);
  }
  if (t.own_time > 0 && t.init / t.own_time >= kMessages)
    out.push_back(
        {.kind = FindingKind::wait_at_start_or_end, .variant = "init", .time = Share::of(t.init, t.own_time)});
}

/// The call site with most of the time of a part.
const TimedCalls* most_timed(const Profile& profile, std::string_view part) {
  const auto found = std::ranges::find(profile.timed_sites, part, &TimedCalls::part);
  return found == profile.timed_sites.end() ? nullptr : &*found;
}

void find_messages(const Profile& profile, const Gains& gains, const RunTotals& t, std::vector<Finding>& out) {
  if (t.messages < kMessages * t.own_time) return;
  Finding one{.kind = FindingKind::message_wait,
              .timed = most_timed(profile, "messages"),
              .time = Share::of(t.messages, t.own_time)};
  const auto chain = follow_messages(profile.analysis.ranks());
  if (!chain) return;
  const auto share = [](const RankFigures& r) { return r.wall > 0 ? r.times.messages / r.wall : 1; };
  const RankFigures& most = *chain->ranks.front();
  if (share(most) - 2 * most.messages_error / most.wall >=
      kMore * share(*std::ranges::min_element(profile.analysis.ranks(), {}, share))) {
    std::vector<long> ranks;
    for (const RankFigures* rank : chain->ranks) ranks.push_back(rank->first);
    // Where it ends nowhere, its last rank is no more the origin than the others.
    if (!chain->ends) ranks.resize(std::min<std::size_t>(ranks.size(), 2));
    const RankFigures& last = *chain->ranks.back();
    // A rank waits in collectives, too, so that is no reason.
    if (chain->longer && kTimeColumns[chain->longer->part].value != &ProcessTimes::collectives) {
      one.why = why_over_run(*chain->longer);
      one.rank = last.first;
      one.ranks = static_cast<long>(last.ranks);
    }
    one.why.chain = chain_of(profile, ranks);
    one.why.share = share(most);
    if (chain->cycle) one.kind = FindingKind::message_cycle;
  }
  if (one.ranks == 1) one.code = code_of(profile, nullptr, one.why, one.rank);
  const auto part = one.why.source == Why::Source::whole_run ? kTimeColumns[one.why.cause].value : nullptr;
  const bool goes = one.ranks == 1 && one.why.sleeps_for == SleepsFor::unknown &&
                    (part == &ProcessTimes::blocked || part == &ProcessTimes::runnable);
  one.basis = goes ? "on_time" : "equal_work";
  one.gain = goes ? gains.on_time(static_cast<core::Rank>(one.rank)) : gains.equal_work();
  one.no_gain = gains.why_no(one.gain);
  // Few recorded intervals do not tell a difference from chance. Equal work keeps the mean of the ranks' own times, so
  // the run becomes shorter by no more than their mean wait.
  if (!goes && one.gain && one.gain->open()) {
    if (t.part_only()) {
      one.gain.reset();
      one.no_gain = "Waits in a part of the calls are not known.";
    } else {
      one.gain = GainRange{0, (t.messages + t.end) / t.own_time + t.waited / t.time, true};
    }
  }
  out.push_back(one);
}

void find_parts(const Profile& profile, const RunTotals& t, std::vector<Finding>& out) {
  for (const auto& [kind, part, time] :
       {std::tuple(FindingKind::files, "files", t.files), std::tuple(FindingKind::other_mpi, "other", t.other_mpi)})
    if (time >= kMessages * t.own_time)
      out.push_back({.kind = kind, .timed = most_timed(profile, part), .time = Share::of(time, t.own_time)});
}

/// The time that an algorithm can shorten.
void find_transfers(const Profile& profile, const Gains& gains, const RunTotals& t, std::vector<Finding>& out) {
  if (t.large < kLittle * t.time) return;
  Finding one{.kind = FindingKind::transfer, .basis = "after_last"};
  double most = 0;
  for (const Site& site : profile.sites)
    if (site.comm_size >= 2 && site.bytes.value_or(0) > kSmall && served(site.op) &&
        site.after_last_sum * site.comm_size > most) {
      most = site.after_last_sum * site.comm_size;
      one.set_site(site, site);
    }
  one.time = Share::of(std::min(most, t.large), t.time);  // of the site that the finding names
  if (one.time.value() < kLittle) return;
  if (gains.lacks_cores()) one.no_gain = gains.why_not();
  else one.gain = GainRange{0, one.time.value(), true};
  out.push_back(one);
}

void find_missing(const Profile& profile, const RunTotals& t, std::vector<Finding>& out) {
  const std::vector<int> absent = absent_ranks(profile);
  if (!absent.empty())
    out.push_back({.kind = FindingKind::partial_data,
                   .rank = absent.front(),
                   .ranks = static_cast<long>(absent.size()),
                   .variant = "ranks"});
  else if (t.lacks_logs())
    out.push_back({.kind = FindingKind::partial_data, .variant = "logs", .time = Share::of(t.unlogged, 1)});
  else if (t.part_only())
    out.push_back({.kind = FindingKind::partial_data,
                   .variant = "arrivals",
                   .time = Share::of(t.calls - t.seen, std::max(1.0, t.calls))});
}

/// The share of the time from which MPI_Init is the first finding: the rest of the run is shorter.
constexpr double kMostOfRun = 0.5;

/// Sorts by gain, then by time.
void sort_findings(std::vector<Finding>& all) {
  const auto first = [](const Finding& one) {
    switch (one.kind) {
      case FindingKind::standstill:
      case FindingKind::different_calls:
        return 0;
      case FindingKind::partial_data:
        return one.variant == "ranks" ? 1 : 5;
      case FindingKind::wait_at_start_or_end:
        return one.variant != "init" ? 3 : one.time.value() > kMostOfRun ? 2 : 4;  // a program cannot change that
      case FindingKind::cores_taken:
        return one.time.value() >= kLoaded ? 2 : 3;
      case FindingKind::binding:
        return one.variant == "more_ranks" && one.time.value() >= kLittle ? 2 : 3;  // then all waits are partly that
      default:
        return 3;
    }
  };
  const auto weight = [](const Finding& one) {
    return std::pair(one.gain ? one.gain->high : one.time.value(), one.time.value());
  };
  std::ranges::stable_sort(all, [&](const Finding& a, const Finding& b) {
    return first(a) != first(b) ? first(a) < first(b) : weight(a) > weight(b);
  });
}

}  // namespace

bool RunTotals::lacks_logs() const { return unlogged >= kNoticed; }

bool RunTotals::part_only() const { return seen < kKnown * calls || lacks_logs(); }

double RunTotals::bound() const { return std::max(0.0, waited - 2 * waited_error); }

bool RunTotals::bound_says_nothing() const {
  return part_only() && (bound() < 0.0005 * time || bound() < unlogged * time);
}

RunTotals totals(const Profile& profile) {
  RunTotals t;
  t.time = profile.job.rank_time();
  t.unlogged = profile.job.cost.unlogged.value();
  for (const RankFigures& rank : profile.analysis.ranks()) {
    t.outside += rank.times.own();
    t.no_core += rank.times.runnable;
    t.collectives += rank.times.collectives;
    t.messages += rank.times.messages;
    t.files += rank.times.io;
    t.other_mpi += rank.times.other_mpi;
    t.init += rank.times.init;
    t.end += rank.times.end;
    t.messages_error = error_of_sum(t.messages_error, rank.messages_error);
    t.own_time += rank.wall;
  }
  if (profile.job.covered <= 0) t.own_time = t.time;
  for (const Site& s : profile.sites) {
    if (s.comm_size < 2) continue;
    t.waited += s.waited;
    t.waited_error = error_of_sum(t.waited_error, s.waited_error);
    t.seen += s.patterns;
    t.calls += s.unrested();
    const double after = s.after_last_sum * s.comm_size;
    t.after_last += after;
    if (s.bytes.value_or(0) > kSmall && served(s.op)) t.large += after;
  }
  // `after_last_sum` ends with the last rank that leaves. All ranks together spent no more than this there.
  const double room = t.collectives > 0 ? std::max(0.0, t.collectives - t.waited) : t.after_last;
  t.after_last = std::min(t.after_last, room);
  t.large = std::min(t.large, room);
  return t;
}

std::vector<int> absent_ranks(const Profile& profile) {
  std::vector<bool> there(static_cast<std::size_t>(std::max(0, profile.job.ranks)));
  for (const ProcessFigures& p : profile.processes)
    if (p.rank >= 0 && p.rank < profile.job.ranks) there[static_cast<std::size_t>(p.rank)] = true;
  std::vector<int> out;
  for (std::size_t r = 0; r < there.size(); ++r)
    if (!there[r]) out.push_back(static_cast<int>(r));
  return out;
}

Share wait_share(const Profile& profile) {
  const RunTotals t = totals(profile);
  return Share::of(t.waited, t.time);
}

Share shortened_share(const Profile& profile) {
  const RunTotals t = totals(profile);
  return Share::of(t.large, t.time);
}

std::vector<Finding> findings(const Profile& profile, std::vector<Finding> others) {
  std::vector<Finding> out = std::move(others);
  const RunTotals t = totals(profile);
  if (profile.processes.empty() || profile.job.ranks < 2 || t.time <= 0) return out;
  const Gains gains(profile);
  // What took the cores may be two findings, of which the first one has the gain.
  const auto load = std::ranges::find(out, FindingKind::cores_taken, &Finding::kind);
  bool delays = false;
  if (load != out.end() && (load->gain = gains.no_delay())) {
    load->basis = "no_delay";
    delays = load->gain->high >= kNoticed;
  }
  for (Finding& one : out)
    if (one.kind == FindingKind::slow_core) {
      one.basis = "as_others";
      one.gain = gains.as_others(one.hosts.front());
      one.no_gain = gains.why_no(one.gain);
    }
  find_missing(profile, t, out);
  if (!t.bound_says_nothing() || !t.lacks_logs()) find_waits(profile, gains, t, delays, out);
  find_ends(profile, t, out);
  find_messages(profile, gains, t, out);
  find_parts(profile, t, out);
  find_transfers(profile, gains, t, out);
  if (out.empty() && t.calls > 0) out.push_back({.kind = FindingKind::no_problem, .time = Share::of(t.waited, t.time)});
  if (out.empty()) out.push_back({.kind = FindingKind::too_short});
  sort_findings(out);
  return out;
}

}  // namespace latecomer::profiles::analysis
