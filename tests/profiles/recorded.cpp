// SPDX-License-Identifier: BSD-3-Clause
// Writes the profile of an imaginary job on two hosts with a record of arrivals. The same call records give the sums of
// the profile and the record. Usage: recorded_profile FILE [PARTS]; PARTS: a folder for the snapshots of the ranks

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "profiles/files/spool.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/record/waiting.hpp"

using namespace latecomer;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kRanks = 6;
const std::vector<std::vector<core::Rank>> kGroups = {{0, 1, 2, 3, 4, 5}, {5, 1, 3}};

struct Kind {
  core::Collective op;
  std::size_t group;
  core::Rank root;
  std::int64_t bytes;
};
constexpr Kind kKinds[] = {{core::Collective::allreduce, 0, -1, 8}, {core::Collective::bcast, 0, 2, 4096},
                           {core::Collective::gather, 1, 1, 768},   {core::Collective::scan, 0, -1, 16},
                           {core::Collective::barrier, 1, -1, -1},  {core::Collective::allreduce, 1, -1, 64}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  std::vector<profiles::Contribution> parts(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    profiles::Contribution& part = parts[static_cast<std::size_t>(r)];
    const std::string program = "/home/jdoe/secret plans/bin/solver";
    part.job = {program,
                program + " --input /scratch/jdoe/case.dat",
                "2026-01-01T00:00:00Z",
                "MPICH Version: 4.0.2",
                "observe",
                kRanks,
                1.0,
                profiles::NetworkFrom::none,
                false,
                {},
                {}};
    part.rank = r;
    part.finished = true;
    part.job_key = 7;
    part.clock_domain = "0";
    part.host = r < 4 ? "anubis-17.cluster.example" : "horus-4.cluster.example";
    part.process.cores = 1;
    part.process.host_cores = 2;
    part.process.usage.wall = part.process.usage.computing = 1'000'000'000;
    part.patterns.job_of(kRanks);
    if (r == 4)
      part.warnings = {"cannot read '/home/jdoe/my policy/try.json' on anubis-17; see /scratch/jdoe/notes.txt:3"};
  }
  core::SplitMix64 random(33);
  const auto draw = [&](int most) {
    return static_cast<core::Nanoseconds>(random.below(static_cast<std::uint64_t>(most)));
  };
  Json events = Json::array();
  std::vector<core::Nanoseconds> now(kRanks, 0);
  for (int c = 0; c < 240; ++c) {
    const std::size_t which = random.below(std::size(kKinds));
    const Kind& kind = kKinds[which];
    const auto& world = kGroups[kind.group];
    // A non-blocking call: ranks do not wait in it, and its ends are not known.
    const bool nonblocking = which == 5;
    std::vector<profiles::CallRecord> records(world.size());
    std::vector<const profiles::CallRecord*> all;
    core::Nanoseconds last = 0;
    for (std::size_t i = 0; i < world.size(); ++i) {
      profiles::CallRecord& record = records[i];
      record.arrival = now[static_cast<std::size_t>(world[i])] + draw(world[i] == 3 ? 90'000 : 30'000);
      record.site = 100 + which;
      record.op = kind.op;
      record.root = kind.root;
      record.bytes = kind.bytes;
      if (nonblocking) record.kind = core::CallKind::nonblocking;
      last = std::max(last, record.arrival);
      all.push_back(&record);
    }
    core::Nanoseconds below = 0;
    for (std::size_t i = 0; i < world.size(); ++i) {
      profiles::CallRecord& record = records[i];
      below = std::max(below, record.arrival);
      core::Nanoseconds after = last;
      switch (profiles::waiting_in(kind.op)) {
        case profiles::WaitRule::root_for_last:
          after = static_cast<core::Rank>(i) == kind.root ? last : record.arrival;
          break;
        case profiles::WaitRule::others_for_root:
          after = std::max(record.arrival, records[static_cast<std::size_t>(kind.root)].arrival);
          break;
        case profiles::WaitRule::for_lower_ranks:
          after = below;
          break;
        default:
          break;
      }
      record.exit = nonblocking ? 0 : after + 500 + draw(4000);
      now[static_cast<std::size_t>(world[i])] = nonblocking ? record.arrival + 200 : record.exit;
      parts[static_cast<std::size_t>(world[i])]
          .local[{record.site, kind.op, static_cast<std::int32_t>(world.size())}]
          .add(nonblocking ? -1 : record.exit - record.arrival, kind.bytes);
    }
    parts[static_cast<std::size_t>(world[0])].patterns.add(all, world, 0, nullptr);
    const profiles::SiteKey key{100 + which, kind.op, static_cast<std::int32_t>(world.size())};
    Json event = {{"site", key.id()},  {"group", kind.group},         {"algorithm", "native"},   {"bytes", kind.bytes},
                  {"root", kind.root}, {"arrival_ns", Json::array()}, {"exit_ns", Json::array()}};
    for (const auto& record : records) {
      event["arrival_ns"].push_back(record.arrival);
      event["exit_ns"].push_back(nonblocking ? -1 : record.exit);
    }
    events.push_back(event);
  }
  std::stable_sort(events.begin(), events.end(), [](const Json& a, const Json& b) {
    const auto first = [](const Json& e) {
      const auto times = e["arrival_ns"].get<std::vector<core::Nanoseconds>>();
      return *std::min_element(times.begin(), times.end());
    };
    return first(a) < first(b);
  });
  for (std::size_t which = 0; which < std::size(kKinds); ++which) {
    profiles::Frame frame;
    frame.site = 100 + which;
    frame.offset = 64 * which;
    frame.build_id = "00";
    frame.module = "/home/jdoe/secret plans/bin/solver";
    if (which % 2) {
      frame.function = "step";
      frame.file = "/home/jdoe/secret plans/src/step.cpp";
      frame.line = 12;
    }
    parts[0].frames.push_back(frame);
  }
  if (argc == 3)
    for (const auto& part : parts) {
      profiles::Spool spool;
      spool.begin(argv[2], part.rank, {part.job_key, "", "", ""});
      if (const auto wrote = spool.write(part, {}); !wrote) std::fprintf(stderr, "%s\n", wrote.error().c_str());
    }
  Json profile = Json::parse(profiles::write_profile(std::move(parts)));
  profile["arrivals"] = {{"window_ns", 1'000'000'000},  {"stride", 1},       {"calls", events.size()},
                         {"calls_kept", events.size()}, {"groups", kGroups}, {"events", events}};
  const auto done = profiles::write_file(argv[1], profile.dump(1));
  if (!done) std::fprintf(stderr, "%s\n", done.error().c_str());
  return done ? 0 : 1;
}
