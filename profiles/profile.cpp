// SPDX-License-Identifier: BSD-3-Clause
// Merging contributions and writing the profile file.
#include "profiles/profile.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

/// Matches the logs that were left when the job ended; returns how many records stay unmatched.
std::uint64_t match_logs(const std::vector<Contribution>& parts, Nanoseconds tie_ns, const core::Network* network, SiteBook& book) {
  struct Calls {
    std::map<std::uint64_t, std::vector<const CallRecord*>> by_number;  // [comm_size], nullptr: missing
    std::vector<Rank> world;
  };
  std::map<std::pair<std::uint64_t, std::int32_t>, Calls> communicators;
  for (const Contribution& part : parts)
    for (const auto& log : part.logs) {
      if (log.comm_size < 1 || log.comm_rank < 0 || log.comm_rank >= log.comm_size) continue;
      const auto size = static_cast<std::size_t>(log.comm_size);
      Calls& calls = communicators[{log.communicator, log.comm_size}];
      calls.world.resize(size);
      calls.world[static_cast<std::size_t>(log.comm_rank)] = log.world_rank;
      for (std::size_t i = 0; i < log.records.size(); ++i) {
        auto& row = calls.by_number[log.first + i];
        row.resize(size);
        row[static_cast<std::size_t>(log.comm_rank)] = &log.records[i];
      }
    }
  std::uint64_t unmatched = 0;
  for (const auto& [key, calls] : communicators)
    for (const auto& [n, records] : calls.by_number) {
      const bool whole = std::all_of(records.begin(), records.end(), [&](const CallRecord* r) {
        return r && records[0] && r->op == records[0]->op && r->root == records[0]->root;
      });
      if (whole) book.add(records, calls.world, tie_ns, network);
      else unmatched += static_cast<std::uint64_t>(std::count_if(records.begin(), records.end(), [](auto* r) { return r != nullptr; }));
    }
  return unmatched;
}

std::string hex(std::uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

std::string algorithm_name(std::uint8_t index) {
  if (index == 0) return "native";
  const auto all = core::catalogue();
  return index <= all.size() ? std::string(all[index - 1].name) : "unknown";
}

}  // namespace

std::string write_profile(const JobInfo& job, std::vector<Contribution> parts) {
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const core::Network* network = job.network_known ? &job.network : nullptr;
  Nanoseconds tie = 0;
  for (const Contribution& p : parts) tie = std::max(tie, p.clock_uncertainty);
  SiteBook book;
  std::map<SiteKey, LocalSite> local;
  std::map<std::uint64_t, Frame> frames;
  std::set<std::string> hosts;
  Json warnings = Json::array(), plans = Json::array(), clock = Json::array();
  for (const Contribution& p : parts) {
    for (const auto& [key, site] : p.patterns) book.merge(key, site);
    for (const auto& [key, site] : p.local) local[key].merge(site);
    for (const Frame& f : p.frames) frames.try_emplace(f.site, f);
    hosts.insert(p.host);
    clock.push_back({{"rank", p.rank}, {"host", p.host}, {"offset_ns", p.clock_offset}, {"uncertainty_ns", p.clock_uncertainty}});
    for (const std::string& w : p.warnings) warnings.push_back("rank " + std::to_string(p.rank) + ": " + w);
    for (const std::string& plan : p.plans) plans.push_back(Json::parse(plan, nullptr, false));
  }
  if (const std::uint64_t unmatched = match_logs(parts, tie, network, book); unmatched > 0)
    warnings.push_back(std::to_string(unmatched) + " call records could not be matched with those of the other ranks");
  if (parts.size() < static_cast<std::size_t>(job.ranks))
    warnings.push_back("this profile holds " + std::to_string(parts.size()) + " of " + std::to_string(job.ranks) + " ranks");
  if (!network) warnings.push_back("imbalance_factor is null: no network figures (give \"network\" in a policy)");

  // A site without patterns of its own either was observed by single ranks, or its ranks joined operations
  // that are credited to another site: those are not counted twice.
  std::set<std::pair<core::Collective, std::int32_t>> divergent;
  for (const auto& [key, site] : book.sites())
    if (site.divergent_calls > 0) divergent.insert({key.op, key.comm_size});

  Json sites = Json::array();
  for (const auto& [key, own] : local) {
    const auto found = book.sites().find(key);
    const PatternSite* pattern = found == book.sites().end() ? nullptr : &found->second;
    Json frame = {{"module", ""}, {"build_id", ""}, {"offset", "0x0"}, {"function", nullptr}, {"file", nullptr}, {"line", nullptr}};
    if (const auto f = frames.find(key.site); f != frames.end()) {
      frame["module"] = f->second.module;
      frame["build_id"] = f->second.build_id;
      frame["offset"] = hex(f->second.offset);
    }
    const std::uint64_t size = static_cast<std::uint64_t>(std::max(key.comm_size, 1));
    Json site;
    site["id"] = key.id();
    site["frames"] = Json::array({frame});
    site["op"] = core::name_of(key.op);
    site["comm_size"] = key.comm_size;
    site["calls"] = pattern ? pattern->calls : divergent.count({key.op, key.comm_size}) ? 0 : (own.calls + size - 1) / size;
    site["rank_calls"] = own.calls;
    site["patterns"] = pattern ? pattern->calls : 0;
    if (own.sized > 0) site["bytes"] = {{"min", own.bytes_min}, {"mean", own.bytes_sum / static_cast<double>(own.sized)}, {"max", own.bytes_max}};
    else site["bytes"] = nullptr;
    const PatternSite empty;
    const PatternSite& p = pattern ? *pattern : empty;
    site["imbalance_ns"] = p.imbalance.to_json("ns");
    site["elapsed_ns"] = own.elapsed.to_json("ns");
    site["after_last_ns"] = p.after_last.to_json("ns");
    site["imbalance_factor"] = network && p.factor_milli.count() > 0 ? p.factor_milli.to_json("1", 1000) : Json(nullptr);
    Json ranks = Json::array();
    for (const auto& [rank, r] : p.ranks)
      ranks.push_back({{"rank", rank}, {"mean_offset_ns", r.offset.mean()}, {"stddev_ns", r.offset.stddev()},
                       {"last_count", r.last_count}, {"histogram", r.offset.to_json("ns")}});
    site["ranks"] = ranks;
    Json dispatch = Json::object();
    for (const auto& [algorithm, d] : p.dispatch)
      dispatch[algorithm_name(algorithm)] = {{"calls", d.calls}, {"mean_elapsed_ns", d.elapsed_sum / static_cast<double>(d.calls)},
                                             {"mean_after_last_ns", d.after_last_sum / static_cast<double>(d.calls)},
                                             {"predicted_ns", nullptr}, {"reason", algorithm == 0 ? "no rule in force" : "policy rule"}};
    site["dispatch"] = dispatch;
    site["divergent_calls"] = p.divergent_calls;
    sites.push_back(std::move(site));
  }
  Json out;
  out["format"] = "latecomer-profile";
  out["version"] = 1;
  out["job"] = {{"program", job.program}, {"command_line", job.command_line}, {"ranks", job.ranks},
                {"hosts", std::vector<std::string>(hosts.begin(), hosts.end())}, {"start", job.start},
                {"wall_time_s", job.wall_time_s}, {"mpi_library", job.mpi_library}, {"mode", job.mode}};
  out["clock"] = clock;
  out["sites"] = sites;
  out["plans"] = plans;
  out["warnings"] = warnings;
  return out.dump(1) + "\n";
}

core::Result<bool> write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  const auto failed = [&](const char* what) {
    return core::Error{"cannot " + std::string(what) + " '" + path + "': " + std::strerror(errno)};
  };
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  if (!file) return failed("create");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return failed("write");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed("replace");
  return true;
}

}  // namespace latecomer::profiles
