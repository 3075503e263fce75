// SPDX-License-Identifier: BSD-3-Clause
// Gathers the profile of an imaginary job of many ranks as a real job does: each rank has its own contribution, and the
// nodes of the tree merge those of their children. Every figure is a whole number, so the order of sums does not
// matter. Usage: gathered_profile RANKS SITES RANKS_PER_HOST FILE [star|WITHOUT]. star: rank 0 takes all parts, as a
// reference.
//        WITHOUT: a rank that dies before it sends. Prints messages, bytes and memory.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/agreement/tree.hpp"
#include "core/base/text.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/record/merged.hpp"

using namespace latecomer;
using profiles::Contribution;
using profiles::Merged;

namespace {

int ranks, sites, per_host;

Contribution part_of(int rank) {
  constexpr int kCalls = 50;
  Contribution c;
  c.job.program = c.job.command_line = "./gathered";
  c.job.start = "2026-01-01T00:00:00Z";
  c.job.mpi_library = "none";
  c.job.mode = "observe";
  c.job.ranks = ranks;
  c.job.wall_time_s = 1;
  c.rank = rank;
  c.finished = true;
  c.host = "node" + std::to_string(rank / per_host);
  c.clock_domain = c.host;
  c.clock_uncertainty = 100;
  c.clock_looks = 1;
  c.process.cores = 1;
  c.process.host_cores = per_host;
  c.process.core_list = std::to_string(rank % per_host);
  c.process.usage.wall = 1'000'000'000;
  c.process.usage.collectives = 400'000'000;
  c.process.usage.computing = 600'000'000;
  c.patterns.job_of(ranks);
  c.sample.start(ranks);
  core::SplitMix64 random(static_cast<std::uint64_t>(rank) + 1);
  for (int s = 0; s < sites; ++s) {
    const profiles::SiteKey key{static_cast<std::uint64_t>(s + 1), core::Collective::allreduce, ranks};
    profiles::LocalSite& own = c.local[key];
    profiles::PatternSite pattern;
    profiles::RankOffsets& row = pattern.ranks.at_or_new(rank / profiles::ranks_per_row(ranks), 0);
    const bool late = rank == ranks - 1;
    for (int i = 0; i < kCalls; ++i) {
      const auto offset = late ? 1'000'000 : static_cast<core::Nanoseconds>(random.uniform() * 100'000);
      own.add(1'500'000 - offset, 1024);
      row.offset.add(offset);
    }
    // One call of each leader, and every rank is one.
    ++pattern.calls;
    pattern.imbalance.add(1'000'000);
    pattern.after_last.add(500'000);
    row.last_count = late ? kCalls : 0;
    row.waited_ns = late ? 0 : kCalls * 900'000.0;
    row.awaited_ns = late ? kCalls * 900'000.0 * (ranks - 1) : 0;
    profiles::Usage usage;
    usage.wall = 600'000;
    usage.computing = 600'000;
    own.before.add(usage, {}, 5);
    c.patterns.merge(key, std::move(pattern));
    profiles::RankSums& sums = c.patterns.sums[rank];
    sums.calls += kCalls;
    sums.last_count += late ? kCalls : 0;
    sums.waited_ns += late ? 0 : kCalls * 900'000.0;
    sums.awaited_ns += late ? kCalls * 900'000.0 * (ranks - 1) : 0;
    profiles::Frame frame;
    frame.site = key.site;
    frame.module = "/nonexistent/gathered";
    frame.build_id = "00";
    frame.offset = static_cast<std::uint64_t>(s) * 16;
    c.frames.push_back(frame);
  }
  for (std::uint64_t n = 0; c.sample.keeps(n) && n < 16; ++n) {
    profiles::CallRecord record;
    record.arrival = static_cast<core::Nanoseconds>(n) * 10'000'000 + (rank == ranks - 1 ? 1'000'000 : rank % 100);
    record.exit = static_cast<core::Nanoseconds>(n) * 10'000'000 + 1'500'000;
    record.site = 1;
    record.bytes = 1024;
    record.op = core::Collective::allreduce;
    c.sample.add({n, record});
  }
  c.sample.counted = kCalls;
  if (rank % 1000 == 7) c.warnings = {"a warning"};
  return c;
}

std::size_t in_use() { return mallinfo2().uordblks; }

struct Gathering {
  std::vector<core::TreePlace> places;
  int without = -1;
  std::size_t messages = 0, bytes = 0, largest = 0, most_of_root = 0, most_below = 0, children = 0;
  int depth = 0;

  Merged below(int rank) {
    const core::TreePlace& place = places[static_cast<std::size_t>(rank)];
    const std::size_t before = in_use();
    Merged all;
    all.add(part_of(rank));
    std::size_t& most = rank == 0 ? most_of_root : most_below;
    children = std::max(children, place.children.size());
    depth = std::max(depth, place.level);
    for (const int child : place.children) {
      if (child == without) continue;
      std::string received;
      const bool leaf = places[static_cast<std::size_t>(child)].children.empty();
      if (leaf) part_of(child).serialize(received);
      else below(child).serialize(received);
      ++messages;
      bytes += received.size();
      largest = std::max(largest, received.size());
      Merged several;
      Contribution one;
      if (leaf ? !Contribution::deserialize(received, one) : !Merged::deserialize(received, several)) std::abort();
      most = std::max(most, in_use() - before);  // what it has, the bytes and the part
      if (leaf) all.add(one);
      else all.merge(std::move(several));
    }
    most = std::max(most, in_use() - before);
    return all;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  ranks = std::atoi(argv[1]);
  sites = std::atoi(argv[2]);
  per_host = std::atoi(argv[3]);
  const bool star = argc == 6 && std::strcmp(argv[5], "star") == 0;
  std::vector<int> hosts;
  for (int r = 0; r < ranks; ++r) hosts.push_back(r / per_host);
  const auto begin = std::chrono::steady_clock::now();
  Gathering g;
  Merged all;
  if (star) {
    for (int r = 0; r < ranks; ++r) all.add(part_of(r));
  } else {
    g.places = core::places_in_tree(hosts);
    g.without = argc == 6 ? std::atoi(argv[5]) : -1;
    all = g.below(0);
  }
  const std::chrono::duration<double> gathering = std::chrono::steady_clock::now() - begin;
  const std::size_t members = all.members.size();
  const auto done =
      profiles::write_file(argv[4], [&](const profiles::Sink& sink) { profiles::write_profile(all, sink); });
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  constexpr double kMiB = 1 << 20;
  std::printf(
      "ranks %d sites %d members %zu depth %d children %zu messages %zu MiB %.1f largest_MiB %.2f "
      "below_MiB %.2f root_MiB %.2f gather_s %.2f write_s %.2f\n",
      ranks, sites, members, g.depth, g.children, g.messages, static_cast<double>(g.bytes) / kMiB,
      static_cast<double>(g.largest) / kMiB, static_cast<double>(g.most_below) / kMiB,
      static_cast<double>(g.most_of_root) / kMiB, gathering.count(), (whole - gathering).count());
  return done ? 0 : 1;
}
