// SPDX-License-Identifier: BSD-3-Clause
// Merges contributions and writes the profile file.
#include "profiles/format/profile.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/algorithms/algorithm.hpp"
#include "core/base/text.hpp"
#include "core/select/planning.hpp"
#include "profiles/base/descriptor.hpp"
#include "profiles/base/json.hpp"
#include "profiles/format/callers.hpp"
#include "profiles/format/code.hpp"
#include "profiles/format/message_kinds.hpp"
#include "profiles/format/profile_keys.hpp"
#include "profiles/format/sections.hpp"
#include "profiles/record/job_size.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

/// Matches the logs that no leader matched during the job. Returns the number of records without a partner on every
/// rank.
std::uint64_t match_logs(const Contribution& all, Nanoseconds tie_ns, const core::Network* network, SiteBook& book) {
  struct MatchedCall {
    std::vector<const CallRecord*> records;  // [comm_size]; nullptr: no record of that rank
    std::vector<char> counted;               // [comm_size]
  };
  struct CommunicatorCalls {
    std::map<std::uint64_t, MatchedCall> by_number;
    std::vector<Rank> world;
    std::uint64_t counted = 0;  ///< the leader has counted the calls before this number
  };
  std::map<std::pair<std::uint64_t, std::int32_t>, CommunicatorCalls> communicators;
  for (const auto& log : all.logs) {
    if (log.communicator == 0 || log.comm_size < 1 || !is_rank_of(log.comm_rank, log.comm_size) ||
        !is_rank_of(log.world_rank, all.job.ranks))
      continue;
    const auto size = static_cast<std::size_t>(log.comm_size);
    CommunicatorCalls& calls = communicators[{log.communicator, log.comm_size}];
    calls.world.resize(size);
    calls.world[static_cast<std::size_t>(log.comm_rank)] = log.world_rank;
    if (log.comm_rank == 0 && log.records.empty()) calls.counted = std::max(calls.counted, log.first);
    for (std::size_t i = 0; i < log.records.size(); ++i) {
      MatchedCall& row = calls.by_number[log.first + i];
      row.records.resize(size);
      row.counted.resize(size);
      row.records[static_cast<std::size_t>(log.comm_rank)] = &log.records[i];
      row.counted[static_cast<std::size_t>(log.comm_rank)] = log.counted;
    }
  }
  std::uint64_t unmatched = 0;
  for (const auto& [key, calls] : communicators)
    for (const auto& [n, row] : calls.by_number) {
      if (n < calls.counted) continue;
      const auto& records = row.records;
      const bool whole = std::ranges::all_of(records, [&](const CallRecord* r) {
        return r && records[0] && r->op == records[0]->op && r->root == records[0]->root;
      });
      if (whole) book.add(records, calls.world, tie_ns, network, row.counted);
      else
        unmatched += static_cast<std::uint64_t>(std::ranges::count_if(records, [](auto* r) { return r != nullptr; }));
    }
  return unmatched;
}

/// Of the samples of all ranks: calls `stretch` in a row are kept, of `stride` stretches one.
struct Sampled {
  std::uint64_t stretch = 0;  ///< 0: there is no sample
  std::uint64_t stride = 1, counted = 0;
  std::vector<std::uint64_t> numbers;  ///< of the calls that all ranks have, in the order of the record
};

/// Records the calls that are in the sample of every rank.
Sampled match_samples(const Merged& all, SiteBook& book) {
  Sampled out;
  const auto ranks = static_cast<std::size_t>(all.sum.job.ranks);
  if (all.members.size() < ranks || all.sizes_differ) return {};
  for (const Member& part : all.members) {
    if (!part.sample.begun() || (out.stretch != 0 && part.sample.stretch() != out.stretch)) return {};
    out.stretch = part.sample.stretch();
    // Ranks that hold more calls, because some were never in their samples, keep stretches that others have dropped.
    out.stride = std::max(out.stride, part.sample.stride());
    out.counted = std::max(out.counted, part.sample.counted);
  }
  std::vector<Rank> world(ranks);
  std::iota(world.begin(), world.end(), 0);
  std::map<std::uint64_t, std::vector<const CallRecord*>> calls;  // [ranks]
  for (const Member& part : all.members)
    for (const SampledCall& call : part.sample.calls()) {
      if (call.number / out.stretch % out.stride != 0) continue;
      auto& row = calls[call.number];
      row.resize(ranks);
      row[static_cast<std::size_t>(part.rank)] = &call.record;
    }
  // Record all calls, up to 100,000 ranks: the record must not thin them by its own rule.
  const std::size_t most = ArrivalRecord::kMostBytes / 2 / (2 * sizeof(Nanoseconds) * ranks);
  for (const auto& [number, records] : calls) {
    if (out.numbers.size() >= most) break;
    const bool whole = std::ranges::all_of(records, [&records = records](const CallRecord* r) {
      return r && r->op == records[0]->op && r->root == records[0]->root;
    });
    if (!whole) continue;
    book.record(records, world);
    out.numbers.push_back(number);
  }
  return out;
}

/// The value of `job.network_from`.
std::optional<std::string> source_of(NetworkFrom from) {
  constexpr const char* kSources[] = {"", "policy", "start", "end"};
  return from == NetworkFrom::none ? std::nullopt : std::optional<std::string>(kSources[static_cast<int>(from)]);
}

std::string algorithm_name(std::uint8_t index) {
  if (index == 0) return "native";
  const auto all = core::catalogue();
  return index <= all.size() ? std::string(all[index - 1].name) : "unknown";
}

/// Kinds of calls with divergent sites. A site of such a kind may have no patterns of its own because its calls are
/// credited to another site. Do not count those calls twice.
std::set<std::pair<core::Collective, std::int32_t>> divergent_kinds(const SiteBook& book) {
  std::set<std::pair<core::Collective, std::int32_t>> out;
  for (const auto& [key, site] : book.sites())
    if (site.divergent_calls > 0) out.insert({key.op, key.comm_size});
  return out;
}

constexpr std::string_view kJobBegin = "\"job\": {";  // the second line

/// The data of one site in the profile.
struct SiteRow {
  SiteKey key;
  const LocalSite* own;
  const PatternSite* pattern;  ///< nullptr: no call with records of all ranks
  std::uint64_t calls;
  std::uint64_t rested = 0;
};

class ProfileWriter {
 public:
  ProfileWriter(Merged& all, const Sink& sink, const NameFrames& name, const std::string& last_state)
      : all_(all), sink_(sink), name_(name), last_state_(last_state) {}

  /// Returns the lines of never_ran().
  std::vector<std::string> write() {
    const JobInfo& job = all_.sum.job;
    if (all_.reach) all_.sum.job.wall_time_s = all_.reach->last_end;
    network_ = job.network_from != NetworkFrom::none ? &job.network : nullptr;
    per_row_ = ranks_per_row(job.ranks);
    book_ = std::move(all_.sum.patterns);
    book_.job_of(job.ranks);
    if (job.record_arrivals) book_.record_arrivals();
    collect();
    if (name_) name_frames();
    join_callers();
    std::vector<SiteRow> rows = choose();
    std::vector<std::string> never = never_ran(rows);
    for (const std::string& line : never) warnings_.push_back(line);
    note_unplanned(never);
    const Json head = kJobKeys.json(JobRow{
        .info = all_.sum.job,
        .network = network_ ? Json::parse(core::network_text(*network_)) : Json(nullptr),
        .network_from = source_of(job.network_from),
        .hosts = {hosts_.begin(), hosts_.end()},
        .unfinished = static_cast<int>(std::ranges::count(all_.members, false, &Member::finished)),
        .snapshots = all_.reach ? kReachKeys.json(*all_.reach) : Json(nullptr),
        .promised = job.promised.given ? kPromisedKeys.json(job.promised) : Json(nullptr),
        .history = job.history.file.empty() ? Json(nullptr) : kHistoryKeys.json(job.history),
        .edges = edges_ == 0 ? Json(nullptr) : kEdgeKeys.json(EdgeSums{edges_, edge_sum_}),
        .first_call = book_.first_call.arrival == INT64_MAX ? Json(nullptr) : kFirstCallKeys.json(book_.first_call)});
    put(first_line(core::hex16(all_.sum.job_key)));
    put(kJobBegin);
    put(json_text(head, 1).substr(1) + ",\n\"clock\": [");
    for (std::size_t i = 0; i < all_.members.size(); ++i) {
      put(std::string(i ? "," : "") + "\n" + json_text(kClockKeys.json(all_.members[i])));
    }
    put("],\n\"processes\": [");
    const std::optional<Nanoseconds> last_end = last_to_end();
    for (std::size_t i = 0; i < all_.members.size(); ++i) {
      const Member& p = all_.members[i];
      Json process = kProcessKeys.json(p.process);
      ProcessOfRank run{.member = p, .covered = {}, .end = {}};
      if (all_.reach) run.covered = 1e9 * all_.reach->covered.at(p.rank);
      if (last_end) run.end = *last_end - p.process.ended;
      kRunKeys.write(process, run);
      add_peers(process, p.process.peers, 1);
      add_threads(process, p.process);
      add_sampling(process, p.process.sampling);
      put(std::string(i ? "," : "") + "\n" + json_text(process));
    }
    put("]," + hosts_text() + "\n\"not_counted\": " + json_text(not_counted_json()) +
        ",\n\"cost\": " + json_text(cost_json()) + ",\n\"rank_sums\": [");
    write_sums();
    put("],\n\"sites\": [");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      put(i ? ",\n" : "\n");
      write_site(rows[i]);
    }
    put("],\n\"timed_sites\": [");
    write_timed_sites(false);
    put("],\n\"thread_sites\": [");
    write_timed_sites(true);
    put("],\n\"code\": " + json_text(code_json(all_, per_row_), 1));
    put(",\n\"pairs\": ");
    write_pairs();
    put(",\n\"communicators\": [");
    write_groups();
    put("]");
    if (job.record_arrivals || !sampled_.numbers.empty()) {
      put(",\n\"arrivals\": ");
      write_arrivals();
    }
    if (!last_state_.empty()) put(",\n\"last_state\": " + last_state_);
    if (!all_.sum.learned.empty()) put(",\n\"learned\": " + all_.sum.learned);
    put(",\n\"plans\": " + json_text(plans_) + ",\n\"warnings\": " + json_text(warnings_, 1) + ",");
    put(kRowsBegin);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      put(i ? ",\n[" : "\n[");
      write_rows(rows[i]);
      put("]");
    }
    put(kRowsEnd);
    return never;
  }

 private:
  /// One line for each algorithm that a rule names and that served no call, although the job has calls of its
  /// operation. The line gives the number of calls and the reason.
  std::vector<std::string> never_ran(const std::vector<SiteRow>& rows) const {
    std::vector<std::string> out;
    std::set<std::int32_t> done;
    const auto& rules = all_.sum.job.forced;
    for (const ForcedRule& rule : rules) {
      if (rule.algorithm < 0 || rule.algorithm >= static_cast<std::int32_t>(core::catalogue().size()) ||
          !done.insert(rule.algorithm).second)
        continue;
      const core::Algorithm& algorithm = core::algorithm_at(rule.algorithm);
      std::uint64_t calls = 0, ran = 0, meant = 0, most = 0;
      bool too_late = false;
      std::string reason;
      for (const SiteRow& row : rows) {
        if (row.key.op != algorithm.op || row.key.comm_size < 2) continue;
        calls += row.calls;
        if (row.pattern)
          if (const auto found = row.pattern->dispatch.find(static_cast<std::uint8_t>(rule.algorithm + 1));
              found != row.pattern->dispatch.end())
            ran += found->second.calls;
        const bool meets = std::ranges::any_of(rules, [&](const ForcedRule& r) {
          const core::Range seen{row.own->sized ? static_cast<double>(row.own->bytes_min) : 0,
                                 row.own->sized ? static_cast<double>(row.own->bytes_max) : 0};
          return r.algorithm == rule.algorithm && r.comm_size.contains(row.key.comm_size) &&
                 (r.bytes.all() || (!core::is_irregular(algorithm.op) && row.own->sized && r.bytes.min <= seen.max &&
                                    r.bytes.max >= seen.min));
        });
        if (!meets) continue;
        meant += row.calls;
        const auto decided = decisions_.find(row.key.id());
        if (decided == decisions_.end()) continue;
        for (const Json& one : decided->second)
          if (const std::uint64_t n = one["calls"];
              n >= most && one["rule_line"].is_number() && one["rule_line"] == rule.line) {
            most = n;
            too_late = one["algorithm"].get<std::string>() == algorithm.name;
            reason = too_late ? "" : one["reason"].get<std::string>();
          }
      }
      if (ran > 0 || calls == 0) continue;
      if (meant == 0) reason = "no call matches the communicator size and bytes of the rule";
      if (const auto found = unplanned_.find(rule.algorithm); reason.empty() && found != unplanned_.end())
        reason = unplanned_text(found->second);
      if (reason.empty() && too_late) reason = "decided, but the run ended before the plan came into force";
      if (reason.empty() && algorithm.needs_sizes)
        reason =
            "it needs the sizes of all blocks, and no plan announced them: a plan needs 32 blocking calls on a "
            "communicator, some of which depend on all ranks";
      if (reason.empty())
        reason =
            "no plan names it, or the calls cannot be served (operator, datatype, no payload, `reproducible`, or an "
            "earlier rule)";
      out.push_back(std::string(core::name_of(algorithm.op)) + " " + std::string(algorithm.name) + ": 0 of " +
                    core::grouped(calls) + " calls: " + reason);
    }
    return out;
  }

  static std::string unplanned_text(const Unplanned& u) {
    const std::string_view instead = u.instead < 0 ? std::string_view("native") : core::algorithm_at(u.instead).name;
    std::string out(instead);
    out.append(" ran instead, because a plan of ")
        .append(core::grouped(u.messages))
        .append(" messages is too large to make inside a call (limit ")
        .append(core::grouped(core::kPlannedInside));
    return out.append("); a learnt plan may have up to ")
        .append(core::grouped(core::kPlannedAhead))
        .append(" messages");
  }

  /// One warning for each algorithm that a rule names and that served only some of the calls that the rule matches.
  void note_unplanned(const std::vector<std::string>& never) {
    for (const auto& [index, u] : unplanned_) {
      if (index < 0 || index >= static_cast<std::int32_t>(core::catalogue().size()) ||
          u.instead >= static_cast<std::int32_t>(core::catalogue().size()))
        continue;
      const core::Algorithm& algorithm = core::algorithm_at(index);
      std::string name(core::name_of(algorithm.op));
      name.append(" ").append(algorithm.name).append(": ");
      if (std::ranges::any_of(never, [&](const std::string& line) { return line.starts_with(name); })) continue;
      warnings_.push_back(
          name.append("in ").append(core::grouped(u.calls)).append(" calls ").append(unplanned_text(u)));
    }
  }

  void put(std::string_view text) { sink_(text); }
  /// Passes a long text on, so that texts take little memory.
  void put_if_long(std::string& text) {
    if (text.size() <= 1 << 16) return;
    put(text);
    text.clear();
  }

  void name_frames() {
    std::vector<Frame*> all;
    for (const auto& [site, frames] : frames_) all.insert(all.end(), frames.begin(), frames.end());
    name_(all);
  }

  void collect() {
    Nanoseconds tie = 0;
    std::set<std::string> domains;
    bool compared = true;
    std::vector<Rank> unfinished;
    for (const Member& p : all_.members) {
      tie = std::max(tie, p.clock_uncertainty);
      compared = compared && p.clock_uncertainty >= 0;
      domains.insert(p.clock_domain);
      hosts_.insert(p.host);
      if (!p.finished) unfinished.push_back(p.rank);
    }
    for (const auto& e : all_.sum.local.entries()) local_[e.key].merge(e.site);
    before_ = std::move(all_.before);
    for (Frame& f : all_.sum.frames) frames_[{f.site, f.callers}].push_back(&f);
    for (auto* texts : {&all_.warnings, &all_.plans, &all_.decisions})
      std::ranges::stable_sort(*texts, {}, &Said::rank);
    for (const auto& [rank, text] : all_.warnings) warnings_.push_back("rank " + std::to_string(rank) + ": " + text);
    note_dropped();
    for (const Said& said : all_.decisions) {
      auto read = parse_json(said.text);
      if (!read || !read->is_object()) continue;
      Json& decision = *read;
      const std::string site = decision["site"];
      decision.erase("site");
      decision.erase("op");
      decisions_[site].push_back(std::move(decision));
    }
    for (const Said& said : all_.plans)
      if (auto plan = parse_json(said.text)) plans_.push_back(std::move(*plan));
    edges_ = all_.sum.edges;
    edge_sum_ = all_.sum.edge_sum;
    for (const Unplanned& u : all_.sum.unplanned) unplanned_[u.algorithm] = u;
    const bool one_clock = domains.size() <= 1 || compared;
    if (one_clock) sampled_ = match_samples(all_, book_);
    if (!one_clock)
      warnings_.push_back("arrivals on different hosts are not compared: their clocks were never compared");
    else if (const std::uint64_t unmatched = match_logs(all_.sum, 2 * tie, network_, book_); unmatched > 0)
      warnings_.push_back(std::to_string(unmatched) +
                          " call records have no partner on every rank of their communicator");
    const int ranks = all_.sum.job.ranks;
    if (all_.members.size() < static_cast<std::size_t>(ranks))
      warnings_.push_back("this profile holds " + std::to_string(all_.members.size()) + " of " + std::to_string(ranks) +
                          " ranks: it lacks " + lacking(ranks));
    if (all_.reach)
      for (const auto& [rank, after] : all_.reach->aborted)
        warnings_.push_back("rank " + std::to_string(rank) + " called MPI_Abort after " + seconds_text(after) +
                            ": its calls since its last snapshot, after " + seconds_text(all_.reach->own_end.at(rank)) +
                            ", are lost");
    if (!unfinished.empty())
      warnings_.push_back("recovered: " + std::to_string(unfinished.size()) +
                          " ranks did not finish, the first of them rank " + std::to_string(unfinished.front()) +
                          "; the profile holds only what they wrote before the end" +
                          (all_.reach ? ": their snapshots end " + seconds_text(all_.reach->first_end) + " to " +
                                            seconds_text(all_.reach->last_end) + " after the start of MPI"
                                      : "") +
                          ", so counts and sums are at least those shown");
    if (per_row_ > 1)
      warnings_.push_back("the rows of sites are grouped by " + std::to_string(per_row_) +
                          " ranks: the job has more than " + std::to_string(kMostRows) +
                          "; `rank_sums` is of single ranks");
  }

  /// The ranks of the job that have no part, as text.
  std::string lacking(int ranks) const {
    std::vector<Rank> out;
    auto next = all_.members.begin();
    for (Rank r = 0; r < ranks; ++r) {
      while (next != all_.members.end() && next->rank < r) ++next;
      if (next == all_.members.end() || next->rank != r) out.push_back(r);
    }
    const std::string text = out.size() == 1 ? "rank " : "ranks ";
    return text + ranks_text(std::move(out));
  }

  /// Notes the data that merging has left out.
  void note_dropped() {
    const auto note = [&](std::uint64_t count, const char* what) {
      if (count > 0) warnings_.push_back(core::grouped(count) + " " + what + " are left out: the profile has too many");
    };
    note(all_.warnings_dropped, "warnings");
    note(all_.texts_dropped, "decisions and plans");
    note(all_.records_dropped, "call records that no leader has matched");
  }

  /// Writes the callers of each site, and adds them up in the site.
  void join_callers() {
    using Parts = std::map<std::uint32_t, Caller>;  // by SiteKey::callers
    std::map<SiteKey, Parts> split;
    std::set<SiteKey> divergent;  // calls are counted at several callers
    for (const auto& [key, own] : local_)
      if (key.callers != 0) split[key.site_only()];
    for (auto& [site, parts] : split) {
      SiteKey key = site;
      for (auto at = local_.lower_bound(site); at != local_.end() && at->first.site_only() == site; ++at)
        parts[at->first.callers].own = at->second;
      for (auto at = book_.sites().lower_bound(site); at != book_.sites().end() && at->first.site_only() == site;
           ++at) {
        parts[at->first.callers].pattern = &at->second;
        if (at->second.other_callers > 0) divergent.insert(site);
      }
      std::vector<Caller> callers;
      for (auto& [hash, part] : parts) {
        key.callers = hash;
        if (const auto found = frames_.find({site.site, hash}); hash != 0 && found != frames_.end())
          part.frames = &found->second;
        if (const auto found = before_.find(key); found != before_.end()) part.before = found->second;
        const std::uint64_t inside = divergent.count(site) ? part.own.owned : part.own.calls_inside(site.comm_size);
        part.calls = std::max(part.pattern ? part.pattern->calls_seen(inside > 0) : 0, inside);
        part.calls += part.own.calls_outside(site.comm_size);
        if (part.calls > 0) callers.push_back(std::move(part));
      }
      callers_[site] = callers_json(std::move(callers), per_row_);
    }
    auto patterns = book_.release();
    while (!patterns.empty()) {
      auto node = patterns.extract(patterns.begin());
      book_.merge(node.key().site_only(), node.mapped());
    }
    for (auto at = local_.begin(); at != local_.end();) {
      if (at->first.callers == 0) {
        ++at;
        continue;
      }
      const SiteKey site = at->first.site_only();
      local_[site].merge(at->second);
      for (const auto& [row, intervals] : before_[at->first]) before_[site][row].merge(intervals);
      before_.erase(at->first);
      at = local_.erase(at);
    }
  }

  std::vector<SiteRow> choose() {
    const auto divergent = divergent_kinds(book_);
    std::vector<SiteRow> rows;
    for (const auto& [key, own] : local_) {
      const auto found = book_.sites().find(key);
      const PatternSite* pattern = found == book_.sites().end() ? nullptr : &found->second;
      const auto size = static_cast<std::uint64_t>(std::max(key.comm_size, 1));
      // The ranks' own counts include calls without records of all ranks. Where ranks call from several sites, the
      // owners' sites have the calls.
      const std::uint64_t counted =
          divergent.count({key.op, key.comm_size}) ? own.owned : own.calls_inside(key.comm_size);
      const std::uint64_t seen = pattern ? pattern->calls_seen(counted > 0) : 0;
      const std::uint64_t calls = std::max(seen, counted);
      rows.push_back(
          {key, &own, pattern, calls + own.calls_outside(key.comm_size), std::min(own.rested / size, calls - seen)});
    }
    if (rows.size() <= kMostSitesWritten) return rows;
    // Keep the sites with the most time. Fold the others into one site so that the sums stay complete.
    std::ranges::stable_sort(rows, [](const SiteRow& a, const SiteRow& b) {
      return a.own->elapsed.mean() * static_cast<double>(a.own->calls) >
             b.own->elapsed.mean() * static_cast<double>(b.own->calls);
    });
    SiteRow rest{{0, core::Collective::barrier, 0}, &rest_own_, nullptr, 0};
    for (std::size_t i = kMostSitesWritten - 1; i < rows.size(); ++i) {
      rest_own_.merge(*rows[i].own);
      rest.calls += rows[i].calls;
      rest.rested += rows[i].rested;
      if (!rows[i].pattern) continue;
      PatternSite without_ranks = *rows[i].pattern;
      without_ranks.ranks = {};
      rest_pattern_.merge(without_ranks);
      rest.pattern = &rest_pattern_;
    }
    warnings_.push_back("the " + std::to_string(rows.size() - kMostSitesWritten + 1) + " smallest of " +
                        std::to_string(rows.size()) + " sites are folded into one");
    rows.resize(kMostSitesWritten - 1);
    rows.push_back(rest);
    return rows;
  }

  static const PatternSite& pattern_of(const SiteRow& row) {
    static const PatternSite kNone;
    return row.pattern ? *row.pattern : kNone;
  }

  /// Those of the ranks of one site.
  void write_rows(const SiteRow& row) {
    const PatternSite& p = pattern_of(row);
    const auto before = before_.find(row.key);
    const int ranks = all_.sum.job.ranks;
    std::string text;
    bool first = true;
    for (const auto& [number, r] : p.ranks.rows()) {
      text += first ? "\n {" : ",\n {";
      first = false;
      const int shared = per_row_ > 1 ? std::min(per_row_, std::max(1, ranks - number * per_row_)) : 0;
      kRankRowKeys.append(text, ArrivalsOfRow{number * per_row_, shared, r, p.share_of_calls(r.last_count, row.calls)});
      if (before != before_.end())
        if (const auto found = before->second.find(number); found != before->second.end())
          text += ",\"before\":" + json_text(intervals_json(found->second));
      text += ",\"histogram\":";
      r.offset.write_json(text, "ns");
      text += '}';
      put_if_long(text);
    }
    put(text);
  }

  void write_site(const SiteRow& row) {
    const bool folded = row.key.site == 0 && row.key.comm_size == 0;
    const LocalSite& own = *row.own;
    const bool estimated = row.pattern && row.pattern->estimated();
    const Json head = kSiteKeys.json(
        SiteHead{.id = row.key.id(),
                 .frames = frames_of(row.key.site, folded),
                 .op = folded ? "several" : std::string(core::name_of(row.key.op)),
                 .comm_size = row.key.comm_size,
                 .calls = row.calls,
                 .rank_calls = own.calls,
                 .patterns = row.pattern ? row.pattern->share_of_calls(row.pattern->calls, row.calls) : 0,
                 .rested = row.rested,
                 .logged = estimated ? std::optional(row.pattern->logged) : std::nullopt,
                 .waited_error = estimated ? std::optional(row.pattern->waits.error()) : std::nullopt,
                 .bytes = bytes_json(own)});
    const PatternSite& p = pattern_of(row);
    std::string text = json_text(head);
    text.pop_back();
    text += ",\n \"imbalance_ns\":";
    p.imbalance.write_json(text, "ns");
    text += ",\n \"elapsed_ns\":";
    own.elapsed.write_json(text, "ns");
    text += ",\n \"after_last_ns\":";
    p.after_last.write_json(text, "ns");
    text += ",\n \"imbalance_factor\":";
    if (network_ && p.factor_milli.count() > 0) p.factor_milli.write_json(text, "1", 1000);
    else text += "null";
    SiteSums sums{.waited = 0, .divergent = p.divergent_calls};
    for (const auto& [number, r] : p.ranks.rows()) sums.waited += r.waited_ns;
    kSiteSumKeys.append(text, sums);
    if (own.before.samples > 0) {
      Json all = intervals_json(own.before);
      all.erase("waits_for");  // of one rank only
      text += ",\"before\":" + json_text(all);
    }
    if (const auto callers = callers_.find(row.key); callers != callers_.end())
      text += ",\n \"callers\":" + json_text(callers->second);
    Json dispatch = Json::object();
    const auto decided = decisions_.find(row.key.id());
    for (const auto& [algorithm, d] : p.dispatch) {
      const std::string name = algorithm_name(algorithm);
      const std::uint64_t served = p.estimated() && p.dispatch.size() == 1 ? row.calls : d.calls;
      const auto mean = [calls = static_cast<double>(d.calls)](double sum) { return sum / calls; };
      DispatchRow out{.calls = served + (algorithm == 0 ? row.rested : 0),
                      .elapsed = mean(d.elapsed_sum),
                      .after_last = mean(d.after_last_sum),
                      .predicted = {},
                      .reason = algorithm == 0 ? "no rule in force" : "policy rule"};
      // Of several decisions at one site (sizes, positions in the period), show the one with most calls.
      std::uint64_t most = 0;
      if (decided != decisions_.end())
        for (const Json& one : decided->second)
          if (one["algorithm"] == name && one["calls"].get<std::uint64_t>() >= most) {
            most = one["calls"];
            read_value(one[algorithm == 0 ? "native_predicted_ns" : "predicted_ns"], out.predicted);
            out.reason = one["reason"];
          }
      dispatch[name] = kDispatchKeys.json(out);
    }
    text += ",\n \"decisions\":" + json_text((decided == decisions_.end() ? Json::array() : decided->second));
    std::uint64_t served = 0;
    for (const auto& [algorithm, d] : p.dispatch)
      if (algorithm > 0 && algorithm <= core::catalogue().size() && core::algorithm_at(algorithm - 1).uses_pattern())
        served += d.calls;
    if (served > 0) {
      Json sources = Json::object();
      for (const auto& [name, source] : {std::pair{"history", p.history}, std::pair{"edge", p.edge}})
        if (source.calls > 0)
          sources[name] =
              kSourceKeys.json(SourceRow{source.calls, source.error_sum_ns / static_cast<double>(source.calls)});
      if (const std::uint64_t known = p.history.calls + p.edge.calls; known < served)
        sources["none"] = kSourceKeys.json(SourceRow{served - known, {}});
      text += ",\n \"pattern_sources\":" + json_text(sources);
    }
    text += ",\n \"dispatch\":" + json_text(dispatch) + "}";
    put(text);
  }

  static std::string seconds_text(double s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", s);
    return text;
  }

  /// The time at which the last rank entered MPI_Finalize. Empty: some rank did not, or is not here, or clocks were
  /// never compared.
  std::optional<Nanoseconds> last_to_end() const {
    if (all_.members.size() < static_cast<std::size_t>(all_.sum.job.ranks)) return {};
    std::optional<Nanoseconds> last;
    for (const Member& p : all_.members) {
      if (p.process.ended == 0 || p.clock_uncertainty < 0) return {};
      last = std::max(last.value_or(p.process.ended), p.process.ended);
    }
    return last;
  }

  /// What latecomer took, by cause, and its share of the ranks' time.
  Json cost_json() const {
    Json out = Json::object();
    double all = 0, time = 0;
    for (std::size_t i = 0; i < kCosts; ++i) {
      double sum = 0;
      for (const Member& p : all_.members) sum += static_cast<double>(p.process.cost.of[i]);
      out[std::string(kCostNames[i]) + "_ns"] = sum;
      all += sum;
    }
    for (const Member& p : all_.members) time += static_cast<double>(p.process.usage.wall);
    if (time == 0) return nullptr;
    out["share"] = all / time;
    return out;
  }

  Json not_counted_json() const {
    Json out = Json::array();
    for (std::size_t i = 0; i < std::size(kUncounted); ++i)
      if (const UncountedCalls& kind = all_.sum.not_counted.of[i]; kind.calls > 0)
        out.push_back(kUncountedKeys.json(UncountedRow{std::string(kUncounted[i].key), kind.calls, kind.ranks}));
    return out;
  }

  /// What ran on the hosts beside the job, as a key of the profile. Empty: no process has measured it.
  std::string hosts_text() const {
    Json out = Json::array();
    for (const HostLoad& h : all_.sum.loads) out.push_back({{"host", h.host}, {"load", kHostLoadKeys.json(h)}});
    return out.empty() ? "" : "\n\"hosts\": " + json_text(out, 1) + ",";
  }

  void write_sums() {
    std::string text;
    book_.sums.each([&](Rank rank, const RankSums& sums) {
      if (sums.calls == 0) return;  // others waited for it, and its own part is missing
      text += text.empty() ? "\n{" : ",\n{";
      kRankSumKeys.append(text, SumsOfRank{sums, rank});
      text += '}';
    });
    put(text);
  }

  /// The frames of a site. `folded`: the row has the sums of several sites.
  Json frames_of(std::uint64_t site, bool folded) const {
    Json out = Json::array();
    if (const auto known = frames_.find({site, 0}); known != frames_.end())
      for (const Frame* f : known->second) out.push_back(frame_json(*f));
    if (out.empty()) {
      Frame unknown;
      if (folded) unknown.module = "(other sites)";
      out.push_back(frame_json(unknown));
    }
    return out;
  }

  static void add_sampling(Json& process, const Sampling& of) {
    if (of.hz == 0 && of.why_not.empty()) return;
    process["sampling"] = kSamplingKeys.json(SamplesTaken{of.hz, of.taken, of.lost, of.hz > 0 ? "" : of.why_not});
    if (of.others == 0 && of.others_why_not.empty()) return;
    process["sampling"]["other_threads"] = kOtherSamplingKeys.json(
        SamplesTaken{of.others_hz, of.others_taken, of.others_lost, of.others_why_not, of.others});
  }

  /// Of the threads that did not start MPI.
  static void add_threads(Json& process, const Process& of) {
    if (of.threads.empty()) return;
    for (const ThreadSums& row : of.threads) process["threads"].push_back(kThreadKeys.json(row));
  }

  void add_lengths(Json& site, const TimedKey& key) const {
    const auto found = all_.lengths.find(key);
    if (found == all_.lengths.end()) return;
    kLengthsKeys.write(site, found->second);
    for (std::size_t i = 0; i < Lengths::kBuckets; ++i)
      if (const std::uint64_t messages = found->second.messages[i]; messages > 0)
        site["lengths"].push_back(kLengthKeys.json(LengthRow{i == 0 ? 0 : std::uint64_t{1} << (i - 1), messages}));
  }

  /// What went between pairs of ranks.
  void write_pairs() {
    const int per_row = PeerTable::per_row(all_.sum.job.ranks);
    std::string text = "{\"ranks_per_row\": " + std::to_string(per_row) + ", \"rows\": [";
    bool first = true;
    for (const auto& [rows, sums] : all_.pairs) {
      text += first ? "\n  {" : ",\n  {";
      kPairKeys.append(text, PairOfRanks{sums, rows.first * per_row, rows.second * per_row});
      text += '}';
      first = false;
      put_if_long(text);
    }
    put(text + "]}");
  }

  /// The sites of calls that are no collectives, with the most time first.
  void write_timed_sites(bool other_threads) {
    std::vector<std::pair<TimedKey, TimedSums>> all;
    for (const auto& [key, rows] : all_.timed) {
      if (key.call >= std::size(kMpiCalls) || key.other_threads != other_threads) continue;
      TimedSums& sums = all.emplace_back(key, TimedSums{}).second;
      for (const auto& [row, one] : rows) sums.merge(one);
    }
    std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
    const KindsOfSites kinds(all_, per_row_);
    std::string text;
    for (const auto& [key, sums] : all) {
      const bool folded = key.site == 0;
      const std::string_view section = kMpiCalls[key.call].section;
      Json head = kTimedHeadKeys.json(TimedHead{.id = core::hex16(folded ? 0 : core::mix64(key.site + key.call)),
                                                .frames = frames_of(key.site, folded),
                                                .call = folded ? "several" : std::string(kMpiCalls[key.call].name),
                                                .part = folded                                    ? "several"
                                                        : section == "files"                      ? "files"
                                                        : section == "others" || section == "job" ? "other"
                                                                                                  : "messages"});
      kTimedKeys.write(head, sums);
      add_lengths(head, key);
      kinds.add_to_site(head, key);
      text += (text.empty() ? "\n" : ",\n") + json_text(head);
      text.pop_back();
      text += ",\n \"by_rank\":[";
      bool first = true;
      for (const auto& [number, one] : all_.timed.at(key)) {
        const int shared = per_row_ > 1 ? std::clamp(all_.sum.job.ranks - number * per_row_, 1, per_row_) : 0;
        Json row = kTimedRowKeys.json(RowOfRanks{number * per_row_, shared});
        kTimedKeys.write(row, one);
        add_peers(row, one.peers, 1);
        kinds.add_to_row(row, key, number);
        text += (first ? "\n  " : ",\n  ") + json_text(row);
        first = false;
      }
      text += "]}";
    }
    put(text);
  }

  void write_groups() {
    bool first = true;
    for (const Group& g : book_.groups.all()) {
      if (g.calls == 0) continue;
      put((first ? "\n" : ",\n") + json_text(kCommunicatorKeys.json(g)));
      first = false;
    }
  }

  /// The recorded calls in the order of their first arrivals, times since the earliest of these.
  void write_arrivals() {
    std::vector<ArrivalRecord::Call> calls;
    calls.reserve(book_.arrivals.data().calls.size());
    book_.arrivals.each([&](const ArrivalRecord::Call& call) { calls.push_back(call); });
    const auto first_of = [](const ArrivalRecord::Call& c) { return *std::ranges::min_element(c.arrivals); };
    std::vector<std::pair<Nanoseconds, std::size_t>> order;
    order.reserve(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) order.emplace_back(first_of(calls[i]), i);
    std::ranges::sort(order);
    const Nanoseconds zero = order.empty() ? 0 : order.front().first;
    const bool sample = sampled_.stretch > 0;
    if (sample)
      put("{\"sample\": {\"calls\": " + std::to_string(sampled_.stretch) +
          ", \"stride\": " + std::to_string(sampled_.stride) + "}, ");
    else
      put("{\"window_ns\": " + std::to_string(ArrivalRecord::kWindow) +
          ", \"stride\": " + std::to_string(book_.arrivals.data().stride) + ", ");
    put("\"calls\": " + std::to_string(sample ? sampled_.counted : book_.arrivals.data().seen) +
        ", \"calls_kept\": " + std::to_string(calls.size()) + ",\n \"groups\": [");
    const auto& groups = book_.groups.all();
    for (std::size_t g = 0; g < groups.size(); ++g) put((g ? ",\n  " : "\n  ") + json_text(Json(groups[g].ranks)));
    put("],\n \"events\": [");
    std::string text;
    const auto times = [&](const char* name, std::span<const Nanoseconds> values, bool exits) {
      text.append(name);
      for (std::size_t i = 0; i < values.size(); ++i)
        text.append(i ? "," : "").append(std::to_string(exits && values[i] == 0 ? -1 : values[i] - zero));
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto& [kind, arrivals, exits] = calls[order[i].second];
      text.append(i ? ",\n  " : "\n  ")
          .append("{\"site\":\"" + kind.key.id() + "\",\"group\":" + std::to_string(kind.group) + ",\"algorithm\":\"" +
                  algorithm_name(kind.algorithm) + "\",\"bytes\":" + std::to_string(kind.bytes) +
                  ",\"root\":" + std::to_string(kind.root) + (kind.blocking ? "" : ",\"blocking\":false") +
                  (sample ? ",\"number\":" + std::to_string(sampled_.numbers[order[i].second]) : ""));
      times(",\"arrival_ns\":[", arrivals, false);
      times("],\"exit_ns\":[", exits, true);
      text += "]}";
      put_if_long(text);
    }
    put(text + "]}");
  }

  Merged& all_;
  const Sink& sink_;
  const NameFrames& name_;
  const std::string& last_state_;
  const core::Network* network_ = nullptr;
  int per_row_ = 1;
  std::map<std::int32_t, Unplanned> unplanned_;  ///< by algorithm; the counts of the rank with the most such calls
  std::uint64_t edges_ = 0;
  double edge_sum_ = 0;
  SiteBook book_;
  Sampled sampled_;
  std::map<SiteKey, LocalSite> local_;
  std::map<SiteKey, std::map<std::int32_t, Intervals>> before_;                    // by row of ranks
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<Frame*>> frames_;  // by site and callers
  std::map<SiteKey, Json> callers_;                                                // of sites
  std::set<std::string> hosts_;
  Json warnings_ = Json::array(), plans_ = Json::array();
  std::map<std::string, Json> decisions_;  // by site id
  LocalSite rest_own_;
  PatternSite rest_pattern_;
};

}  // namespace

void write_profile(Merged& all, const Sink& sink, std::vector<std::string>* never_ran, const NameFrames& name,
                   const std::string& last_state) {
  if (all.empty()) return;
  auto lines = ProfileWriter(all, sink, name, last_state).write();
  if (never_ran) *never_ran = std::move(lines);
}

namespace {

/// The snapshots of ranks have different ages. That of a leader, or of a node of the tree, may tell more of another
/// rank than that rank's own.
Reach reach_of(const std::vector<Contribution>& parts) {
  Reach out;
  out.first_end = parts.front().job.wall_time_s;
  for (const Contribution& part : parts) {
    const double end = part.job.wall_time_s;
    out.first_end = std::min(out.first_end, end);
    out.last_end = std::max(out.last_end, end);
    out.own_end[part.rank] = end;
    if (part.aborted > 0) out.aborted.emplace_back(part.rank, 1e-9 * static_cast<double>(part.aborted));
    const auto covers = [&](Rank rank) {
      double& covered = out.covered[rank];
      covered = std::max(covered, end);
    };
    covers(part.rank);
    part.patterns.sums.each([&](Rank rank, const RankSums&) { covers(rank); });
    for (const Log& log : part.logs)
      if (is_rank_of(log.world_rank, part.job.ranks)) covers(log.world_rank);
  }
  return out;
}

}  // namespace

void write_profile(std::vector<Contribution>& parts, const Sink& sink, std::vector<std::string>* never_ran,
                   const NameFrames& name, const std::string& last_state) {
  std::ranges::sort(parts, {}, &Contribution::rank);
  Merged all;
  for (const Contribution& part : parts) all.add(part);
  if (!std::ranges::all_of(parts, &Contribution::finished)) all.reach = reach_of(parts);
  write_profile(all, sink, never_ran, name, last_state);
}

std::string write_profile(std::vector<Contribution> parts, const std::string& last_state) {
  std::string out;
  const Sink sink = [&](std::string_view text) { out += text; };
  write_profile(parts, sink, nullptr, nullptr, last_state);
  return out;
}

core::Result<bool> add_network(const std::string& path, const core::Network& network) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::string piece(1 << 16, '\0');
  const auto next = [&] {
    ssize_t n = 0;
    do n = read(file.get(), piece.data(), piece.size());
    while (n < 0 && errno == EINTR);
    return n;
  };
  // The two keys follow the first line and the name of the job's object.
  const auto keys = [](const Json& figures, const Json& from) {
    const std::string text = json_text(Json({{"network", figures}, {"network_from", from}}), 1);
    return text.substr(1, text.size() - 3);  // without the braces
  };
  const std::string unknown = keys(nullptr, nullptr),
                    known = keys(Json::parse(core::network_text(network)), *source_of(NetworkFrom::end));
  ssize_t size = next();
  if (size < 0) return core::Error{"cannot read '" + path + "': " + std::strerror(errno)};
  const std::string_view first(piece.data(), static_cast<std::size_t>(size));
  const std::size_t at = std::min(first.size(), first.find('\n')) + 1 + kJobBegin.size();
  if (at > first.size() || !first.substr(0, at).ends_with(kJobBegin) || !first.substr(at).starts_with(unknown))
    return core::Error{"'" + path + "' is not the profile that was written"};
  return replace_file(path, [&](const Sink& sink) {
    sink(first.substr(0, at));
    sink(known);
    sink(first.substr(at + unknown.size()));
    while ((size = next()) > 0) sink({piece.data(), static_cast<std::size_t>(size)});
    return size == 0;
  });
}

}  // namespace latecomer::profiles
