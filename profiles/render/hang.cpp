// SPDX-License-Identifier: BSD-3-Clause
// Compares the ranks' calls by communicator and call number, and writes the sentences.
#include "profiles/render/hang.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "core/collective/collective.hpp"
#include "profiles/base/text.hpp"
#include "profiles/format/decisions.hpp"
#include "profiles/format/last_state.hpp"
#include "profiles/record/live.hpp"
#include "profiles/record/timed_site.hpp"

namespace latecomer::profiles {
namespace {

/// " for 1.2 s", or "" for a time that is not known.
std::string lasting(Hang::Age age) {
  if (age.ns < 0) return "";
  return (age.at_least ? " for at least " : " for ") + human_time(static_cast<double>(age.ns));
}

/// The time since that moment, or else since the first look at the rank where it stands.
Hang::Age age_since(const LiveRank& r, std::int64_t since) {
  if (r.looked == 0) return {};  // since it was there, the process has ended
  if (since > 0) return {std::max<std::int64_t>(0, r.looked - since)};
  return r.watched > 0 ? Hang::Age{r.watched, true} : Hang::Age{};
}

/// The time that the process has been in a message.
Hang::Age message_age(const LiveRank& r) { return r.message == 0 ? Hang::Age{} : age_since(r, r.message); }

/// Missing ranks that a sentence describes. Derived: eight take about ten lines of a terminal.
constexpr std::size_t kNamed = 8;
/// Lines of a table that nobody asked for in full. Derived: about two screens.
constexpr std::size_t kMostLines = 64;

}  // namespace

Hang::Hang(LiveState state) : state_(std::move(state)) {
  for (const LiveRank& r : state_.ranks) several_hosts_ = several_hosts_ || r.host != state_.ranks.front().host;
}

std::vector<Hang::Finding> Hang::findings() const {
  std::vector<Finding> out;
  // The files of a job that was killed show its last state.
  const auto gone = std::ranges::count_if(state_.ranks, [](const LiveRank& r) { return r.state == 'X'; });
  if (gone == static_cast<long>(state_.ranks.size()))
    out.push_back(
        {"The job is over: all " + std::to_string(gone) + " visible processes have ended. Their last state follows."});
  std::vector<int> more;
  for (const LiveRank& r : state_.ranks) {
    if (r.state != 'X' || gone == static_cast<long>(state_.ranks.size())) continue;
    if (out.size() == kNamed) more.push_back(r.rank);
    else
      out.push_back({"Rank " + std::to_string(r.rank) + " is gone: process " + std::to_string(r.pid) +
                     (several_hosts_ ? " on " + r.host : "") + " has ended. It was " + where(r) + "."});
  }
  if (!more.empty()) {
    const bool one = more.size() == 1;
    out.push_back({(one ? "Rank " : "Ranks ") + numbers_text(more) + (one ? " is" : " are") + " gone, too."});
  }
  // Calls of one communicator with equal numbers must be alike.
  // Communicators without an identity yet are told apart by their size and the place of the call.
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, int>, std::vector<const LiveRank*>> calls;
  const auto key_of = [](const LiveRank& r) {
    return std::tuple(r.communicator, r.n, r.communicator == 0 ? r.site : 0, r.communicator == 0 ? r.comm_size : 0);
  };
  for (const LiveRank& r : state_.ranks)
    if (r.inside == 1 && is_judged(r)) calls[key_of(r)].push_back(&r);
  // A rank that came a moment ago is not missing there.
  for (const LiveRank& r : state_.ranks)
    if (r.inside == 1 && !is_judged(r) && !r.stale)
      if (const auto same = calls.find(key_of(r)); same != calls.end()) same->second.push_back(&r);
  for (const auto& [key, members] : calls) judge_call(members, out);
  if (!out.empty()) return out;
  std::vector<int> stuck;
  Age longest;
  std::string details;
  for (const LiveRank& r : state_.ranks)
    if (r.message != 0 && r.inside != 1 && is_judged(r)) {
      stuck.push_back(r.rank);
      longest = std::max(longest, message_age(r));
      if (r.message_call >= 0 && stuck.size() <= kNamed)
        details += (details.empty() ? ": rank " : "; rank ") + std::to_string(r.rank) + " " + message(r);
    }
  if (!stuck.empty())
    out.push_back({(stuck.size() == 1 ? "Rank " : "Ranks ") + numbers_text(stuck) +
                   (stuck.size() == 1 ? " waits" : " wait") + " inside an MPI call that is no collective" +
                   lasting(longest) + details + "."});
  return out;
}

std::vector<std::string> Hang::sentences() const {
  std::vector<std::string> out;
  for (Finding& one : findings()) out.push_back(std::move(one.sentence));
  return out;
}

void Hang::judge_call(const std::vector<const LiveRank*>& members, std::vector<Finding>& out) const {
  const LiveRank& any = *members.front();
  std::map<std::string, std::vector<int>> kinds;
  Age longest;
  for (const LiveRank* r : members) {
    kinds[call_text(*r)].push_back(r->rank);
    longest = std::max(longest, age(*r));
  }
  std::string waiting;
  for (auto& [kind, of] : kinds) {
    std::ranges::sort(of);
    const bool one = of.size() == 1;
    waiting += (waiting.empty() ? one ? "Rank " : "Ranks "
                : one           ? ", rank "
                                : ", ranks ") +
               numbers_text(of) + (one ? " waits in " : " wait in ") + kind;
  }
  const std::string number = "call " + std::to_string(any.n) + " on " + communicator(any);
  std::size_t made = members.size();
  // MPI may let a rank leave a call in which the others wait, even if the rank made another call.
  const auto left = [&](const LiveRank& r) {
    return r.inside != 1 && !r.stale && any.communicator != 0 && r.communicator == any.communicator && r.n == any.n;
  };
  const auto differs = [&](const LiveRank& r) { return r.op != any.op || r.root != any.root || r.bytes != any.bytes; };
  bool different = std::ranges::any_of(members, [&](const LiveRank* r) { return differs(*r); });
  if (std::ranges::any_of(state_.ranks,
                          [&](const LiveRank& r) { return left(r) && (r.op != any.op || r.root != any.root); })) {
    different = true;
    for (const LiveRank& r : state_.ranks)
      if (left(r)) {
        kinds[call_text(r)].push_back(r.rank);
        ++made;
      }
  }
  if (any.communicator != 0 && different) {
    std::string text = "The program makes different calls as " + number + ": ";
    bool first = true;
    for (auto& [kind, of] : kinds) std::ranges::sort(of);
    for (const auto& [kind, of] : kinds) {
      text += (first ? "" : ", ") + ranks_named(of) + " " + kind;
      first = false;
    }
    out.push_back({text + ".", true});
    if (static_cast<int>(made) >= any.comm_size) return;
  }
  if (static_cast<int>(members.size()) >= any.comm_size) {
    out.push_back({"All " + std::to_string(members.size()) + " ranks of " + communicator(any) + " are in " +
                   kinds.begin()->first + " (" + number + ")" + lasting(longest) + ", so no rank is missing there."});
    return;
  }
  std::string text = waiting + " (" + number + ")" + lasting(longest);
  const auto missing = absent(any, members);
  std::vector<std::string> details;
  for (const LiveRank* r : missing)
    if (details.size() < kNamed)
      details.push_back("rank " + std::to_string(r->rank) + (several_hosts_ ? " on " + r->host : "") + ", which " +
                        doing(*r));
  if (missing.size() > kNamed) details.push_back(std::to_string(missing.size() - kNamed) + " more");
  if (const int unseen = any.comm_size - static_cast<int>(members.size() + missing.size()); missing.empty())
    details.push_back(std::to_string(unseen) + " members that have not entered it and are not visible here");
  else if (unseen > 0 && any.communicator == kWorldIdentity)
    details.push_back(std::to_string(unseen) + " ranks that are not visible here");
  for (std::size_t i = 0; i < details.size(); ++i) text += (i == 0 ? ", for " : "; and for ") + details[i];
  out.push_back({text + "."});
}

/// Whether the rank stands still. Of a job that has ended, there may be one look only. Its ranks were killed one after
/// the other, so their last places are not those at which they stood still.
bool Hang::is_judged(const LiveRank& r) const {
  return !r.moves && !r.stale && (!state_.ended || r.watched >= analysis::kStandsStill_ns);
}

Hang::Age Hang::age(const LiveRank& r) { return age_since(r, r.since); }

std::string Hang::operation(const LiveRank& r) {
  return r.op < core::kCollectives ? std::string(core::kCollectiveNames[static_cast<std::size_t>(r.op)])
                                   : "a collective";
}

std::string Hang::communicator(const LiveRank& r) {
  if (r.communicator == kWorldIdentity) return "MPI_COMM_WORLD";
  char text[64];
  if (r.communicator == 0) std::snprintf(text, sizeof text, "a communicator of %d ranks", r.comm_size);
  else
    std::snprintf(text, sizeof text, "communicator %08llx of %d ranks",
                  static_cast<unsigned long long>(r.communicator & 0xffffffff), r.comm_size);
  return text;
}

std::string Hang::state(const LiveRank& r) { return std::string(process_state_name(r.state)); }

std::string Hang::place_of(std::uint64_t site) const {
  const auto found = state_.places.find(site);
  return found == state_.places.end() ? "an unknown place" : analysis::place_of(found->second);
}

std::string Hang::site(const LiveRank& r) const { return place_of(r.site); }

std::string Hang::message(const LiveRank& r) const {
  if (r.message_call < 0 || r.message_call >= static_cast<int>(std::size(kMpiCalls)))
    return "in an MPI call that is no collective";
  std::string out = "in " + std::string(kMpiCalls[r.message_call].name) + " at " + place_of(r.message_site);
  if (r.message_peer >= 0) out += " with rank " + std::to_string(r.message_peer);
  if (r.message_peer == LiveMessage::kAnyRank) out += " from any rank";
  const bool named = r.message_peer >= 0 || r.message_peer == LiveMessage::kAnyRank;
  if (r.message_tag >= 0) out += (named ? " and tag " : " with tag ") + std::to_string(r.message_tag);
  return out;
}

std::string Hang::call_text(const LiveRank& r) const {
  std::string out = operation(r);
  if (r.root >= 0) out += " to or from root " + std::to_string(r.root);
  if (r.bytes > 0) out += " of " + human_bytes(static_cast<double>(r.bytes));
  return out + " at " + site(r);
}

std::string Hang::where(const LiveRank& r) const {
  if (r.comm_size == 0) return r.inside == LiveLine::kFinalizing ? "in MPI_Finalize" : "before its first collective";
  const std::string call = call_text(r) + ", call " + std::to_string(r.n) + " on " + communicator(r);
  if (r.inside == LiveLine::kFinalizing) return "in MPI_Finalize" + lasting(age(r)) + ", after " + call;
  if (r.inside == 1) return "in " + call + (age(r).ns < 0 ? "" : "," + lasting(age(r)));
  return (r.message != 0 ? message(r) + lasting(message_age(r)) + ", " : "") + "outside collectives" + lasting(age(r)) +
         ", after " + call;
}

/// A verb phrase about a rank that is missing in a call.
std::string Hang::doing(const LiveRank& r) const {
  if (r.state == 'X') return "is gone, " + where(r);
  if (r.stale) return "was last seen " + human_time(1e9 * r.copy_age_s) + " ago, " + where(r);
  const std::string now = state(r);
  if (now == "?") return "is " + where(r);
  const bool computes = now == "running" && r.message == 0 && r.inside == 0;
  return (computes ? "computes" : now == "running" ? "runs" : "is " + now) + ", " + where(r);
}

/// The ranks that a call waits for: members of its communicator that are visible and elsewhere.
std::vector<const LiveRank*> Hang::absent(const LiveRank& call, const std::vector<const LiveRank*>& members) const {
  std::vector<const LiveRank*> out;
  for (const LiveRank& r : state_.ranks) {
    const bool there = std::ranges::find(members, &r) != members.end();
    // Of other communicators than MPI_COMM_WORLD only those are known that were there last.
    const bool member = call.communicator == kWorldIdentity || call.comm_size == call.ranks ||
                        (r.communicator == call.communicator && call.communicator != 0);
    if (!there && member) out.push_back(&r);
  }
  return out;
}

/// The last column of a table.
std::string Hang::place(const LiveRank& r) const {
  return where(r) + (r.stale ? " (an old state)" : r.moves ? " (moves)" : "");
}

/// Ranks that are at the same place differ by the time since when.
std::string Hang::table_of_groups() const {
  std::map<std::string, std::vector<const LiveRank*>> groups;
  for (const LiveRank& r : ranks()) {
    LiveRank timeless = r;
    timeless.looked = 0;
    groups[state(r) + " " + place(timeless)].push_back(&r);
  }
  std::vector<const std::vector<const LiveRank*>*> order;
  order.reserve(groups.size());
  for (const auto& [key, members] : groups) order.push_back(&members);
  std::ranges::stable_sort(order, {}, [](const auto* members) { return members->size(); });
  std::string out = "   ranks  state    where, the longest time, and which ranks\n";
  std::size_t rows = 0;
  std::vector<int> rest;
  for (const auto* members : order) {
    std::vector<int> of;
    for (const LiveRank* r : *members) of.push_back(r->rank);
    if (rows++ >= kMostLines) {
      rest.insert(rest.end(), of.begin(), of.end());
      continue;
    }
    const LiveRank& r = **std::ranges::max_element(*members, {}, [](const LiveRank* one) { return age(*one); });
    char text[64];
    std::snprintf(text, sizeof text, "%8zu  %-8s ", of.size(), state(r).c_str());
    out += text + place(r) + ": " + ranks_named(of) +
           (of.size() > 1 ? "" : ", process " + std::to_string(r.pid) + (several_hosts_ ? " on " + r.host : "")) + "\n";
  }
  if (!rest.empty()) {
    std::ranges::sort(rest);
    out += "and in " + std::to_string(order.size() - kMostLines) + " further lines " + ranks_named(rest) + "\n";
  }
  return out;
}

std::string Hang::table(bool each) const {
  if (!each && ranks().size() > kMostLines) return table_of_groups();
  std::size_t wide = 0;
  if (several_hosts_)
    for (const LiveRank& r : ranks()) wide = std::max(wide, r.host.size() + 2);
  const int host = static_cast<int>(wide);
  char text[1024];
  std::snprintf(text, sizeof text, "%6s  %-*s%7s %-8s %s\n", "rank", host, host ? "host" : "", "process", "state",
                "where");
  std::string out = text;
  for (const LiveRank& r : ranks()) {
    std::snprintf(text, sizeof text, "%6d  %-*s%7d %-8s ", r.rank, host, host ? r.host.c_str() : "", r.pid,
                  state(r).c_str());
    out += text + place(r) + "\n";
  }
  return out;
}

}  // namespace latecomer::profiles
