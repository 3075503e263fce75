// SPDX-License-Identifier: BSD-3-Clause
// The templates of findings.
#include "profiles/render/finding_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/text.hpp"
#include "profiles/base/json.hpp"
#include "profiles/base/text.hpp"
#include "profiles/render/hang.hpp"
#include "profiles/render/set_up.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles {

using Json = nlohmann::ordered_json;

namespace {

using analysis::ChainEnd;
using analysis::Finding;
using analysis::FindingKind;
using analysis::LateCode;
using analysis::LatePattern;
using analysis::LiveRank;
using analysis::LiveState;
using analysis::RankRow;
using analysis::RunTotals;
using analysis::SleepsFor;
using analysis::Why;

/// What a rank does, in the order of Cause.
constexpr const char* kDoes[analysis::kCauses] = {"computes",
                                                  "waits for messages",
                                                  "is ready to run but has no core",
                                                  "is asleep or stopped",
                                                  "handles page faults",
                                                  "is in system calls",
                                                  "is in MPI's file calls",
                                                  "is in other MPI calls, such as those that make communicators"};
/// The same of the parts between MPI_Init and MPI_Finalize, in the order of kTimeColumns.
constexpr const char* kSpends[analysis::kPartsBetween] = {
    kDoes[analysis::computing], "is in the kernel",  kDoes[analysis::no_core],   kDoes[analysis::blocked],
    kDoes[analysis::mpi_wait],  kDoes[analysis::io], kDoes[analysis::other_mpi], "is in collectives"};

std::string rank_text(long rank) { return "rank " + std::to_string(rank); }

/// "2.3 to 2.4", without what both have at the end.
std::string span(const std::string& low, const std::string& high) {
  if (low == high) return high;
  const auto at_low = low.find_last_of(' '), at_high = high.find_last_of(' ');
  if (at_low != std::string::npos && at_high != std::string::npos && low.substr(at_low) == high.substr(at_high))
    return low.substr(0, at_low) + " to " + high;
  if (low.ends_with('%') && high.ends_with('%')) return low.substr(0, low.size() - 1) + " to " + high;
  return low + " to " + high;
}

/// "2.3 s", or "740 ms".
std::string time_text(double ns) {
  char text[48];
  if (ns < 0.95e9) std::snprintf(text, sizeof text, "%.0f ms", ns / 1e6);
  else std::snprintf(text, sizeof text, "%.1f s", ns / 1e9);
  return text;
}

/// What has to change for the gain.
std::string gain_if(const Finding& one) {
  if (one.basis == "on_time") return " if that rank were on time";
  if (one.basis == "as_others") return " if its ranks took as long as the others";
  if (one.basis == "no_delay") return " if every rank always had a core";
  return one.basis == "after_last" ? "" : " with equal work on all ranks";
}

std::string gain_text(const Profile& profile, const Finding& one) {
  const double run = profile.job.mean_run();
  const auto share = [](double value) { return percent(Share::of(value, 1)); };
  if (one.gain && one.gain->high < 1.005 * analysis::kLittle)
    return "could save less than 1% of the run" + gain_if(one);
  if (one.gain && one.gain->open())
    return "could save at most " + time_text(one.gain->high * run) + " (" + share(one.gain->high) + ")" + gain_if(one);
  if (one.gain)
    return "could save " + span(time_text(one.gain->low * run), time_text(one.gain->high * run)) + " (" +
           span(share(one.gain->low), share(one.gain->high)) + ")" + gain_if(one);
  if (!one.time.known() || one.time.value() <= 0) return "";
  return std::string(one.kind == FindingKind::imbalance && one.ranks > 0 ? "waits there take " : "") +
         (one.at_least ? "at least " : "") + percent(one.time) + " of the ranks' time";
}

std::string where_text(const Finding& one) {
  const Site& site = *one.site;
  std::string out = mpi_name(site.op);
  if (site.bytes.value_or(0) > 0) out += " of " + human_bytes(std::round(*site.bytes));
  out += ", " + site.place();
  if (!one.callers.empty()) out += ", called from " + one.callers;
  const std::string calls = core::grouped(static_cast<std::int64_t>(one.calls));
  if (one.ranks > 0 && one.kind == FindingKind::imbalance)
    // Where some calls stand for others, a number of calls is an estimate.
    out += site.logged < site.patterns
               ? ", last in about " + percent(one.last_in, one.patterns) + " of " + calls + " calls"
               : ", last in " + core::grouped(static_cast<std::int64_t>(one.last_in)) + " of " + calls + " calls";
  else out += ", " + calls + (one.calls == 1 ? " call" : " calls");
  if (one.kind == FindingKind::imbalance && one.gain)
    out += "; " + std::string(one.at_least ? "at least " : "") + percent(one.time) +
           " of all ranks' time is waiting there";
  return out;
}

std::string compared(const char* does, double value, double reference, bool shares) {
  const auto text = [&](double v) { return shares ? percent(Share::of(v, 1)) : human_time(v); };
  return std::string(does) + " for " + text(value) + (shares ? " of the run" : " before a call") + ", others for " +
         text(reference);
}

std::string threads_text(SleepsFor sleeps_for) {
  return sleeps_for == SleepsFor::own_calls ? "waits for its own threads, which are in MPI calls"
                                            : "waits for its own threads";
}

/// "in MPI_Recv at f (a.c:3) for rank 2, which waits for rank 3"
std::string chain_text(const std::vector<analysis::ChainStep>& chain) {
  std::string out;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    if (const analysis::TimedCalls* at = chain[i].at)
      out += "in " + at->call + " at " + analysis::place_of(at->frames) + " ";
    out += "for " + rank_text(chain[i + 1].rank) + (i + 2 < chain.size() ? ", which waits " : "");
  }
  return out;
}

std::string why_text(const Why& why) {
  switch (why.source) {
    case Why::Source::none:
      return "";
    case Why::Source::earlier:
      return "it was late already at an earlier collective";
    case Why::Source::not_known:
      return "not known: " + why.missing;
    case Why::Source::whole_run:
      if (why.sleeps_for != SleepsFor::unknown) return "it " + threads_text(why.sleeps_for) + " over the whole run";
      return "it " + compared(kSpends[why.cause], why.value, why.reference, true);
    case Why::Source::intervals:
      break;
  }
  const std::string share = " (" + percent(Share::of(why.share, 1)) + " of its lateness)";
  if (why.end) {
    const bool known = why.chain.size() > 1;
    const std::string last = known ? rank_text(why.chain.back().rank) : "";
    std::string out = (known ? "it waits " + chain_text(why.chain) : "it waits for messages") + share;
    switch (*why.end) {
      case ChainEnd::own:
        return out + (why.last_cause ? "; " + last + " " +
                                           compared(kDoes[*why.last_cause], why.last_value, why.last_reference, false)
                                     : "");
      case ChainEnd::several:
        return out + (last.empty() ? " of several ranks, or for one-sided calls"
                                   : "; " + last + " waits for several ranks, or for one-sided calls");
      case ChainEnd::transfer:
        return out + "; " + last + " is not late itself";
      case ChainEnd::unsampled:
        return out + "; too few intervals of " + last + " were sampled to say why";
      case ChainEnd::cycle:
        return out + "; the ranks wait for each other in a circle";
    }
  }
  std::string out = why.sleeps_for != SleepsFor::unknown ? threads_text(why.sleeps_for)
                    : why.own_threads
                        ? compared("waits for a core that its own threads use", why.value, why.reference, false)
                        : compared(kDoes[why.cause], why.value, why.reference, false);
  if (why.share < analysis::kNamed) return "no single cause; the largest is that it " + out + share;
  return "it " + out + share;
}

/// More work, or a slower core; "": the machine does not count instructions.
std::string execution_text(const LateCode& code) {
  if (!code.execution) return "";
  const auto [instructions, cycles, time] = *code.execution;
  const double all = std::log(instructions * cycles * time);
  char text[200];
  std::snprintf(text, sizeof text,
                "%sit executes %.2f times as many instructions, each takes %.2f times as many cycles, and each cycle "
                "%.2f times as long",
                all <= 0                                           ? ""
                : std::log(instructions) >= analysis::kNamed * all ? "more work: "
                : std::log(time) >= analysis::kNamed * all         ? "a slower core: "
                                                                   : "",
                instructions, cycles, time);
  return text;
}

/// Which code makes the rank late; "": not known.
std::string code_text(const LateCode& code) {
  const auto time = [&](double value) { return code.whole_run ? percent(Share::of(value, 1)) : human_time(value); };
  const char* const of = code.whole_run ? " of the run" : " per call";
  switch (code.kind) {
    case LateCode::Kind::none:
      break;
    case LateCode::Kind::alike: {
      char ratio[32];
      std::snprintf(ratio, sizeof ratio, "%.2f", code.ratio);
      return std::string("in all functions alike (x") + ratio + "): more data, a slower core, or other load";
    }
    case LateCode::Kind::spread:
      return "the difference is spread: no function has 20% of it";
    case LateCode::Kind::functions: {
      std::string out;
      constexpr std::size_t kShown = 3;
      for (std::size_t i = 0; i < std::min(kShown, code.parts.size()); ++i) {
        const LateCode::Part& part = code.parts[i];
        out += std::string(i == 0 ? "" : "; ") + (part.threads ? "its other threads take " : "") +
               time(part.mine - part.reference) + " (+- " + time(part.error) + ") more" + of + " in " + part.name +
               (part.waits ? ", where threads wait for each other" : "") + ", " + time(part.mine) + " against " +
               time(part.reference);
      }
      return out;
    }
    case LateCode::Kind::stretch: {
      std::string out = "that is between " + code.from + " and " + code.to;
      if (!code.parts.empty())
        out += ", " + human_time(code.parts.front().mine) + " in the mean against " +
               human_time(code.parts.front().reference);
      return out;
    }
  }
  return "";
}

constexpr const char* pattern_text(LatePattern pattern) {
  switch (pattern) {
    case LatePattern::since:
      return "from some call on, and not before";
    case LatePattern::moves:
      return "in different parts of the run, different ranks are late";
    case LatePattern::random:
      return "the late rank varies from call to call";
    case LatePattern::fixed:
    case LatePattern::unknown:
      break;
  }
  return "";
}

constexpr char kLogsAll[] = "the policy `{\"version\": 1, \"budget\": null}` logs every call";

/// The time of the calls that are no collectives, and the site with most of it.
std::string timed_text(const Finding& one, double part) {
  if (!one.timed) return "";
  const Share share = Share::of(one.timed->time, part);
  if (share.known() && share.value() < 0.1) return "";
  return one.timed->call + ", " + analysis::place_of(one.timed->frames) +
         (share.known() ? ", " + percent(share) + " of that time" : "");
}

/// Whether no rank comes last much more often than others.
bool varies(const Finding& one) {
  if (one.pattern == LatePattern::moves || one.pattern == LatePattern::random) return true;
  return one.why.source == Why::Source::none && !(one.gain && one.gain->high < 2 * analysis::kLittle);
}

void write_imbalance(const Finding& one, FindingText& out) {
  out.title = one.ranks > 0   ? capital(RankRow::ranks_named(one.rank, one.ranks)) + " is late"
              : one.own_times ? "Ranks need unequal times before " + mpi_name(one.site->op)
              : varies(one)   ? "Ranks wait, for no rank in particular"
                              : "Ranks wait, and no rank is known to need longer";
  out.where.push_back(where_text(one));
  if (one.own_times) {
    const auto& [longest, shortest] = *one.own_times;
    out.why.push_back("before a call, " + rank_text(longest.first) + " needs " + human_time(longest.second) +
                      " in the mean, and " + rank_text(shortest.first) + " needs " + human_time(shortest.second));
  }
  std::string why = why_text(one.why);
  if (const std::string pattern = pattern_text(one.pattern); !pattern.empty())
    why += (why.empty() ? "" : "; ") + pattern;
  if (!why.empty()) out.why.push_back(why);
  for (const std::string& line : {code_text(one.code), execution_text(one.code)})
    if (!line.empty()) out.why.push_back(line);
  out.next = "latecomer report --site " + one.site->id + " FILE";
}

/// Whether the last rank of the chain is awaited in calls that send.
bool sends(const Finding& one) {
  constexpr std::string_view kSends[] = {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend"};
  const auto& chain = one.why.chain;
  const analysis::TimedCalls* at = chain.size() < 2 ? nullptr : chain[chain.size() - 2].at;
  return at && std::ranges::find(kSends, at->call) != std::end(kSends);
}

void write_message_wait(const Finding& one, const RunTotals& t, FindingText& out) {
  const std::string who = one.ranks > 0 ? RankRow::ranks_named(one.rank, one.ranks) : "";
  out.title = one.ranks > 0 && sends(one)              ? "Ranks wait for " + who + " to receive messages"
              : one.ranks > 0                          ? "Ranks wait for messages of " + who
              : one.kind == FindingKind::message_cycle ? "Ranks wait for messages of each other"
                                                       : "Ranks wait for messages";
  if (const std::string place = timed_text(one, t.messages); !place.empty()) out.where.push_back(place);
  const auto& chain = one.why.chain;
  if (!chain.empty()) {
    std::string text =
        rank_text(chain.front().rank) + " waits most, for " + percent(Share::of(one.why.share, 1)) + " of its time";
    if (chain.size() > 1) text += ", mostly " + chain_text(chain);
    if (one.why.source == Why::Source::whole_run)
      text += ", which " + compared(kSpends[one.why.cause], one.why.value, one.why.reference, true);
    out.why.push_back(text);
  }
  for (const std::string& line : {code_text(one.code), execution_text(one.code)})
    if (!line.empty()) out.why.push_back(line);
  out.next = "latecomer report --all FILE";
}

void write_ends(const Finding& one, FindingText& out) {
  const std::string who = one.ranks > 0 ? RankRow::ranks_named(one.rank, one.ranks) : "";
  if (one.variant == "end") {
    out.title = who.empty() ? "Ranks wait in MPI_Finalize for the last ones"
                            : "Ranks wait in MPI_Finalize until " + who + " has come";
  } else if (one.variant == "init") {
    out.title = "Ranks spend their time in MPI_Init";
  } else {
    out.title = "Ranks wait at their first collective" + (who.empty() ? "" : " for " + who);
    if (one.site) out.where.push_back(where_text(one));
    if (const std::string why = why_text(one.why); !why.empty()) out.why.push_back(why);
  }
}

void write_missing(const Profile& profile, const Finding& one, FindingText& out) {
  if (one.variant == "ranks") {
    const std::vector<int> absent = analysis::absent_ranks(profile);
    out.title = "The profile lacks " + ranks_named(absent);
    out.why.push_back(
        std::string("arrivals count only where all ranks of a call are observed. ") +
        (absent.size() == 1 ? "That rank" : "Those ranks") +
        " ran without the preload, which `latecomer run` gives to all ranks, or left snapshots in a folder that "
        "`latecomer recover` did not read, or none");
  } else if (one.variant == "logs") {
    out.title = "Waiting is not known for a part of the run";
    out.why.push_back(std::string("too few of its short calls were logged; ") + kLogsAll);
  } else {
    out.title = "Waiting is not known for a part of the calls";
    out.why.push_back("for " + percent(one.time) + " of the calls, the record of some rank is missing");
  }
}

/// The three ways in which a rank has no core.
void write_cores(const Finding& one, FindingText& out) {
  const std::string host = one.hosts.front(), share = percent(one.time);
  out.title = one.variant == "quota"     ? "A quota holds the ranks of host " + host + " back"
              : one.variant == "no_core" ? "Ranks of host " + host + " had no core"
                                         : "Something else uses the cores of host " + host;
  out.saves = (one.variant == "quota"     ? "for " + share + " of the time of the cores that they use"
               : one.variant == "no_core" ? "for " + share + " of their time"
                                          : share + " of them") +
              (one.gain ? ", " + out.saves : "");
}

FindingText text_of(const Profile& profile, const RunTotals& t, const Finding& one) {
  FindingText out;
  out.saves = gain_text(profile, one);
  switch (one.kind) {
    case FindingKind::standstill:
    case FindingKind::different_calls:
      out.title = one.text.front();
      out.why.push_back(one.text.back());
      out.next = "latecomer report --all FILE";
      return out;
    case FindingKind::partial_data:
      write_missing(profile, one, out);
      out.saves.clear();
      break;
    case FindingKind::cores_taken:
      write_cores(one, out);
      break;
    case FindingKind::binding:
      out.title = (one.variant == "more_ranks" ? "More ranks than cores on host " : "Ranks share cores on host ") +
                  one.hosts.front();
      out.saves = one.time.value() > 0 ? "ranks had no core for " + percent(one.time) + " of their time" : "";
      break;
    case FindingKind::slow_core:
      out.title = "Host " + one.hosts.front() + " is slower, or has more work";
      break;
    case FindingKind::imbalance:
      write_imbalance(one, out);
      break;
    case FindingKind::wait_at_start_or_end:
      write_ends(one, out);
      break;
    case FindingKind::message_wait:
    case FindingKind::message_cycle:
      write_message_wait(one, t, out);
      break;
    case FindingKind::files:
      out.title = "Ranks spend their time in MPI's file calls";
      if (const std::string place = timed_text(one, t.files); !place.empty()) out.where.push_back(place);
      break;
    case FindingKind::other_mpi:
      out.title = "Ranks spend their time in other MPI calls, such as those that make communicators";
      if (const std::string place = timed_text(one, t.other_mpi); !place.empty()) out.where.push_back(place);
      break;
    case FindingKind::transfer:
      out.title = mpi_name(one.site->op) + " could be faster";
      out.where.push_back(where_text(one));
      if (profile.network) out.next = "latecomer advise FILE";
      break;
    case FindingKind::too_short:
      out.title = "The calls are too few or too short to look for causes";
      break;
    case FindingKind::no_problem:
      // Below the limits of findings, several waits may take more than 1% together.
      if (std::max({t.waited / t.time, (t.messages + t.files + t.other_mpi + t.end) / t.own_time}) >= analysis::kLittle)
        out.title = "No wait is long enough for a finding";
      else
        out.title =
            analysis::cut_short(profile) ? "Until then, no wait took 1% of the time" : "No wait takes 1% of the time";
      out.saves.clear();
      break;
  }
  for (const std::string& sentence : one.text) out.why.push_back(sentence);
  return out;
}

/// Whether the waits for messages include those for non-blocking collectives.
bool waits_for_requests(const Profile& profile) {
  return std::ranges::find(profile.not_counted, "nonblocking", &analysis::UncountedFigures::what) !=
         profile.not_counted.end();
}

/// The least share of a part of the headline.
constexpr double kShown = 0.005;

/// "late_process: 2 ranks, 1 host, 3.3 s. Computing or asleep 56%, waiting for ranks in collectives 37%."
std::string headline(const Profile& profile, const RunTotals& t) {
  const analysis::ProfileJob& job = profile.job;
  if (t.own_time <= 0 || t.time <= 0 || profile.processes.empty()) return "";
  std::string out = core::base_name(job.program) + ": " + std::to_string(job.ranks) + " ranks, " +
                    std::to_string(job.hosts) + (job.hosts == 1 ? " host, " : " hosts, ");
  out += analysis::cut_short(profile) ? "until the last snapshots, after " + reach_text(job)
                                      : time_text(t.time / job.ranks);
  std::string parts;
  double rest = 0;
  // Waits are known for another span of time than the parts of the ranks, if the job was cut short.
  const auto add = [&](const std::string& name, double time, bool at_least = false, double error = 0,
                       double whole = 0) {
    if (whole <= 0) whole = t.own_time;
    const Share share = Share::of(time, whole);
    if (!share.known() || share.value() < kShown) {
      if (share.known()) rest += share.value();
      return;
    }
    const std::string plus_minus = percent(error, whole);
    parts += (parts.empty() ? "" : ", ") + name + (at_least ? " at least " : " ") + percent(share) +
             (error > 0 && plus_minus != "0.0%" && !at_least ? " (+- " + plus_minus + ")" : "");
  };
  add(t.lacks_logs() ? "computing, asleep or in calls that were not logged" : "computing or asleep",
      t.outside - t.no_core);
  add("without a core", t.no_core);
  if (t.bound_says_nothing()) {
    add("in collectives (how much of it is waiting is not known)", t.collectives);
  } else {
    const bool bound = t.part_only() || analysis::cut_short(profile);
    const double waited = bound ? t.bound() : t.waited;
    const bool shown = waited >= kShown * t.time;
    if (shown) add("waiting for ranks in collectives", waited, bound, t.waited_error, t.time);
    add(shown ? "otherwise in collectives" : "in collectives", std::max(0.0, t.collectives - (shown ? waited : 0)));
  }
  add(waits_for_requests(profile) ? "in messages and non-blocking collectives" : "in messages", t.messages, false,
      t.messages_error);
  add("in files", t.files);
  add("in other MPI calls", t.other_mpi);
  add("in MPI_Init", t.init);
  add("waiting in MPI_Finalize", t.end);
  if (rest >= kShown) add("in other parts", rest * t.own_time);
  return out + "." + (parts.empty() ? "" : " " + capital(parts) + ".");
}

/// What the profile does not know, and how to know it.
std::string not_known(const Profile& profile, const std::vector<Finding>& findings) {
  std::string out;
  const auto gains = std::ranges::find_if(findings, [](const Finding& one) {
    return one.kind != FindingKind::transfer && !one.gain && !one.no_gain.empty();
  });
  if (gains != findings.end()) out = "what less waiting would save. " + gains->no_gain;
  const auto code = std::ranges::find_if(findings, [](const Finding& one) { return !one.code.missing.empty(); });
  if (code != findings.end())
    out += (out.empty() ? "" : " And ") + std::string("in which function ") +
           rank_text(code->why.chain.empty() ? code->rank : code->why.chain.back().rank) +
           " computes longer: " + code->code.missing + ".";
  if (const auto logs = std::ranges::find(findings, "logs", &Finding::variant);
      logs - findings.begin() >= static_cast<std::ptrdiff_t>(kFirstFindings) && logs != findings.end())
    out += (out.empty() ? "" : " And ") + std::string("how long ranks waited in calls that were not logged: ") +
           kLogsAll + ".";
  const LiveState& last = profile.last_state;
  if (!last.ranks.empty() && last.ended &&
      std::ranges::all_of(last.ranks, [](const analysis::LiveRank& r) { return r.watched < 0; }))
    out += (out.empty() ? "" : " And ") +
           std::string(
               "whether the job stood still when it ended: `latecomer run` and `latecomer relay` write that "
               "down, unless they are killed, too.");
  if (out.empty() && analysis::cut_short(profile) && last.ranks.empty())
    out =
        "what the job did later: `latecomer who` shows where a running job waits, and `latecomer run` keeps it of one "
        "that is killed.";
  return out;
}

/// Lines of at most `width` characters after a margin, which holds `label`.
std::string block(const std::string& label, const std::string& text, std::size_t margin, std::size_t width) {
  std::istringstream lines(paragraph(text, width - margin));
  std::string out, begin = label + std::string(margin - std::min(margin, label.size()), ' ');
  for (std::string line; std::getline(lines, line); begin = std::string(margin, ' ')) out += begin + line + "\n";
  return out;
}

}  // namespace

std::string reach_text(const analysis::ProfileJob& job) {
  const std::string last = human_time(job.last_end > 0 ? job.last_end : job.wall), first = human_time(job.first_end);
  return job.last_end > 0 && first != last ? first + " to " + last : last;
}

std::string partial_text(const Profile& profile) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (analysis::cut_short(profile)) add("until " + reach_text(profile.job) + " of the run");
  if (const std::vector<int> absent = analysis::absent_ranks(profile); !absent.empty())
    add("without " + ranks_named(absent));
  else if (analysis::totals(profile).part_only()) add("waits in a part of the calls are not known");
  return out;
}

Judgement judge(const Profile& profile) {
  Judgement out;
  std::vector<Finding> others = set_up(profile);
  std::erase_if(others, [](const Finding& one) { return one.variant == "unbound"; });
  if (auto still = standstill(profile.last_state)) others.push_back(std::move(*still));
  out.findings = analysis::findings(profile, std::move(others));
  const RunTotals t = analysis::totals(profile);
  if (profile.job.ranks >= 2) out.headline = headline(profile, t);
  const auto loaded = [&](std::string_view variant) {
    return !out.headline.empty() && std::ranges::any_of(out.findings, [&](const Finding& one) {
      return one.kind == FindingKind::cores_taken && one.variant == variant && one.time.value() >= analysis::kLoaded;
    });
  };
  if (loaded("others"))
    out.headline += " Something else used the cores, so these times are partly those of other programs.";
  if (loaded("quota")) out.headline += " A quota held the job back, so these times are partly those of the quota.";
  for (const Finding& one : out.findings) out.texts.push_back(text_of(profile, t, one));
  out.not_known = not_known(profile, out.findings);
  return out;
}

std::string judgement_text(const Judgement& judgement, std::size_t most, std::size_t width, const std::string& file) {
  std::string out = judgement.headline.empty() ? "" : paragraph(judgement.headline, width);
  constexpr std::size_t kMargin = 10;
  for (std::size_t i = 0; i < std::min(most, judgement.texts.size()); ++i) {
    const FindingText& one = judgement.texts[i];
    out += "\n" + block(std::to_string(i + 1) + "  ", one.heading(), 3, width);
    for (const std::string& text : one.where) out += block("   where", text, kMargin, width);
    for (const std::string& text : one.why) out += block("   why", text, kMargin, width);
    if (const auto at = one.next.find("FILE"); at != std::string::npos && !file.empty())
      out += "   next   " + one.next.substr(0, at) + file + "\n";  // a command is of no use in pieces
  }
  if (judgement.texts.size() > most)
    out += "\n" + std::to_string(judgement.texts.size() - most) + " more: latecomer report --all " +
           (file.empty() ? "FILE" : file) + "\n";
  if (!judgement.not_known.empty()) out += "\n" + paragraph("Not known: " + judgement.not_known, width);
  return out;
}

std::vector<std::string> titles(const Judgement& judgement) {
  std::vector<std::string> out;
  if (!judgement.headline.empty()) out.push_back(judgement.headline);
  for (std::size_t i = 0; i < std::min(kFirstFindings, judgement.texts.size()); ++i) {
    const FindingText& one = judgement.texts[i];
    const FindingKind kind = judgement.findings[i].kind;
    const bool still = kind == FindingKind::standstill || kind == FindingKind::different_calls;
    out.push_back(std::to_string(i + 1) + "  " + one.heading() + (still ? ". " + one.why.front() : ""));
  }
  return out;
}

std::vector<std::string> verdict(const Judgement& judgement) {
  std::vector<std::string> out;
  if (!judgement.headline.empty()) out.push_back(judgement.headline);
  for (const FindingText& one : judgement.texts) {
    std::string text = one.heading() + ".";
    for (const auto* lines : {&one.where, &one.why})
      for (const std::string& line : *lines) {
        text += " " + capital(line);
        if (!text.ends_with('.')) text += ".";
      }
    out.push_back(text);
  }
  if (!judgement.not_known.empty()) out.push_back("Not known: " + judgement.not_known);
  return out;
}

namespace {

Json code_json(const LateCode& code) {
  constexpr const char* kKinds[] = {"none", "functions", "alike", "spread", "stretch"};
  Json out = {{"kind", kKinds[static_cast<std::size_t>(code.kind)]},
              {"unit", code.kind == LateCode::Kind::stretch ? "ns per stretch"
                       : code.whole_run                     ? "share of the run"
                                                            : "ns per call"}};
  if (code.kind == LateCode::Kind::alike) out["ratio"] = code.ratio;
  if (code.kind == LateCode::Kind::stretch) {
    out["from"] = code.from;
    out["to"] = code.to;
  }
  for (const LateCode::Part& part : code.parts)
    out["parts"].push_back({{"name", part.name},
                            {"value", part.mine},
                            {"reference", part.reference},
                            {"error", part.error},
                            {"waits", part.waits},
                            {"other_threads", part.threads}});
  return out;
}

}  // namespace

Json findings_json(const Judgement& judgement) {
  Json out = Json::array();
  for (std::size_t i = 0; i < judgement.findings.size(); ++i) {
    const Finding& one = judgement.findings[i];
    Json where = nullptr, why = nullptr, gain = nullptr;
    if (one.site)
      where = {{"site", one.site->id},
               {"op", one.site->op},
               {"place", one.site->place()},
               {"callers", one.callers},
               {"bytes", one.site->bytes ? Json(*one.site->bytes) : Json(nullptr)}};
    else if (one.timed)
      where = {{"site", one.timed->id},
               {"op", one.timed->call},
               {"place", analysis::place_of(one.timed->frames)},
               {"callers", ""},
               {"bytes", nullptr}};
    Json ranks = Json::array();
    for (long r = one.rank; r < one.rank + one.ranks; ++r) ranks.push_back(r);
    const Why& w = one.why;
    Json chain = Json::array();
    for (const analysis::ChainStep& step : w.chain)
      chain.push_back({{"rank", step.rank},
                       {"call", step.at ? Json(step.at->call) : Json(nullptr)},
                       {"place", step.at ? Json(analysis::place_of(step.at->frames)) : Json(nullptr)}});
    if (w.source == Why::Source::intervals || w.source == Why::Source::whole_run) {
      const bool whole = w.source == Why::Source::whole_run;
      std::string_view cause = whole ? analysis::kTimeColumns[w.cause].key : analysis::kCauseNames[w.cause].key;
      if (whole) cause.remove_suffix(std::string_view("_ns").size());
      why = {{"cause", std::string(cause)},
             {"value", w.value},
             {"reference", w.reference},
             {"unit", whole ? "share of the run" : "ns per call"},
             {"share", w.share},
             {"chain", chain}};
    } else if (w.source == Why::Source::earlier) {
      why = {{"cause", "earlier"}};
    } else if (!w.chain.empty()) {
      why = {{"cause", nullptr}, {"share", w.share}, {"chain", chain}};
    }
    if (one.code.kind != LateCode::Kind::none) why["code"] = code_json(one.code);
    if (const auto& execution = one.code.execution)
      why["execution"] = {{"instructions", execution->instructions},
                          {"cycles_each", execution->cycles_each},
                          {"time_each", execution->time_each}};
    if (one.gain)
      gain = {{"low", one.gain->low},
              {"high", one.gain->high},
              {"basis", std::string(one.basis)},
              {"bound", one.gain->at_most ? "upper" : "range"}};
    const char* confidence = one.gain ? "modelled" : w.source == Why::Source::intervals ? "sampled" : "measured";
    Json missing = Json::array();
    if (!w.missing.empty()) missing.push_back(w.missing);
    if (!one.code.missing.empty()) missing.push_back(one.code.missing);
    if (!one.gain && !one.no_gain.empty()) missing.push_back(one.no_gain);
    Json text = Json::array();
    for (const auto* lines : {&judgement.texts[i].where, &judgement.texts[i].why})
      for (const std::string& line : *lines) text.push_back(line);
    out.push_back(Json{{"id", std::string(one.id())},
                       {"title", judgement.texts[i].title},
                       {"where", where},
                       {"who",
                        {{"ranks", ranks},
                         {"hosts", one.hosts},
                         {"pattern", std::string(analysis::kLatePatterns[static_cast<std::size_t>(one.pattern)])}}},
                       {"why", why},
                       {"gain", gain},
                       {"time", one.time.known() ? Json(one.time.value()) : Json(nullptr)},
                       {"confidence", confidence},
                       {"missing", missing},
                       {"text", text}});
  }
  return out;
}

std::optional<Finding> standstill(const LiveState& state) {
  if (state.ranks.empty()) return {};
  const auto findings = Hang(state).findings();
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
  const std::string whole = still == all ? "The job" : std::to_string(still) + " of " + std::to_string(all) + " ranks";
  const std::string title = state.ended ? whole + " stood still when last seen" : "Ranks stand still";
  std::string out;
  constexpr std::size_t kMost = 3;  // `who` and `report --all` list the ranks
  for (std::size_t i = 0; i < std::min(kMost, findings.size()); ++i) out += (i ? " " : "") + findings[i].sentence;
  if (findings.size() > kMost) out += " And " + std::to_string(findings.size() - kMost) + " more like these.";
  if (!unseen.empty())
    out += " Where " + ranks_named(unseen) +
           (state.ended          ? unseen.size() == 1 ? " was" : " were"
            : unseen.size() == 1 ? " is"
                                 : " are") +
           " is not known: that takes `latecomer relay` on every host.";
  const bool differ = std::ranges::any_of(findings, &Hang::Finding::different_calls);
  return Finding{.kind = differ ? FindingKind::different_calls : FindingKind::standstill, .text = {title, out}};
}

}  // namespace latecomer::profiles
