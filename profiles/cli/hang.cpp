// SPDX-License-Identifier: BSD-3-Clause
// Compares the ranks' calls by communicator and call number, and writes the sentences.
#include "profiles/cli/hang.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "core/collective/collective.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/format/decisions.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::cli {
namespace {

std::string duration(std::int64_t ns) { return human_time(static_cast<double>(ns)); }

bool waits(const LiveRank& r) { return r.inside == 1 && !r.moves && !r.stale; }

/// Missing ranks that a sentence describes. Derived: eight take about ten lines of a terminal.
constexpr std::size_t kNamed = 8;

}  // namespace

Hang::Hang(std::vector<LiveRank> ranks) : ranks_(std::move(ranks)) {
  for (const LiveRank& r : ranks_) {
    several_hosts_ = several_hosts_ || r.host != ranks_.front().host;
    for (const auto& [site, frame] : r.frames) places_.try_emplace(site, frame);
  }
  Json names = {{"sites", Json::array()}};
  for (const auto& [site, frame] : places_) names["sites"].push_back({{"frames", Json::array({frame})}});
  resolve_names(names, Progress::Patience{});
  std::size_t i = 0;
  for (auto& [site, frame] : places_) frame = names["sites"][i++]["frames"][0];
}

std::vector<std::string> Hang::findings() const {
  std::vector<std::string> out;
  // The files of a job that was killed show its last state.
  const auto gone = std::count_if(ranks_.begin(), ranks_.end(), [](const LiveRank& r) { return r.state == 'X'; });
  if (gone == static_cast<long>(ranks_.size()))
    out.push_back("The job is over: all " + std::to_string(gone) +
                  " visible processes have ended. Their last state follows.");
  for (const LiveRank& r : ranks_)
    if (r.state == 'X' && gone < static_cast<long>(ranks_.size()))
      out.push_back("Rank " + std::to_string(r.rank) + " is gone: process " + std::to_string(r.pid) +
                    (several_hosts_ ? " on " + r.host : "") + " has ended. It was " + where(r) + ".");
  // Calls of one communicator with equal numbers must be alike.
  // Communicators without an identity yet are told apart by their size and the place of the call.
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, int>, std::vector<const LiveRank*>> calls;
  for (const LiveRank& r : ranks_)
    if (waits(r))
      calls[{r.communicator, r.n, r.communicator == 0 ? r.site : 0, r.communicator == 0 ? r.comm_size : 0}].push_back(
          &r);
  for (const auto& [key, members] : calls) judge_call(members, out);
  if (!out.empty()) return out;
  std::vector<int> stuck;
  std::int64_t longest = 0;
  for (const LiveRank& r : ranks_)
    if (r.message != 0 && !r.moves && !r.stale && r.inside != 1)
      stuck.push_back(r.rank), longest = std::max(longest, r.looked - r.message);
  if (!stuck.empty())
    out.push_back((stuck.size() == 1 ? "Rank " : "Ranks ") + ranks_text(stuck) +
                  (stuck.size() == 1 ? " waits" : " wait") +
                  " inside a message, a completion or a one-sided call for " + duration(longest) + ".");
  return out;
}

void Hang::judge_call(const std::vector<const LiveRank*>& members, std::vector<std::string>& out) const {
  const LiveRank& any = *members.front();
  std::map<std::string, std::vector<int>> kinds;
  std::vector<int> ranks;
  std::int64_t longest = 0;
  for (const LiveRank* r : members)
    kinds[call_text(*r)].push_back(r->rank), ranks.push_back(r->rank), longest = std::max(longest, age(*r));
  const std::string number = "call " + std::to_string(any.n) + " on " + communicator(any);
  if (any.communicator != 0 && kinds.size() > 1) {
    std::string text = "The program makes different calls as " + number + ": ";
    bool first = true;
    for (const auto& [kind, of] : kinds) text += (first ? "" : ", ") + ranks_named(of) + " " + kind, first = false;
    out.push_back(text + ".");
    if (static_cast<int>(members.size()) >= any.comm_size) return;
  }
  if (static_cast<int>(members.size()) >= any.comm_size) {
    out.push_back("All " + std::to_string(members.size()) + " ranks of " + communicator(any) + " are in " +
                  kinds.begin()->first + " (" + number + ") for " + duration(longest) +
                  ", so no rank is missing there.");
    return;
  }
  std::string text = (ranks.size() == 1 ? "Rank " : "Ranks ") + ranks_text(ranks) +
                     (ranks.size() == 1 ? " waits in " : " wait in ") + kinds.begin()->first + " (" + number +
                     ") for " + duration(longest);
  const auto missing = absent(any, members);
  std::vector<std::string> details;
  for (const LiveRank* r : missing)
    if (details.size() < kNamed)
      details.push_back("rank " + std::to_string(r->rank) + (several_hosts_ ? " on " + r->host : "") + ", which " +
                        doing(*r));
  if (missing.size() > kNamed) details.push_back(std::to_string(missing.size() - kNamed) + " more");
  if (const int unseen = any.comm_size - static_cast<int>(members.size() + missing.size()); missing.empty())
    details.push_back(std::to_string(unseen) + " members that have not entered it and are not visible here");
  else if (unseen > 0 && any.communicator == profiles::kWorldIdentity)
    details.push_back(std::to_string(unseen) + " ranks that are not visible here");
  for (std::size_t i = 0; i < details.size(); ++i) text += (i == 0 ? ", for " : "; and for ") + details[i];
  out.push_back(text + ".");
}

std::int64_t Hang::age(const LiveRank& r) {
  return r.since > 0 ? std::max<std::int64_t>(0, r.looked - r.since) : r.watched;
}

std::string Hang::operation(const LiveRank& r) {
  return r.op < core::kCollectives ? std::string(core::kCollectiveNames[static_cast<std::size_t>(r.op)])
                                   : "a collective";
}

std::string Hang::communicator(const LiveRank& r) {
  if (r.communicator == profiles::kWorldIdentity) return "MPI_COMM_WORLD";
  char text[64];
  if (r.communicator == 0) std::snprintf(text, sizeof text, "a communicator of %d ranks", r.comm_size);
  else
    std::snprintf(text, sizeof text, "communicator %08llx of %d ranks",
                  static_cast<unsigned long long>(r.communicator & 0xffffffff), r.comm_size);
  return text;
}

std::string Hang::state(const LiveRank& r) {
  switch (r.state) {
    case 'R':
      return "running";
    case 'S':
    case 'D':
    case 'I':
      return "asleep";
    case 'T':
    case 't':
      return "stopped";
    case 'X':
      return "gone";
    default:
      return "?";
  }
}

std::string Hang::site(const LiveRank& r) const {
  const auto found = places_.find(r.site);
  return found == places_.end() ? "an unknown place" : analysis::place(frame_of(found->second));
}

std::string Hang::call_text(const LiveRank& r) const {
  std::string out = operation(r);
  if (r.root >= 0) out += " to or from root " + std::to_string(r.root);
  if (r.bytes > 0) out += " of " + human_bytes(static_cast<double>(r.bytes));
  return out + " at " + site(r);
}

std::string Hang::where(const LiveRank& r) const {
  if (r.comm_size == 0)
    return r.inside == profiles::LiveLine::kFinalizing ? "in MPI_Finalize" : "before its first collective";
  const std::string call = call_text(r) + ", call " + std::to_string(r.n) + " on " + communicator(r);
  if (r.inside == profiles::LiveLine::kFinalizing) return "in MPI_Finalize for " + duration(age(r)) + ", after " + call;
  if (r.inside == 1) return "in " + call + ", for " + duration(age(r));
  const std::string message =
      r.message != 0 ? "in a message, completion or one-sided call for " + duration(r.looked - r.message) + ", " : "";
  return message + "outside collectives for " + duration(age(r)) + ", after " + call;
}

/// A verb phrase about a rank that is missing in a call.
std::string Hang::doing(const LiveRank& r) const {
  if (r.state == 'X') return "is gone, " + where(r);
  if (r.stale) return "was last seen " + human_time(1e9 * r.copy_age_s) + " ago, " + where(r);
  std::string out = r.state == 'T' || r.state == 't' ? "is stopped, " : r.state == 'R' ? "runs, " : "is asleep, ";
  return (out == "runs, " && r.message == 0 && r.inside == 0 ? "computes, " : out) + where(r);
}

/// The ranks that a call waits for: members of its communicator that are visible and elsewhere.
std::vector<const LiveRank*> Hang::absent(const LiveRank& call, const std::vector<const LiveRank*>& members) const {
  std::vector<const LiveRank*> out;
  for (const LiveRank& r : ranks_) {
    const bool there = std::find(members.begin(), members.end(), &r) != members.end();
    // Of other communicators than MPI_COMM_WORLD only those are known that were there last.
    const bool member = call.communicator == profiles::kWorldIdentity || call.comm_size == call.ranks ||
                        (r.communicator == call.communicator && call.communicator != 0);
    if (!there && member) out.push_back(&r);
  }
  return out;
}

}  // namespace latecomer::cli
