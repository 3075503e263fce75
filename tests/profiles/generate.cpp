// SPDX-License-Identifier: BSD-3-Clause
// Writes the profile of an imaginary large job, through the code that real jobs use. The last rank is late by 1 ms plus
// 10 us per site, and the other ranks arrive within 0.1 ms. The frames are this program's own functions, in turn.
// Usage: generate_profile RANKS SITES CALLS FILE [PARTS]; PARTS: a folder for the snapshots of the ranks
//        generate_profile --live RANKS SITES CALLS PARTS METRICS: writes the snapshot of the leader, and its figures
//        for Prometheus. The calls of a site come from two callers.
//        generate_profile --history FILE RANKS: reads a history as a job does, and builds the schedules of its plan

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/agreement/agreement.hpp"
#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "profiles/base/json.hpp"
#include "profiles/files/spool.hpp"
#include "profiles/format/history.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/format/prometheus.hpp"

using namespace latecomer;

namespace {

int use_history(const std::string& file, int ranks) {
  // The setup of the file, as far as it has one: damage must not end at the comparison.
  profiles::Setup setup;
  setup.ranks = ranks;
  if (const auto text = core::read_file(file))
    if (const auto json = profiles::parse_json(*text); json && json->is_object() && json->contains("learned")) {
      const auto& its = (*json)["learned"];
      const auto number = [&](const char* key) {
        const auto at = its.is_object() ? its.find(key) : its.end();
        return its.is_object() && at != its.end() && at->is_string()
                   ? std::strtoull(at->get<std::string>().c_str(), nullptr, 16)
                   : 0;
      };
      setup.placement = number("placement");
      setup.catalogue = number("catalogue");
      if (its.is_object() && its.contains("hosts") && its["hosts"].is_number_integer())
        setup.hosts = its["hosts"].get<int>();
      if (its.is_object() && its.contains("mpi_library") && its["mpi_library"].is_string())
        setup.mpi_library = its["mpi_library"].get<std::string>();
    }
  const auto history = profiles::read_history(file, setup);
  if (!history) {
    std::fprintf(stderr, "latecomer: %s\n", history.error().c_str());
    return 2;
  }
  core::Policy policy;
  policy.mode = core::Mode::apply;
  core::PlanInForce plan;
  plan.install(history->plan);
  for (const core::PlanEntry& entry : plan.plan().entries) {
    plan.at(plan.plan().first, entry.signature);
    if (entry.algorithm < 0) continue;
    core::Signature s;
    s.op = core::algorithm_at(entry.algorithm).op;
    s.root = 0;
    s.servable = true;
    s.op_class = core::OpClass::sum;
    s.count = 64;
    s.bytes = 512;
    const core::Decision d = core::decide_planned_call(policy, s, ranks, entry);
    if (!d.algorithm) continue;
    const auto row = [](const auto& rows, int at) {
      return at < 0 ? std::vector<std::int64_t>{} : rows[static_cast<std::size_t>(at)];
    };
    core::Parameters parameters;
    parameters.segments = d.segments;
    parameters.overlap = d.overlap;
    parameters.sizes = row(history->plan.sizes, d.sizes);
    const core::Instance instance(core::call_of(s, ranks), core::Pattern(row(history->plan.patterns, d.pattern)),
                                  std::move(parameters));
    for (int rank = 0; rank < ranks; ++rank)
      for (auto schedule = d.algorithm->build(instance, rank); schedule.next();) {
      }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--history") return use_history(argv[2], std::atoi(argv[3]));
  const bool live = argc == 7 && std::string(argv[1]) == "--live";
  if (live) {
    ++argv;
    --argc;
  }
  if (argc != 5 && argc != 6) return 2;
  const int ranks = std::atoi(argv[1]), sites = std::atoi(argv[2]), calls = std::atoi(argv[3]);
  profiles::Contribution part;
  part.job = {"./generated",
              "./generated",
              "2026-01-01T00:00:00Z",
              "none",
              "observe",
              ranks,
              1.0,
              profiles::NetworkFrom::policy,
              false,
              {},
              {},
              {},
              {}};
  part.job.network.beta_ns_per_byte = 1;
  part.host = "generated";
  part.finished = true;
  part.patterns.job_of(ranks);
  std::vector<profiles::CallRecord> records(static_cast<std::size_t>(ranks));
  std::vector<const profiles::CallRecord*> all;
  std::vector<core::Rank> world;
  for (int r = 0; r < ranks; ++r) {
    all.push_back(&records[static_cast<std::size_t>(r)]);
    world.push_back(r);
  }
  core::SplitMix64 random(1);
  for (int s = 0; s < sites; ++s) {
    const auto id = static_cast<std::uint64_t>(s + 1);
    for (int c = 0; c < calls; ++c) {
      const std::uint32_t callers = live ? 1 + static_cast<std::uint32_t>(c % 2) : 0;
      profiles::LocalSite& own = part.local[{id, core::Collective::allreduce, ranks, callers}];
      for (int r = 0; r < ranks; ++r) {
        profiles::CallRecord& record = records[static_cast<std::size_t>(r)];
        record.arrival =
            r == ranks - 1 ? 1'000'000 + 10'000 * s : static_cast<core::Nanoseconds>(random.uniform() * 100'000);
        record.exit = 1'500'000 + 10'000 * s;
        record.site = id;
        record.bytes = 1024;
        record.callers = callers;
        record.op = core::Collective::allreduce;
        own.add(record.exit - record.arrival, record.bytes);
      }
      part.patterns.add(all, world, 0, &part.job.network);
    }
    profiles::Frame frame;
    frame.site = id;
    frame.module = "/nonexistent/generated";
    frame.build_id = "00";
    frame.offset = static_cast<std::uint64_t>(s) * 16;
    part.frames.push_back(frame);
  }
  if (live) {
    profiles::Spool spool;
    spool.begin(argv[4], 0, {part.job_key, "", "", ""});
    const auto wrote = spool.write(part, {});
    if (!wrote) std::fprintf(stderr, "%s\n", wrote.error().c_str());
    return wrote && profiles::write_file(argv[5], profiles::prometheus_text(profiles::metrics_of(part, 10, 10))) ? 0
                                                                                                                 : 1;
  }
  if (argc == 6)
    for (int r = 0; r < ranks; ++r) {
      part.rank = r;
      part.warnings = {"rank " + std::to_string(r) + " warns"};
      profiles::Log log{1, ranks, r, r, 0, {}};
      for (int c = 0; c < 3; ++c) log.records.push_back(records[static_cast<std::size_t>(r)]);
      part.logs = {log};
      profiles::Spool spool;
      spool.begin(argv[5], r, {part.job_key, "", "", ""});
      for (int i = 0; i < 2; ++i)
        if (const auto wrote = spool.write(part, {}); !wrote) std::fprintf(stderr, "%s\n", wrote.error().c_str());
    }
  part.rank = 0;
  part.warnings.clear();
  part.logs.clear();
  std::vector<profiles::Contribution> parts;
  parts.push_back(std::move(part));
  const auto done =
      profiles::write_file(argv[4], [&](const profiles::Sink& sink) { profiles::write_profile(parts, sink); });
  if (!done) std::fprintf(stderr, "%s\n", done.error().c_str());
  return done ? 0 : 1;
}
