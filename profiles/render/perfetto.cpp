// SPDX-License-Identifier: BSD-3-Clause
// Writes one event per line, rank by rank.
#include "profiles/render/perfetto.hpp"

#include <cstdio>
#include <map>

#include "profiles/base/json.hpp"

namespace latecomer::profiles {
namespace {

class Trace {
 public:
  Trace(const Profile& profile, const RecordedArrivals& record, const Sink& sink)
      : profile_(profile), record_(record), sink_(sink) {}

  void write() {
    const analysis::ProfileJob& job = profile_.job;
    sink_("{\"displayTimeUnit\":\"ns\",\"otherData\":" +
          json_text(Json({{"writer", "latecomer export"},
                          {"program", job.program},
                          {"command_line", job.command_line},
                          {"start", job.start}})) +
          ",\"traceEvents\":[");
    // Perfetto takes thread 0 for the idle thread, and the thread whose number is the process's for its main thread.
    const std::size_t ranks = record_.ranks.size();
    std::map<std::string, std::size_t> hosts;
    for (const std::string& host : profile_.hosts) {
      const auto [found, added] = hosts.try_emplace(host, ranks + 1 + hosts.size());
      processes_.push_back(found->second);
      if (added) put("M", "process_name", processes_.size() - 1, "\"args\":" + json_text(Json({{"name", host}})));
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      put("M", "thread_name", rank, "\"args\":" + json_text(Json({{"name", "rank " + std::to_string(rank)}})));
      put("M", "thread_sort_index", rank, "\"args\":" + json_text(Json({{"sort_index", rank}})));
      for (const Visit& visit : record_.ranks[rank]) write(rank, visit);
    }
    sink_("\n]}\n");
  }

 private:
  static std::string at(core::Nanoseconds ns) {  // microseconds
    char text[48];
    std::snprintf(text, sizeof text, "\"ts\":%lld.%03lld", static_cast<long long>(ns / 1000),
                  static_cast<long long>(ns % 1000));
    return text;
  }
  static std::string span(core::Nanoseconds from, core::Nanoseconds to) {
    char text[48];
    std::snprintf(text, sizeof text, ",\"dur\":%lld.%03lld", static_cast<long long>((to - from) / 1000),
                  static_cast<long long>((to - from) % 1000));
    return at(from) + text;
  }
  void put(const char* phase, const std::string& name, std::size_t rank, const std::string& rest) {
    sink_((first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"") + std::string(phase) + "\",\"name\":" + json_text(Json(name)) +
          ",\"pid\":" + std::to_string(processes_[rank]) + ",\"tid\":" + std::to_string(rank + 1) + "," + rest + "}");
    first_ = false;
  }

  /// Derived: unique, and below 2^53, the largest integer that JavaScript holds, up to 2^21 ranks and 2^32 calls.
  std::string id(const Visit& visit) const {
    return ",\"id\":" + std::to_string(static_cast<std::uint64_t>(visit.call) * record_.ranks.size() + visit.position);
  }
  core::Rank world(const RecordedCall& call, std::int32_t position) const {
    return record_.groups[call.group][static_cast<std::size_t>(position)];
  }
  Json arguments(const RecordedCall& call, const Visit& visit) const {
    Json out = {{"site", profile_.sites[call.site].id},
                {"place", profile_.sites[call.site].place()},
                {"ranks", call.arrivals.size()},
                {"algorithm", call.algorithm}};
    if (call.bytes >= 0) out["bytes"] = call.bytes;
    if (call.root >= 0 && static_cast<std::size_t>(call.root) < call.arrivals.size())
      out["root"] = world(call, call.root);
    if (const auto awaited = call.awaited[visit.position]; awaited >= 0) out["awaited_rank"] = world(call, awaited);
    return out;
  }

  void write(std::size_t rank, const Visit& visit) {
    const RecordedCall& call = record_.calls[visit.call];
    const core::Nanoseconds arrival = call.arrivals[visit.position], exit = call.exits[visit.position];
    const Site& site = profile_.sites[call.site];
    const std::string name = site.op + " at " + site.place(), args = ",\"args\":" + json_text(arguments(call, visit));
    if (exit < 0) return put("i", name, rank, at(arrival) + ",\"s\":\"t\",\"cat\":\"collective\"" + args);
    if (!visit.nested) {
      const std::string asynchronous = ",\"cat\":\"overlapping\"" + id(visit);
      put("b", name, rank, at(arrival) + asynchronous + args);
      return put("e", name, rank, at(exit) + asynchronous);
    }
    put("X", name, rank, span(arrival, exit) + ",\"cat\":\"collective\"" + args);
    const core::Nanoseconds end = call.wait_ends[visit.position], after = std::max(arrival, call.last);
    if (const auto position = call.awaited[visit.position]; position >= 0) {
      const core::Rank awaited = world(call, position);
      put("X", "waiting", rank,
          span(arrival, end) + ",\"cat\":\"waiting\",\"args\":" + json_text(Json({{"awaited_rank", awaited}})));
      if (end < exit) {
        put("s", "awaited", static_cast<std::size_t>(awaited), at(end) + ",\"cat\":\"waiting\"" + id(visit));
        put("f", "awaited", rank, at(end) + ",\"bp\":\"e\",\"cat\":\"waiting\"" + id(visit));
      }
    }
    if (after < exit) put("X", "after the last arrival", rank, span(after, exit) + ",\"cat\":\"after_last\"");
  }

  const Profile& profile_;
  const RecordedArrivals& record_;
  const Sink& sink_;
  std::vector<std::size_t> processes_;  // [ranks]: number of the host's process
  bool first_ = true;
};

}  // namespace

void write_perfetto(const Profile& profile, const RecordedArrivals& record, const Sink& sink) {
  Trace(profile, record, sink).write();
}

}  // namespace latecomer::profiles
