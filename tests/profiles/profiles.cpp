// SPDX-License-Identifier: BSD-3-Clause
// Histograms, accumulation per site, serialization of contributions, and the profile file.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "profiles/format/decisions.hpp"
#include "profiles/format/history.hpp"
#include "profiles/format/keys.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/format/prometheus.hpp"

using namespace latecomer::profiles;
namespace core = latecomer::core;

namespace {

nlohmann::ordered_json object_of(const Histogram& h) {
  std::string text;
  h.write_json(text, "ns");
  return nlohmann::ordered_json::parse(text);
}

}  // namespace

TEST_CASE("histogram: counts, moments, quantiles, merging", "[histogram]") {
  Histogram h, a, b;
  core::SplitMix64 random(3);
  std::vector<std::int64_t> values;
  for (int i = 0; i < 10'000; ++i) {
    const auto v = static_cast<std::int64_t>(std::exp(random.uniform() * 20));
    values.push_back(v);
    h.add(v);
    (i % 3 ? a : b).add(v);
  }
  std::sort(values.begin(), values.end());
  for (const double q : {0.1, 0.5, 0.9, 0.99}) {
    const double exact = static_cast<double>(values[static_cast<std::size_t>(q * 10'000)]);
    if (exact > 64) CHECK(std::abs(std::log2(h.quantile(q) / exact)) < 0.3);
  }
  CHECK(h.max() == values.back());
  a.merge(b);
  CHECK(object_of(a)["counts"] == object_of(h)["counts"]);
  CHECK(a.mean() == Approx(h.mean()));
  CHECK(a.stddev() == Approx(h.stddev()));
  const auto json = object_of(h);
  REQUIRE(json["edges"].size() == json["counts"].size() + 1);
  std::uint64_t total = 0;
  for (const auto& c : json["counts"]) total += c.get<std::uint64_t>();
  CHECK(total == 10'000);
  CHECK(object_of(Histogram())["counts"].empty());
}

TEST_CASE("histogram: the counts of many ranks exceed 32 bits", "[histogram]") {
  // 4,300 ranks call an allreduce of 2 us a million times each, and one call in 1,000 takes 5 ms.
  LocalSite rank;
  for (int i = 0; i < 1'000'000; ++i) rank.add(i % 1000 == 0 ? 5'000'000 : 2'000, 8);
  LocalSite all;
  for (int r = 0; r < 4300; ++r) all.merge(rank);
  CHECK(all.elapsed.count() == 4'300'000'000);
  CHECK(std::abs(std::log2(all.elapsed.quantile(0.5) / 2000)) < 0.3);
  CHECK(std::abs(std::log2(all.elapsed.quantile(0.99) / 2000)) < 0.3);
  std::uint64_t total = 0;
  const auto json = object_of(all.elapsed);
  for (const auto& c : json["counts"]) total += c.get<std::uint64_t>();
  CHECK(total == 4'300'000'000);
  Contribution one, read;
  one.job.ranks = 1;
  one.local[{1, core::Collective::allreduce, 4300}].merge(all);
  std::string bytes;
  one.serialize(bytes);
  REQUIRE(Contribution::deserialize(bytes, read));
  CHECK(read.local.entries().front().site.elapsed.quantile(0.5) == all.elapsed.quantile(0.5));
}

TEST_CASE("histogram: every value lies between its bucket's edges", "[histogram]") {
  for (std::int64_t v = 0; v < 100'000; v = v < 200 ? v + 1 : v + v / 37) {
    Histogram h;
    h.add(v);
    const auto json = object_of(h);
    REQUIRE(json["counts"].size() == 1);
    CHECK(json["edges"][0].get<double>() <= static_cast<double>(v));
    CHECK(static_cast<double>(v) <= json["edges"][1].get<double>());
  }
}

namespace {
CallRecord record(Nanoseconds arrival, Nanoseconds exit, std::uint64_t site, int root = -1) {
  CallRecord r;
  r.arrival = arrival;
  r.exit = exit;
  r.site = site;
  r.root = root;
  r.bytes = 100;
  r.op = root >= 0 ? core::Collective::bcast : core::Collective::allreduce;
  return r;
}
}  // namespace

TEST_CASE("peers: exact for eight ranks, and for more the sum is exact", "[record]") {
  Peers few, many, merged;
  for (int i = 0; i < 80; ++i) few.add(i % 8, i % 8 + 1);
  REQUIRE(few.all().size() == Peers::kKept);
  for (const auto& [rank, waited] : few.all()) CHECK(waited == 10 * (rank + 1));
  core::SplitMix64 random(7);
  Nanoseconds sum = 0, of_common = 0;
  for (int i = 0; i < 10'000; ++i) {
    const bool common = random.below(2) == 0;
    const Nanoseconds waited = 1 + static_cast<Nanoseconds>(random.below(100));
    many.add(common ? 5 : static_cast<Rank>(10 + random.below(1000)), waited);
    sum += waited;
    if (common) of_common += waited;
  }
  merged.merge(many);
  merged.merge(few);
  Nanoseconds kept = 0, most = 0, all = 0;
  Rank longest = -1;
  for (const auto& [rank, waited] : many.all()) {
    kept += waited;
    if (waited > most) {
      most = waited;
      longest = rank;
    }
  }
  for (const auto& peer : merged.all()) all += peer.waited;
  CHECK(kept == sum);
  CHECK(longest == 5);
  CHECK((most >= of_common && most <= of_common + sum / 8));
  CHECK(all == sum + 360);
}

TEST_CASE("sums of any figures end at the largest number, as those of a damaged snapshot", "[record]") {
  CHECK(plus(INT64_MAX - 1, 1) == INT64_MAX);
  CHECK(plus(INT64_MAX, INT64_MAX) == INT64_MAX);
  CHECK(plus(INT64_MIN, INT64_MIN) == INT64_MIN);
  CHECK(plus(INT64_MIN, INT64_MAX) == -1);
  CHECK(plus(0, INT64_MAX / 2, 3) == INT64_MAX);
  CHECK(plus(5, INT64_MIN / 2, 3) == INT64_MIN);
  CHECK(plus(5, 7, 3) == 26);
  Usage most;
  most.wall = INT64_MAX;
  most.blocked = INT64_MIN;
  Peers peers;
  peers.add(3, INT64_MAX);
  LocalSite site;
  for (int i = 0; i < 2; ++i) site.before.add(most, peers, 4);
  site.merge(LocalSite(site));
  CHECK(site.before.sum.wall == INT64_MAX);
  CHECK(site.before.sum.blocked == INT64_MIN);
  CHECK(site.before.peers.all().front().waited == INT64_MAX);
}

TEST_CASE("profile: whom a rank waited for, and the kernel's time of page faults", "[profile]") {
  std::vector<Contribution> parts(2);
  const SiteKey key{7, core::Collective::allreduce, 2};
  for (int r = 0; r < 2; ++r) {
    Contribution& p = parts[static_cast<std::size_t>(r)];
    p.rank = r;
    p.job.ranks = 2;
    LocalSite& site = p.local[key];
    site.add(100, 8);
    Usage usage;
    usage.wall = 1000;
    usage.messages = 300;
    usage.other_mpi = 20;
    usage.kernel = 400;
    usage.faulting = r == 0 ? 900 : 150;
    usage.threads = 50;
    Peers peers;
    if (r == 1) {
      peers.add(0, 100);
      peers.add(3, 200);
    }
    site.before.add(usage, peers, 1);
    site.before.add(usage, {}, 3);
    p.process.peers = peers;
    std::string bytes;
    p.serialize(bytes);
    Contribution read;
    REQUIRE(Contribution::deserialize(bytes, read));
    p.patterns.job_of(2);
    const CallRecord records[] = {record(0, 50, 7), record(10, 50, 7)};
    const CallRecord* both[] = {&records[0], &records[1]};
    const Rank world[] = {0, 1};
    if (r == 0) read.patterns.add(both, world, 0, nullptr);
    p = std::move(read);
  }
  const auto profile = nlohmann::json::parse(write_profile(std::move(parts)));
  const auto& site = profile["sites"][0];
  CHECK_FALSE(site["before"].contains("waits_for"));
  const auto& rows = profile["rank_rows"][0];
  CHECK(rows[0]["before"]["page_faults_ns"] == 400);
  CHECK_FALSE(rows[0]["before"].contains("waits_for"));
  const auto& before = rows[1]["before"];
  CHECK(before["page_faults_ns"] == 150);
  CHECK(before["threads_ns"] == 50);
  REQUIRE(before["waits_for"].size() == 2);
  CHECK((before["waits_for"][0]["rank"] == 3 && before["waits_for"][0]["wait_ns"] == 50));
  CHECK((before["waits_for"][1]["rank"] == 0 && before["waits_for"][1]["wait_ns"] == 25));
  CHECK((before["samples"] == 2 && before["stand_for"] == 4 && before["messages_ns"] == 300 &&
         before["other_mpi_ns"] == 20));
  CHECK_FALSE(profile["processes"][0].contains("waits_for"));
  const auto& whole = profile["processes"][1]["waits_for"];
  REQUIRE(whole.size() == 2);
  CHECK((whole[0]["rank"] == 3 && whole[0]["wait_ns"] == 200));
}

TEST_CASE("site book: the papers' definitions", "[record]") {
  SiteBook book;
  const CallRecord r[] = {record(1000, 9000, 7), record(5000, 9500, 7), record(2000, 8000, 7)};
  const CallRecord* all[] = {&r[0], &r[1], &r[2]};
  const Rank world[] = {4, 5, 6};
  core::Network network;
  network.alpha_ns = 1000;
  book.add(all, world, 0, &network);
  const auto& [key, site] = *book.sites().begin();
  CHECK(key.comm_size == 3);
  CHECK(site.imbalance.mean() == 4000);
  CHECK(site.after_last.mean() == 4500);
  CHECK(site.factor_milli.mean() == 4000);
  CHECK(site.ranks.at(5).last_count == 1);
  CHECK(site.ranks.at(6).offset.mean() == 1000);
  CHECK(site.divergent_calls == 0);
  CHECK(site.dispatch.at(0).elapsed_sum == Approx((8000 + 4500 + 6000) / 3.0));
}

TEST_CASE("site book: ties within the uncertainty have no last rank; rooted calls belong to the root", "[record]") {
  SiteBook book;
  const CallRecord r[] = {record(1000, 2000, 7, 1), record(1040, 2000, 8, 1)};
  const CallRecord* all[] = {&r[0], &r[1]};
  const Rank world[] = {0, 1};
  book.add(all, world, 50, nullptr);
  const auto& [key, site] = *book.sites().begin();
  CHECK(key.site == 8);
  CHECK(site.divergent_calls == 1);
  CHECK(site.ranks.at(1).last_count == 0);
  CHECK(site.factor_milli.count() == 0);
}

TEST_CASE("site book: a rank waits for the rank that its collective needs, until its own exit at most", "[record]") {
  // Arrivals 0, 30, 10, 50; all leave at 60, but rank 0 of the second row leaves at 20.
  const auto waits = [](core::Collective op, Rank root, core::CallKind kind, Nanoseconds first_exit) {
    CallRecord records[4];
    const CallRecord* all[4];
    for (int i = 0; i < 4; ++i) {
      records[i].arrival = std::array{0, 30, 10, 50}[static_cast<std::size_t>(i)];
      records[i].exit = i == 0 ? first_exit : 60;
      records[i].op = op;
      records[i].root = root;
      records[i].kind = kind;
      all[i] = &records[i];
    }
    SiteBook book;
    const Rank world[] = {0, 1, 2, 3};
    book.add(all, world, 0, nullptr);
    std::vector<std::pair<double, double>> out;  // waited, awaited
    for (const auto& [row, offsets] : book.sites().begin()->second.ranks.rows())
      out.emplace_back(offsets.waited_ns, offsets.awaited_ns);
    return out;
  };
  using Rows = std::vector<std::pair<double, double>>;
  using core::Collective;
  const auto blocking = core::CallKind::blocking;
  CHECK(waits(Collective::allreduce, -1, blocking, 60) == Rows{{50, 0}, {20, 0}, {40, 0}, {0, 110}});
  CHECK(waits(Collective::allreduce, -1, blocking, 20) == Rows{{20, 0}, {20, 0}, {40, 0}, {0, 80}});
  CHECK(waits(Collective::gather, 2, blocking, 60) == Rows{{0, 0}, {0, 0}, {40, 0}, {0, 40}});
  CHECK(waits(Collective::reduce, 3, blocking, 60) == Rows{{0, 0}, {0, 0}, {0, 0}, {0, 0}});
  CHECK(waits(Collective::bcast, 1, blocking, 60) == Rows{{30, 0}, {0, 50}, {20, 0}, {0, 0}});
  CHECK(waits(Collective::scan, -1, blocking, 60) == Rows{{0, 0}, {0, 20}, {20, 0}, {0, 0}});
  CHECK(waits(Collective::neighbor_alltoall, -1, blocking, 60) == Rows{{0, 0}, {0, 0}, {0, 0}, {0, 0}});
  CHECK(waits(Collective::allreduce, -1, core::CallKind::nonblocking, 60) == Rows{{0, 0}, {0, 0}, {0, 0}, {0, 0}});
}

TEST_CASE("site book: callers split a site and keep its sums, beyond the limit they share the site", "[record]") {
  Contribution part;
  part.job.ranks = 2;
  part.finished = true;
  const Rank world[] = {0, 1};
  std::uint64_t calls = 0;
  const auto call = [&](std::uint32_t callers, std::uint32_t others, Nanoseconds late) {
    CallRecord r[] = {record(1000, 9000, 7), record(1000 + late, 9000, 7)};
    r[0].callers = callers;
    r[1].callers = others;
    const CallRecord* all[] = {&r[0], &r[1]};
    CHECK_FALSE(part.patterns.add(all, world, 0, nullptr));
    for (const std::uint32_t c : {callers, others}) part.local[{7, core::Collective::allreduce, 2, c}].add(100, 8);
    ++calls;
  };
  part.frames = {{7, "/bin/a", "ab", 0x10, "", "", 0},
                 {7, "/bin/a", "ab", 0x20, "", "", 0, 5},
                 {7, "/bin/a", "ab", 0x30, "", "", 0, 5},
                 {7, "/bin/a", "ab", 0x40, "", "", 0, 6}};
  const auto written = [&] {
    std::string bytes;
    part.serialize(bytes);
    Contribution read;
    REQUIRE(Contribution::deserialize(bytes, read));
    std::vector<Contribution> parts;
    parts.push_back(std::move(read));
    return nlohmann::json::parse(write_profile(std::move(parts)))["sites"];
  };
  for (int i = 0; i < 3; ++i) call(5, 5, 2000);
  call(6, 6, 500);
  call(0, 0, 100);
  nlohmann::json site = written()[0];
  CHECK(site["id"] == SiteKey{7, core::Collective::allreduce, 2}.id());
  CHECK(site["frames"].size() == 1);
  CHECK(site["waited_ns"] == 6600);
  REQUIRE(site["callers"].size() == 3);
  const nlohmann::json& first = site["callers"][0];
  CHECK(first["frames"].size() == 2);
  CHECK(first["frames"][1]["offset"] == "0x30");
  CHECK(first["calls"] == 3);
  CHECK(first["waited_ns"] == 6000);
  CHECK(first["mean_imbalance_ns"] == 2000);
  CHECK(first["awaited"][0]["rank"] == 1);
  CHECK(first["awaited"][0]["awaited_ns"] == 6000);
  CHECK(site["callers"][2]["frames"].empty());  // not told apart
  // Ranks that come from different callers: the call counts once, at the caller of the first rank.
  call(6, 5, 10000);
  site = written()[0];
  CHECK(site["divergent_calls"] == 0);
  CHECK(site["calls"] == 6);
  CHECK(site["callers"][0]["frames"][0]["offset"] == "0x40");
  CHECK(site["callers"][0]["calls"] == 2);
  // More callers than the limit.
  for (std::uint32_t c = 100; c < 100 + 2 * kMostWithCallers; ++c) call(c, c, 1000);
  CHECK(part.patterns.sites().size() <= kMostWithCallers + 1);
  CHECK(part.local.entries().size() <= kMostWithCallers + 1);
  const auto sites = written();
  REQUIRE(sites.size() == 1);
  CHECK(sites[0]["calls"] == calls);
  std::uint64_t sum = 0;
  double waited = 0;
  for (const auto& caller : sites[0]["callers"]) {
    sum += caller["calls"].get<std::uint64_t>();
    waited += caller["waited_ns"].get<double>();
  }
  CHECK(sum == calls);
  CHECK(waited == sites[0]["waited_ns"]);
}

TEST_CASE("rank sums: those of single ranks, whatever shares a row, a site or a leader", "[record]") {
  using core::Collective;
  struct Sums {
    double waited = 0, awaited = 0, last = 0, late = 0, calls = 0;
  };
  for (const int ranks : {6, 3 * kMostRows}) {
    core::SplitMix64 random(3);
    std::vector<Contribution> parts;
    std::map<Rank, Sums> expected;
    // Each leader leads a communicator of six ranks that lie apart, and one of two of them.
    const Rank step = ranks / 6;
    for (int leader = 0; leader < 2; ++leader) {
      Contribution& part = parts.emplace_back();
      part.job.ranks = ranks;
      part.rank = leader;
      part.finished = true;
      part.patterns.job_of(ranks);
      for (const Rank members : {6, 2, 1})
        for (int i = 0; i < 20; ++i) {
          std::vector<CallRecord> records;
          std::vector<const CallRecord*> all;
          std::vector<Rank> world;
          for (Rank m = 0; m < members; ++m) {
            const auto arrival = static_cast<Nanoseconds>(random.below(1'000'000));
            records.push_back(record(arrival, 2'000'000, 7 + static_cast<std::uint64_t>(i % 2)));
            world.push_back(m * step + (m % 2 == 1 && step > 1 ? 1 - step : 0));  // with 6 ranks: 0 to 5
          }
          for (const CallRecord& one : records) all.push_back(&one);
          part.patterns.add(all, world, 0, nullptr);
          for (const CallRecord& one : records) part.local[{one.site, one.op, members}].add(one.exit - one.arrival, 8);
          const auto latest = std::ranges::max_element(records, {}, &CallRecord::arrival) - records.begin();
          for (Rank m = 0; m < members && members > 1; ++m) {
            Sums& sum = expected[world[static_cast<std::size_t>(m)]];
            const auto own = static_cast<double>(records[static_cast<std::size_t>(m)].arrival);
            double others = 0;
            for (Rank o = 0; o < members; ++o)
              if (o != m) others += static_cast<double>(records[static_cast<std::size_t>(o)].arrival) / (members - 1);
            const double wait = static_cast<double>(records[static_cast<std::size_t>(latest)].arrival) - own;
            sum.waited += wait;
            expected[world[static_cast<std::size_t>(latest)]].awaited += wait;
            sum.last += m == latest;
            sum.late += own - others;
            ++sum.calls;
          }
        }
      std::string bytes;
      part.serialize(bytes);
      part = {};
      REQUIRE(Contribution::deserialize(bytes, part));
    }
    const auto json = nlohmann::json::parse(write_profile(std::move(parts)));
    REQUIRE(json["rank_sums"].size() == expected.size());
    for (const auto& found : json["rank_sums"]) {
      const Sums& sum = expected.at(found["rank"].get<Rank>());
      CHECK(found["waited_ns"] == sum.waited);
      CHECK(found["awaited_ns"] == sum.awaited);
      CHECK(found["last_count"] == sum.last);
      CHECK(found["calls"] == sum.calls);
      CHECK(found["mean_lateness_ns"].get<double>() == Approx(sum.late / sum.calls).margin(1e-3));
    }
    // The rows have the same sums, together where ranks share them.
    std::map<Rank, Sums> rows, grouped;
    const int per = ranks_per_row(ranks);
    for (std::size_t i = 0; i < json["sites"].size(); ++i)
      for (const auto& row : json["rank_rows"][i]) {
        Sums& sum = rows[row["rank"].get<Rank>()];
        sum.waited += row["waited_ns"].get<double>();
        sum.awaited += row["awaited_ns"].get<double>();
        if (json["sites"][i]["comm_size"] != 1) sum.last += row["last_count"].get<double>();
      }
    for (const auto& [rank, sum] : expected) {
      Sums& all = grouped[rank / per * per];
      all.waited += sum.waited;
      all.awaited += sum.awaited;
      all.last += sum.last;
    }
    CHECK(grouped.size() == (per == 1 ? 6 : 4));
    for (const auto& [rank, sum] : grouped) {
      CHECK(rows[rank].waited == sum.waited);
      CHECK(rows[rank].awaited == sum.awaited);
      CHECK(rows[rank].last == sum.last);
    }
  }
}

TEST_CASE("contribution: serialization keeps all values; incomplete bytes are refused", "[record]") {
  Contribution c;
  c.process.core_list = "0-3,8";
  c.job.ranks = 4;
  c.rank = 3;
  c.host = "node7";
  c.clock_offset = -5;
  c.warnings = {"x"};
  c.plans = {"{}"};
  c.frames.push_back({11, "/bin/a", "abcd", 0x123, "", "", 0});
  c.local[{11, core::Collective::allreduce, 4}].add(1, 8);
  c.logs.push_back({99, 2, 1, 3, 16, {record(1, 2, 11), record(3, 4, 11)}});
  SiteBook book;
  const CallRecord r = record(1, 5, 11), s = record(2, 5, 11);
  const CallRecord* two[] = {&r, &s};
  const Rank world[] = {3, 1};
  book.add(two, world, 0, nullptr);
  c.patterns = book;
  std::string bytes, again;
  c.serialize(bytes);
  Contribution back;
  REQUIRE(Contribution::deserialize(bytes, back));
  back.serialize(again);
  CHECK(again == bytes);
  CHECK(back.logs[0].records[1].arrival == 3);
  CHECK(back.process.core_list == "0-3,8");
  for (std::size_t cut = 0; cut < bytes.size(); cut += 97) {
    Contribution torn;
    CHECK_FALSE(Contribution::deserialize(std::string_view(bytes).substr(0, cut), torn));
  }
}

TEST_CASE("contribution: ranks that no job has are refused", "[record]") {
  for (const auto& [ranks, rank] : {std::pair{-4096, 0}, {0, 0}, {4, -1}, {4, 4}}) {
    Contribution c, read;
    c.job.ranks = ranks;
    c.rank = rank;
    std::string bytes;
    c.serialize(bytes);
    CHECK_FALSE(Contribution::deserialize(bytes, read));
  }
}

TEST_CASE("profile: text that is not UTF-8 is replaced everywhere", "[profile]") {
  const std::string bad = "caf\xe9", good = "caf\ufffd";
  Contribution c;
  c.job = {bad, bad, bad, bad, bad, 1, 1, NetworkFrom::none, false, {}, {}};
  c.host = c.process.core_list = bad;
  c.warnings = {bad + " \xe2\x82"};
  const SiteKey key{7, core::Collective::allreduce, 1, 9};
  c.local[key].add(1000, 8);
  for (const std::uint32_t callers : {0u, 9u}) c.frames.push_back({7, bad, bad, 16, bad, bad, 3, callers});
  c.decisions = {"{\"site\":\"" + bad + "\"}"};
  c.plans = {bad, std::string(100'000, '[')};
  const std::string text = write_profile({c});
  const auto profile = nlohmann::json::parse(text);  // throws where the text is not UTF-8
  CHECK(profile["job"]["program"] == good);
  CHECK(profile["job"]["hosts"][0] == good);
  CHECK(profile["sites"][0]["frames"][0]["function"] == good);
  CHECK(profile["sites"][0]["callers"][0]["frames"][0]["module"] == good);
  CHECK(profile["warnings"][0] == "rank 0: " + good + " \ufffd");
  CHECK(profile["plans"].empty());
  c.patterns.at(key).calls = 1;
  const std::string labels = prometheus_text(metrics_of(c, 10, 10));
  CHECK(labels.find("program=\"" + good + "\"") != std::string::npos);
  CHECK(labels.find("place=\"" + good + " (" + good + ":3)\"") != std::string::npos);
  CHECK(labels == core::utf8(labels));
}

namespace {

Setup setup_of_two() {
  JobInfo job;
  job.program = "/home/me/program";
  job.ranks = 2;
  job.mpi_library = "MPICH 4";
  return setup_of(job, {0, 1});
}

core::Learned winner(const char* algorithm, std::uint64_t signature, std::uint64_t site) {
  core::Learned one;
  one.signature = signature;
  one.site = site;
  one.segments = 8;
  one.calls = 100;
  one.algorithm = core::index_of(core::find_algorithm(core::Collective::allreduce, algorithm));
  one.pattern = {0, 1000};
  one.measured_ns = 800;
  one.native_measured_ns = 1000;
  return one;
}

nlohmann::ordered_json learned_of_two(const Setup& setup = setup_of_two(), const char* algorithm = "slt") {
  return nlohmann::ordered_json::parse(learned_json(setup, {winner(algorithm, 255, 7)}, {}, {}));
}

/// A profile of 2 ranks with a winner, as a history.
nlohmann::ordered_json history_of_two() {
  return {{"format", "latecomer-profile"}, {"job", {{"ranks", 2}}}, {"learned", learned_of_two()}};
}

core::Result<History> read_as_history(const std::string& text) {
  const std::string path = "history-" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << text;
  auto out = read_history(path, setup_of_two());
  std::remove(path.c_str());
  return out;
}

}  // namespace

TEST_CASE("history: damage is an error with its place, and never an exception", "[history]") {
  const auto good = read_as_history(history_of_two().dump());
  REQUIRE(good);
  REQUIRE(good->plan.entries.size() == 1);
  CHECK(good->plan.entries[0].segments == 8);
  CHECK(good->plan.patterns == std::vector<std::vector<core::Nanoseconds>>{{0, 1000}});
  const std::pair<const char*, nlohmann::ordered_json> damages[] = {
      {"/format", 5},
      {"/job", 5},
      {"/job/ranks", 1e300},
      {"/job/ranks", "2"},
      {"/learned/sites/0/segments", 2147483647},
      {"/learned/sites/0/segments", 18446744073709551615u},
      {"/learned/sites/0/segments", -1},
      {"/learned/sites/0/signature", "zz"},
      {"/learned/sites/0/pattern_ns", -2},
      {"/learned/sites/0/overlap", 1},
      {"/learned/sites/0/pattern_ns", {1}},  // would be read beyond its end
      {"/learned/sites/0/pattern_ns/1", nullptr},
      {"/learned/sites/0/sizes_bytes", {1, -1}},
      {"/learned/sites/0/sizes_bytes", {1, 1e300}}};
  for (const auto& [place, value] : damages) {
    auto history = history_of_two();
    history[nlohmann::ordered_json::json_pointer(place)] = value;
    INFO(place << " = " << value);
    const auto read = read_as_history(history.dump());
    REQUIRE_FALSE(read);
    CHECK(read.error().find("history: 'history-") == 0);
    CHECK(read.error().find("exception") == std::string::npos);
  }
  auto large = history_of_two();
  large["learned"]["sites"][0]["segments"] = 2147483647;
  CHECK(read_as_history(large.dump())
            .error()
            .find("learned.sites[0].segments: expected a whole number from 0 to 16777216, got 2147483647") !=
        std::string::npos);
  for (const std::string& text : {std::string(), std::string("["), std::string("1e999"), std::string("\xff"),
                                  "{\"format\":\n" + std::string(600'000, '[')})
    CHECK_FALSE(read_as_history(text));
  CHECK(read_as_history("{\"format\":\n" + std::string(600'000, '[')).error().find("line 2: ") != std::string::npos);
}

TEST_CASE("history: another setup is no history, and the reason says what differs", "[history]") {
  const auto why = [](auto change) {
    Setup other = setup_of_two();
    change(other);
    auto history = history_of_two();
    history["learned"] = learned_of_two(other);
    const auto read = read_as_history(history.dump());
    REQUIRE(read);
    CHECK(read->plan.empty() != read->why_not.empty());
    CHECK(read->winners.empty() != read->why_not.empty());
    return read->why_not;
  };
  CHECK(why([](Setup&) {}).empty());
  CHECK(why([](Setup& s) { s.program = "other"; }).empty());  // the user has named the profile
  CHECK(why([](Setup& s) { s.hosts = 1; }) == "it is of 1 hosts, not of 2");
  CHECK(why([](Setup& s) { ++s.placement; }) == "it is of another placement of ranks on hosts");
  CHECK(why([](Setup& s) { s.mpi_library = "MPICH 5"; }) == "it is of another MPI library");
  CHECK(why([](Setup& s) { ++s.catalogue; }) == "it is of another version of latecomer");
  auto none = history_of_two();
  none.erase("learned");
  CHECK(read_as_history(none.dump())->why_not == "no algorithm has won in it");
}

TEST_CASE("learn: the file keeps the latest run of each setup, at most 16, also with several jobs at once",
          "[history]") {
  const std::string path = "learn-" + std::to_string(getpid()) + ".json";
  std::remove(path.c_str());
  const auto text = [&] { return *core::read_file(path); };
  REQUIRE(keep_learned(path, learned_of_two().dump()));
  Setup other = setup_of_two();
  other.program = "other";
  REQUIRE(keep_learned(path, learned_of_two(other, "ring").dump()));
  const auto mine = read_history(path, setup_of_two()), its = read_history(path, other);
  REQUIRE(mine);
  REQUIRE(its);
  REQUIRE(mine->plan.entries.size() == 1);
  CHECK(core::algorithm_at(mine->plan.entries[0].algorithm).name == "slt");
  CHECK(core::algorithm_at(its->plan.entries[0].algorithm).name == "ring");
  CHECK(mine->plan.patterns == std::vector<std::vector<core::Nanoseconds>>{{0, 1000}});
  core::Signature unknown;
  CHECK(mine->winner_of(SiteKey{7, core::Collective::allreduce, 2}.id(), unknown) == nullptr);
  // A later run takes the place of the earlier. Winners of sites that it has not reached stay.
  const std::string again = learned_json(setup_of_two(), {winner("prr", 256, 7)}, {}, *mine);
  REQUIRE(keep_learned(path, again));
  CHECK(read_history(path, setup_of_two())->plan.entries.size() == 2);
  core::SlotReport reached;
  reached.site = 7;
  reached.signature.op = core::Collective::allreduce;
  const History earlier = [&] {
    History out;
    core::Learned lost = winner("slt", reached.signature.hash(), 0);
    out.winners[SiteKey{7, core::Collective::allreduce, 2}.id()].push_back(lost);
    return out;
  }();
  CHECK(nlohmann::json::parse(learned_json(setup_of_two(), {}, {reached}, earlier))["sites"].empty());
  for (int i = 0; i < 40; ++i) {
    other.program = "p" + std::to_string(i);
    REQUIRE(keep_learned(path, learned_of_two(other).dump()));
  }
  CHECK(nlohmann::json::parse(text())["runs"].size() == 16);
  CHECK(read_history(path, other)->plan.entries.size() == 1);
  CHECK(read_history(path, setup_of_two())->why_not == "its latest run is of the program p39");
  // Jobs that end at the same time.
  // A profile serves as what an earlier run learned, and stays as it is.
  std::ofstream(path) << history_of_two().dump();
  REQUIRE(keep_learned(path, learned_of_two(other).dump()));
  CHECK(text() == history_of_two().dump());
  std::remove(path.c_str());
  std::vector<pid_t> jobs;
  for (int k = 0; k < 8; ++k) {
    jobs.push_back(fork());
    if (jobs.back() != 0) continue;
    other.program = "job" + std::to_string(k);
    bool good = true;
    for (int i = 0; i < 20; ++i) good = good && keep_learned(path, learned_of_two(other).dump());
    _exit(good ? 0 : 1);
  }
  for (const pid_t job : jobs) {
    int status = 0;
    REQUIRE(waitpid(job, &status, 0) == job);
    CHECK(status == 0);
  }
  CHECK(nlohmann::json::parse(text())["runs"].size() == 8);
  // Another file stays as it is.
  for (const std::string& mistake : {std::string("important"), std::string("{}"), std::string("{\"format\": 5}"),
                                     std::string("{\"format\": \"latecomer-learned\", \"runs\": [5]}")}) {
    std::ofstream(path) << mistake;
    CHECK_FALSE(keep_learned(path, learned_of_two().dump()));
    CHECK(text() == mistake);
  }
  std::remove(path.c_str());
}

TEST_CASE("profile: logs of several members are matched by number", "[profile]") {
  std::vector<Contribution> parts(2);
  for (int rank = 0; rank < 2; ++rank) {
    parts[static_cast<std::size_t>(rank)].rank = rank;
    Log log{5, 2, rank, rank, static_cast<std::uint64_t>(rank), {}};
    for (int i = rank; i < 10; ++i) {
      log.records.push_back(record(1000 * i + 100 * rank, 1000 * i + 500, 7));
      parts[static_cast<std::size_t>(rank)].local[{7, core::Collective::allreduce, 2}].add(
          log.records.back().exit - log.records.back().arrival, log.records.back().bytes);
    }
    parts[static_cast<std::size_t>(rank)].logs.push_back(log);
  }
  for (auto& part : parts) {
    part.job.ranks = 2;
    part.finished = true;
  }
  const auto json = nlohmann::json::parse(write_profile(parts));
  REQUIRE(json["sites"].size() == 1);
  CHECK(json["sites"][0]["patterns"] == 9);
  CHECK(json["sites"][0]["imbalance_ns"]["mean"] == 100);
  CHECK(json["rank_rows"][0][1]["last_count"] == 9);
  bool said = false;
  for (const auto& w : json["warnings"])
    said = said || w.get<std::string>().find("1 call records have no partner on every rank") == 0;
  CHECK(said);
}

TEST_CASE("profile: figures of the network are added to a whole file", "[profile]") {
  Contribution c;
  c.job.ranks = 1;
  c.finished = true;
  c.job.command_line = R"(solver "network": null, "network_from": null)";
  c.job.program = std::string(100'000, 'x');  // more than one piece of the copy
  const std::string path = "added_network.json", before = write_profile({c});
  REQUIRE(write_file(path, before));
  core::Network figures;
  figures.beta_ns_per_byte = 0.25;
  figures.latency_ns = 800;
  REQUIRE(add_network(path, figures));
  const auto text = core::read_file(path);
  REQUIRE(text);
  auto after = nlohmann::ordered_json::parse(*text), expected = nlohmann::ordered_json::parse(before);
  CHECK(after["job"]["network"]["beta_ns_per_byte"] == 0.25);
  CHECK(after["job"]["network_from"] == "end");
  after["job"]["network"] = after["job"]["network_from"] = nullptr;
  CHECK(after == expected);
  // A second time, the figures are known.
  CHECK_FALSE(add_network(path, figures));
  CHECK(*core::read_file(path) == *text);
  CHECK_FALSE(add_network("no_such_profile.json", figures));
  std::remove(path.c_str());
}

TEST_CASE("profile: a time below 0 is written as 0 where the reader refuses it", "[profile]") {
  struct Times {
    double own;
    std::optional<std::int64_t> other;
  };
  const auto keys = table(key("own", "", &Times::own), key("late", "", &Times::own).with_sign(),
                          key("other", "", &Times::other), key("spare", "", &Times::own).if_any());
  const Times wrong{-5, -7};
  CHECK(keys.json(wrong).dump() == R"({"own":0.0,"late":-5.0,"other":0})");
  std::string text = "{";
  keys.append(text, wrong);
  CHECK(nlohmann::ordered_json::parse(text + "}") == keys.json(wrong));
}

TEST_CASE("profile: the load of a host comes from one of its ranks, and what is not known is null", "[profile]") {
  std::vector<Contribution> parts(3);
  for (int r = 0; r < 3; ++r) {
    parts[static_cast<std::size_t>(r)].job.ranks = 3;
    parts[static_cast<std::size_t>(r)].rank = r;
  }
  CHECK(!nlohmann::json::parse(write_profile(parts)).contains("hosts"));
  parts[0].loads = {{.host = "a", .ranks = 2, .cores = 4, .usable = 4, .span = 1000, .busy = 700, .job = 300}};
  parts[2].loads = {{.host = "b", .ranks = 1, .cores = 4, .span = 1000, .throttled = 0}};
  std::string bytes;
  parts[2].serialize(bytes);
  REQUIRE(Contribution::deserialize(bytes, parts[2] = {}));
  const auto hosts = nlohmann::json::parse(write_profile(parts))["hosts"];
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0]["host"] == "a");
  const auto &known = hosts[0]["load"], &unknown = hosts[1]["load"];
  CHECK(known["others_ns"] == 400);
  CHECK(known["others_share"] == 0.1);
  CHECK(known["ranks_ns"] == 300);
  CHECK(known["throttled_ns"].is_null());
  CHECK(unknown["throttled_ns"] == 0);
  for (const char* key : {"others_ns", "others_error_ns", "others_share", "ranks_ns", "steal_ns", "pressure_ns"})
    CHECK(unknown[key].is_null());
}

TEST_CASE("profile: calls that figures leave out, by kind, over ranks and nodes", "[profile]") {
  std::vector<Contribution> parts(3);
  for (int r = 0; r < 3; ++r) {
    Contribution& part = parts[static_cast<std::size_t>(r)];
    part.job.ranks = 3;
    part.rank = r;
    part.local[{1, core::Collective::barrier, 3}].add(5, 0);
  }
  CHECK(nlohmann::json::parse(write_profile(parts))["not_counted"].empty());
  parts[1].not_counted.add_rank(Uncounted::neighbours, 4);
  parts[1].local[{3, core::Collective::bcast, 2}].add(5, 8, false, Tally::whole);
  parts[2].local[{3, core::Collective::bcast, 2}].add(5, 8, false, Tally::beside);
  parts[2].local[{}].add(5, 8);
  parts[0].not_counted.add_rank(Uncounted::other_threads, 7);
  parts[2].not_counted.add_rank(Uncounted::other_threads, 2);
  const auto expected = nlohmann::json::parse(R"([{"what": "outside", "calls": 2, "ranks": 2},
      {"what": "neighbours", "calls": 4, "ranks": 1}, {"what": "other_threads", "calls": 9, "ranks": 2},
      {"what": "sites", "calls": 1, "ranks": 1}])");
  CHECK(nlohmann::json::parse(write_profile(parts))["not_counted"] == expected);
  Merged all, below, read;
  all.add(parts[0]);
  below.add(parts[1]);
  below.add(parts[2]);
  std::string bytes, text;
  below.serialize(bytes);
  REQUIRE(Merged::deserialize(bytes, read));
  all.merge(std::move(read));
  write_profile(all, [&](std::string_view piece) { text += piece; });
  CHECK(nlohmann::json::parse(text)["not_counted"] == expected);
}

TEST_CASE("timed sites: the sums over ranks are complete in any order, also where rows are folded", "[record]") {
  // With so many ranks, the rows exceed Merged::kMostIntervals.
  constexpr int kRanks = 4096, kSites = 48;
  const auto part = [](int rank) {
    Contribution out;
    out.rank = rank;
    out.job.ranks = kRanks;
    for (std::uint64_t site = 1; site <= kSites; ++site) {
      TimedSite& one = out.timed_sites.emplace_back(TimedSite{{site, 4}, {}});
      one.sums.calls = 4;
      one.sums.add(4, static_cast<Nanoseconds>(1000 * site));
      one.sums.peers.add((rank + 1) % kRanks, static_cast<Nanoseconds>(site));
    }
    return out;
  };
  const auto merged = [&](bool upwards) {
    Merged all;
    for (int block = 0; block < 4; ++block) {
      Merged below, read;
      for (int i = 0; i < kRanks / 4; ++i) below.add(part((upwards ? block : 3 - block) * kRanks / 4 + i));
      std::string bytes;
      below.serialize(bytes);
      REQUIRE(Merged::deserialize(bytes, read));
      all.merge(std::move(read));
    }
    return all;
  };
  const Merged all = merged(true), other = merged(false);
  REQUIRE(all.timed.size() > 1);
  REQUIRE(all.timed.size() < kSites);
  std::size_t rows = 0;
  Nanoseconds time = 0, waited = 0, folded = 0;
  std::uint64_t calls = 0;
  for (const auto& [key, of] : all.timed)
    for (const auto& [row, sums] : of) {
      ++rows;
      calls += sums.calls;
      time += sums.time;
      if (key.site == 0) folded += sums.time;
      for (const Peers::Peer& peer : sums.peers.all()) waited += peer.waited;
      CHECK(sums.error() == Approx(std::sqrt(0.75) * static_cast<double>(sums.time)).epsilon(key.site == 0 ? 1 : 1e-9));
    }
  CHECK(rows <= Merged::kMostIntervals);
  CHECK(calls == 4ull * kRanks * kSites);
  CHECK(time == 4ll * kRanks * 1000 * kSites * (kSites + 1) / 2);
  CHECK(waited == static_cast<Nanoseconds>(kRanks) * kSites * (kSites + 1) / 2);
  CHECK(folded > 0);
  // The sites with the most time stay, whatever the order.
  for (const auto& [key, of] : other.timed) CHECK(all.timed.contains(key));
  CHECK(all.timed.contains({kSites, 4}));
}

TEST_CASE("messages: lengths by site and sums by pair are complete, however the ranks are merged", "[profiles]") {
  // Three ranks share a row.
  constexpr int kRanks = 3 * PeerTable::kRows - 1;
  const auto part = [](int rank) {
    Contribution c;
    c.rank = rank;
    c.job.ranks = kRanks;
    TimedSite& site = c.timed_sites.emplace_back(TimedSite{{7, 4}, {}});
    site.sums.calls = 2;
    site.lengths.add(rank);
    site.lengths.add(core::Bytes{1} << 40);
    PeerTable table;
    table.begin(kRanks);
    table.of(kRanks - 1).merge({.messages = 2, .bytes = 10, .waited = 5});
    table.for_each([&](const PeerSums& one) { c.peers.push_back(one); });
    return c;
  };
  Merged all;
  for (const int begin : {4, 0}) {
    Merged below, read;
    for (int rank = begin; rank < begin + 4; ++rank) below.add(part(rank));
    std::string bytes;
    below.serialize(bytes);
    REQUIRE(Merged::deserialize(bytes, read));
    all.merge(std::move(read));
  }
  std::string text;
  write_profile(all, [&](std::string_view piece) { text += piece; });
  const auto profile = nlohmann::json::parse(text);
  const auto& site = profile["timed_sites"][0];
  CHECK(site["messages"] == 16);
  CHECK(site["bytes"] == 28 + (std::int64_t{8} << 40));
  CHECK(site["lengths"] == nlohmann::json::parse(R"([{"least": 0, "messages": 1}, {"least": 1, "messages": 1},
      {"least": 2, "messages": 2}, {"least": 4, "messages": 4}, {"least": 1073741824, "messages": 8}])"));
  CHECK(profile["pairs"]["ranks_per_row"] == 3);
  const auto& rows = profile["pairs"]["rows"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[1] == nlohmann::json::parse(R"({"rank": 3, "peer": 765, "messages": 6, "bytes": 30, "wait_ns": 15})"));
  CHECK(rows[2]["messages"] == 4);
}

TEST_CASE("threads: those that did not start MPI have rows and sites of their own, beside the parts", "[profiles]") {
  std::vector<Contribution> parts(2);
  for (int rank = 0; rank < 2; ++rank) {
    Contribution& c = parts[static_cast<std::size_t>(rank)];
    c.rank = rank;
    c.job.ranks = 2;
    c.process.usage.wall = c.process.usage.computing = 1000;
    for (const bool other : {false, true}) {
      TimedSite& one = c.timed_sites.emplace_back(TimedSite{{7, 4, other}, {}});
      one.sums.calls = 1;
      one.sums.add(1, other ? 300 : 200);
    }
  }
  parts[1].process.threads = {{.threads = 3, .calls = 5, .time = {1, 2, 3, 4}},
                              {.threads = 9, .calls = 8, .time = {}, .shared = 1}};
  parts[1].process.all_inside = 77;
  const auto profile = nlohmann::json::parse(write_profile(std::move(parts)));
  CHECK_FALSE(profile["processes"][0].contains("threads"));
  CHECK_FALSE(profile["processes"][0].contains("all_threads_in_mpi_ns"));
  const auto& rows = profile["processes"][1]["threads"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["collectives_ns"] == 1);
  CHECK(rows[0]["other_mpi_ns"] == 4);
  CHECK_FALSE(rows[0].contains("shared"));
  CHECK(rows[1]["shared"] == true);
  CHECK(profile["processes"][1]["all_threads_in_mpi_ns"] == 77);
  CHECK(profile["timed_sites"][0]["time_ns"] == 400);
  CHECK(profile["thread_sites"][0]["time_ns"] == 600);
}

TEST_CASE("site keys: stable values", "[record]") {
  // Profiles and policies contain these values: they must never change.
  CHECK(site_hash("abcd", "/x/y", 0x10) == site_hash("abcd", "/other/z", 0x10));
  CHECK(site_hash("", "/x/y", 0x10) == site_hash("", "/other/y", 0x10));
  CHECK(site_hash("abcd", "", 0x10) != site_hash("abcd", "", 0x11));
  CHECK(SiteKey{site_hash("abcd", "", 0x10), core::Collective::allreduce, 4}.id().size() == 16);
}

TEST_CASE("plans: is_of_world recognises plans of MPI_COMM_WORLD", "[profiles]") {
  core::Plan plan;
  plan.entries.emplace_back();
  CHECK(is_of_world(plan_json(kWorldIdentity, 4, 16, plan, {})));
  CHECK_FALSE(is_of_world(plan_json(kWorldIdentity + 16, 4, 16, plan, {})));
}

TEST_CASE("sites: calls in idle epochs are counted apart from those with arrival patterns", "[profiles]") {
  Contribution c;
  c.job.ranks = 1;
  auto& site = c.local[{11, core::Collective::allreduce, 2}];
  site.add(1, 8);
  site.add(1, 8, true);
  site.add(1, 8, true);
  std::vector<Contribution> parts;
  parts.push_back(std::move(c));
  const auto profile = nlohmann::json::parse(write_profile(std::move(parts)));
  CHECK(profile["sites"][0]["calls"] == 2);  // three calls of single ranks, two ranks per call
  CHECK(profile["sites"][0]["rested"] == 1);
}

TEST_CASE("profile: a warning names an algorithm that never ran, with the calls and the reason", "[profiles]") {
  const auto optimal = core::index_of(core::find_algorithm(core::Collective::scatterv, "optimal")),
             binomial = core::index_of(core::find_algorithm(core::Collective::bcast, "binomial"));
  const auto said = [&](bool decided, bool ran, core::Range comm_size = {}) {
    Contribution c;
    c.job.ranks = 4;
    c.finished = true;
    c.job.forced = {{optimal, 3, {}, comm_size}, {binomial, 4, {}, {}}};
    const SiteKey key{11, core::Collective::scatterv, 4};
    for (int i = 0; i < 4 * 7245; ++i) c.local[key].add(5, 100);
    if (ran) c.patterns.at(key).dispatch[static_cast<std::uint8_t>(optimal + 1)].calls = 1;
    if (decided) {
      core::SlotReport report;
      report.signature.op = core::Collective::scatterv;
      report.site = 11;
      report.calls = 7245;
      report.rule_line = 3;
      report.reason = "the rule at line 3: native until sizes were seen";
      c.decisions.push_back(decision_json(report, 4));
    }
    std::string bytes;
    c.serialize(bytes);
    std::vector<Contribution> parts(1);
    REQUIRE(Contribution::deserialize(bytes, parts[0]));
    std::vector<std::string> never;
    std::string text;
    write_profile(
        parts, [&](std::string_view part) { text += part; }, &never);
    const auto profile = nlohmann::json::parse(text);
    REQUIRE(never.size() <= 1);  // the job has no call of bcast
    if (never.empty()) return std::string();
    CHECK(std::find(profile["warnings"].begin(), profile["warnings"].end(), never[0]) != profile["warnings"].end());
    return never[0];
  };
  CHECK(said(false, false).find("scatterv optimal: 0 of 7,245 calls: it needs the sizes of all blocks") == 0);
  CHECK(said(true, false) == "scatterv optimal: 0 of 7,245 calls: the rule at line 3: native until sizes were seen");
  CHECK(said(false, false, {8, 16}).find("no call matches the communicator size") != std::string::npos);
  CHECK(said(true, true).empty());
}
