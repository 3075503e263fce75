// SPDX-License-Identifier: BSD-3-Clause
// Groups of ranks, the record of arrivals, and its replay.
#include "profiles/record/replay.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/text.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/record/waiting.hpp"

using namespace latecomer::profiles;
namespace core = latecomer::core;
using core::Collective;

TEST_CASE("groups: equal members are one group; members are written as runs", "[groups]") {
  Groups groups;
  const std::vector<core::Rank> pair{0, 1}, turned{1, 0}, all{0, 1, 2, 3};
  const auto first = groups.of(pair);
  CHECK(first != Groups::kOther);
  CHECK(groups.of(all) != first);
  CHECK(groups.of(turned) != first);
  CHECK(groups.of(pair) == first);
  CHECK(groups.members() == 8);
  CHECK(ranks_text({3, 0, 1, 2}) == "0-3");
  CHECK(ranks_text({0, 4, 8, 12, 15}) == "0-12:4, 15");
  CHECK(ranks_text({7}) == "7");
  CHECK(ranks_text({1, 2}) == "1-2");
  CHECK(ranks_text({1, 5}) == "1, 5");
  CHECK(ranks_text({}).empty());
}

TEST_CASE("groups: beyond the limit of members, new groups share one without ranks", "[groups]") {
  Groups groups;
  std::vector<core::Rank> many(Groups::kMostMembers);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<core::Rank>(i);
  CHECK(groups.of(many) == 1);
  CHECK(groups.of(std::vector<core::Rank>{1, 2}) == Groups::kOther);
  CHECK(groups.of(many) == 1);
}

namespace {

constexpr core::Nanoseconds kSecond = 1'000'000'000;

/// Two ranks, one allreduce each `every` ns.
ArrivalRecord recorded(std::size_t most, int calls, core::Nanoseconds every) {
  ArrivalRecord out;
  out.start(most);
  for (int i = 0; i < calls; ++i) {
    const core::Nanoseconds at = i * every, arrivals[] = {at, at + 10}, exits[] = {at + 20, at + 20};
    out.add({{1, Collective::allreduce, 2}, 1, -1, 8, 0, true}, arrivals, exits);
  }
  return out;
}

}  // namespace

TEST_CASE("arrivals: a full record keeps whole windows from the start to the end of the run", "[arrivals]") {
  constexpr int kCalls = 100'000;
  const ArrivalRecord record = recorded(std::size_t{1} << 20, kCalls, kSecond / 100);
  const auto& data = record.data();
  CHECK(data.seen == kCalls);
  CHECK(data.stride > 1);
  CHECK(data.calls.size() * 36 <= std::size_t{1} << 20);
  CHECK(data.calls.size() * 36 > std::size_t{1} << 18);
  std::map<std::int64_t, int> windows;
  record.each([&](const ArrivalRecord::Call& call) { ++windows[call.arrivals[0] / kSecond]; });
  CHECK(windows.rbegin()->first + 2 * data.stride > kCalls / 100);
  for (const auto& [window, calls] : windows) {
    CHECK(window % data.stride == 0);
    CHECK(calls == 100);
  }
}

TEST_CASE("arrivals: a window that alone fills the memory ends early", "[arrivals]") {
  const ArrivalRecord record = recorded(4096, 1000, 10);
  CHECK(record.data().stride == 1);
  CHECK(record.data().calls.size() > 50);
  CHECK(record.data().calls.size() < 130);
}

TEST_CASE("arrivals: merging takes the wider stride; damaged data are refused", "[arrivals]") {
  ArrivalRecord wide = recorded(std::size_t{1} << 18, 100'000, kSecond / 100);
  ArrivalRecord fine = recorded(std::size_t{1} << 22, 1000, kSecond / 100);
  REQUIRE(wide.data().stride > fine.data().stride);
  const std::uint32_t here[] = {0, 5};
  fine.merge(wide, here);
  CHECK(fine.data().stride == wide.data().stride);
  CHECK(fine.data().seen == 101'000);
  std::set<std::uint32_t> groups;
  fine.each([&](const ArrivalRecord::Call& call) { groups.insert(call.kind.group); });
  CHECK(groups == std::set<std::uint32_t>{1, 5});
  auto data = fine.data();
  ArrivalRecord back;
  CHECK(back.restore(data, 6));
  CHECK(back.data().calls.size() == data.calls.size());
  CHECK_FALSE(back.restore(data, 5));
  data.times.pop_back();
  CHECK_FALSE(back.restore(data, 6));
}

TEST_CASE("profile: a recorded run has communicators and arrivals", "[arrivals]") {
  Contribution c;
  c.job.ranks = 2;
  c.job.record_arrivals = true;
  c.finished = true;
  c.patterns.job_of(2);
  c.patterns.record_arrivals();
  CallRecord a, b;
  a.op = b.op = Collective::allreduce;
  a.site = b.site = 7;
  a.bytes = b.bytes = 64;
  a.arrival = 1000;
  b.arrival = 1300;
  a.exit = 1400;
  b.exit = 0;
  const CallRecord* records[] = {&a, &b};
  const core::Rank world[] = {0, 1};
  c.patterns.add(records, world, 0, nullptr);
  c.local[{7, Collective::allreduce, 2}].add(400, 64);
  std::string bytes;
  c.serialize(bytes);
  Contribution back;
  REQUIRE(Contribution::deserialize(bytes, back));
  std::vector<Contribution> parts;
  parts.push_back(std::move(back));
  const auto json = nlohmann::json::parse(write_profile(std::move(parts)));
  REQUIRE(json["communicators"].size() == 1);
  CHECK(json["communicators"][0]["members"] == "0-1");
  CHECK(json["communicators"][0]["imbalance_ns"] == 300);
  const auto& arrivals = json["arrivals"];
  REQUIRE(arrivals["events"].size() == 1);
  const auto& event = arrivals["events"][0];
  CHECK(event["site"] == json["sites"][0]["id"]);
  CHECK(arrivals["groups"][event["group"].get<std::size_t>()] == std::vector<int>{0, 1});
  CHECK(event["arrival_ns"] == std::vector<int>{0, 300});
  CHECK(event["exit_ns"] == std::vector<int>{400, -1});
}

TEST_CASE("sample: the same calls on all ranks, from the first to the last, in a fixed memory", "[sample]") {
  for (const int ranks : {2, 64, 300, 5000}) {
    CallSample samples[2];
    for (CallSample& s : samples) s.start(ranks);
    const std::size_t most = samples[0].calls().capacity();
    constexpr std::uint64_t kCalls = 100'000;
    for (std::uint64_t n = 0; n < kCalls; ++n)
      for (int rank = 0; rank < 2; ++rank) {
        // A few calls of rank 1 are not seen, such as those in idle epochs.
        if (rank == 1 && n % 1000 >= 990) continue;
        if (samples[rank].keeps(n)) samples[rank].add({n, {}});
      }
    const CallSample &all = samples[0], &some = samples[1];
    CHECK(all.calls().capacity() == most);
    CHECK(some.calls().capacity() == most);
    CHECK((all.calls().size() >= most / 2 - all.stretch() && all.calls().size() <= most));
    CHECK(most * static_cast<std::size_t>(ranks) <= 16 * 65536u);
    CHECK(all.calls().front().number == 0);
    CHECK(all.calls().back().number + 2 * all.stride() * all.stretch() >= kCalls);
    const std::uint64_t stride = std::max(all.stride(), some.stride());
    std::set<std::uint64_t> first, second;
    for (const SampledCall& c : all.calls())
      if (c.number / all.stretch() % stride == 0) first.insert(c.number);
    for (const SampledCall& c : some.calls())
      if (c.number / all.stretch() % stride == 0) second.insert(c.number);
    CHECK(std::ranges::includes(first, second));
    CHECK(first.size() - second.size() <= first.size() / 20 + 16);
    CallSample back;
    CHECK(back.restore(all.calls(), all.stretch(), all.stride()));
    CHECK(back.keeps(0));
    CHECK_FALSE(back.restore(all.calls(), 3, 1));
    CHECK_FALSE(back.restore(all.calls(), 8, 0));
  }
  CallSample none;
  CHECK_FALSE(none.keeps(0));
}

TEST_CASE("sample: the profile has the calls that all ranks keep", "[sample]") {
  std::vector<Contribution> parts(2);
  for (int rank = 0; rank < 2; ++rank) {
    Contribution c;
    c.rank = rank;
    c.job.ranks = 2;
    c.finished = true;
    c.patterns.job_of(2);
    c.sample.start(2);
    c.sample.counted = 50;
    c.local[{7, Collective::allreduce, 2}].add(400, 64);
    for (std::uint64_t n = 10; n < 40; ++n) {
      if (rank == 1 && n == 20) continue;
      CallRecord record;
      record.op = n == 30 && rank == 1 ? Collective::barrier : Collective::allreduce;
      record.site = 7;
      record.bytes = 64;
      record.arrival = static_cast<core::Nanoseconds>(1000 * n) + 300 * rank;
      record.exit = record.arrival + 400;
      c.sample.add({n, record});
    }
    std::string bytes;
    c.serialize(bytes);
    REQUIRE(Contribution::deserialize(bytes, parts[static_cast<std::size_t>(rank)]));
  }
  const auto arrivals = nlohmann::json::parse(write_profile(parts))["arrivals"];
  CHECK(arrivals["sample"]["calls"] == 32);
  CHECK(arrivals["sample"]["stride"] == 1);
  CHECK(arrivals["calls"] == 50);
  CHECK(arrivals["calls_kept"] == 28);
  REQUIRE(arrivals["events"].size() == 28);
  CHECK(arrivals["events"][0]["number"] == 10);
  CHECK(arrivals["events"][0]["arrival_ns"] == std::vector<int>{0, 300});
  for (const auto& event : arrivals["events"]) CHECK((event["number"] != 20 && event["number"] != 30));
  // Nothing without the part of a rank.
  parts.pop_back();
  CHECK_FALSE(nlohmann::json::parse(write_profile(parts)).contains("arrivals"));
}

namespace {

/// Builds recorded calls; owns their arrays.
struct Program {
  std::deque<std::vector<core::Rank>> ranks;
  std::deque<std::vector<core::Nanoseconds>> times;
  std::vector<ReplayCall> calls;
  void add(Collective op, int site, core::Rank root, std::vector<core::Rank> members,
           std::vector<core::Nanoseconds> arrivals, std::vector<core::Nanoseconds> exits, bool blocking = true) {
    ranks.push_back(std::move(members));
    times.push_back(std::move(arrivals));
    times.push_back(std::move(exits));
    calls.push_back({op, site, root, blocking, 0, ranks.back(), times[times.size() - 2], times.back()});
  }
};

}  // namespace

TEST_CASE("replay: gains in a run with one rank late have the values that one computes by hand", "[replay]") {
  // Each step: rank 0 computes 10, rank 1 30, rank 2 10; the call takes 5 after the last arrival.
  Program program;
  for (int i = 0; i < 10; ++i) {
    const core::Nanoseconds t = 35 * i;
    program.add(Collective::allreduce, i % 2, -1, {0, 1, 2}, {t + 10, t + 30, t + 10}, {t + 35, t + 35, t + 35});
  }
  const Replay replay(program.calls, 3);
  // The first intervals begin at the earliest arrival, 10: they are 0, 20 and 0.
  CHECK(replay.time() == 340);
  CHECK(replay.time({.kind = Change::Kind::on_time, .rank = 1}) == 5 + 9 * 15);
  CHECK(replay.time({.kind = Change::Kind::on_time, .site = 0, .rank = 1}) == 5 + 4 * 15 + 5 * 35);
  CHECK(replay.time({.kind = Change::Kind::on_time, .rank = 1, .set_up = true}) == 5 + 9 * 35);
  CHECK(replay.time({.kind = Change::Kind::on_time, .rank = 0}) == 340);
  CHECK(replay.time({.kind = Change::Kind::equal_work}) == Approx(20 + 5 + 9 * (50.0 / 3 + 5)));  // the set-up stays
  CHECK(replay.time({.kind = Change::Kind::faster, .factor = 0.2}) == 340 - 10 * 4);
  // Nobody waits: rank 1 computes 30 ten times, and the others are done before.
  CHECK(replay.time({.kind = Change::Kind::no_wait}) == 20 + 9 * 30);
}

namespace {

/// A program on `ranks` ranks of an allreduce that takes 5 us. work(step, rank): the time before each call, ns.
template <typename Work>
Program stepped(int ranks, int steps, Work work) {
  Program program;
  std::vector<core::Rank> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  core::Nanoseconds now = 0;
  for (int i = 0; i < steps; ++i) {
    std::vector<core::Nanoseconds> arrivals;
    for (const core::Rank r : all) arrivals.push_back(now + static_cast<core::Nanoseconds>(work(i, r)));
    now = *std::ranges::max_element(arrivals) + 5'000;
    program.add(Collective::allreduce, 0, -1, all, arrivals, std::vector<core::Nanoseconds>(arrivals.size(), now));
  }
  return program;
}

/// The gain of a change, as a share of the time.
double gain(const Replay& replay, const Change& change) { return 1 - replay.time(change) / replay.time(); }

/// The share of the ranks' time in which they wait.
double waiting(const Program& program) {
  double out = 0, time = static_cast<double>(program.calls.back().exits[0]);
  for (const ReplayCall& call : program.calls)
    for (const core::Nanoseconds came : call.arrivals)
      out += static_cast<double>(*std::ranges::max_element(call.arrivals) - came);
  return out / time / static_cast<double>(program.calls[0].arrivals.size());
}

}  // namespace

TEST_CASE("replay: equal work gains what moving work gains, and nothing of what varies from call to call", "[replay]") {
  constexpr int kRanks = 8, kSteps = 2000;
  core::SplitMix64 random(3);
  const auto noise = [&] {  // the sum of twelve uniform numbers is nearly normal
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random.uniform();
    return sum;
  };
  const Change equal{.kind = Change::Kind::equal_work};
  const Program fixed = stepped(kRanks, kSteps, [](int, int r) { return r == 1 ? 1.3e6 : 1e6; });
  CHECK(waiting(fixed) == Approx(0.2).margin(0.01));
  CHECK(gain(Replay(fixed.calls, kRanks), equal) == Approx(0.2).margin(0.01));
  CHECK(gain(Replay(fixed.calls, kRanks), {.kind = Change::Kind::on_time, .rank = 1}) == Approx(0.23).margin(0.01));
  const Program noisy = stepped(kRanks, kSteps, [&](int, int) { return 1e6 * (1 + 0.2 * noise()); });
  CHECK(waiting(noisy) > 0.15);
  CHECK(std::abs(gain(Replay(noisy.calls, kRanks), equal)) < 0.01);
  CHECK(std::abs(gain(Replay(noisy.calls, kRanks), {.kind = Change::Kind::on_time, .rank = 1})) < 0.01);
  const Program turns = stepped(kRanks, kSteps, [](int i, int r) { return i % kRanks == r ? 2e6 : 1e6; });
  CHECK(waiting(turns) > 0.4);
  CHECK(std::abs(gain(Replay(turns.calls, kRanks), equal)) < 0.01);
  // Rare long intervals of one rank: the others have none, so they go, or their work is shared.
  const Program rare = stepped(kRanks, kSteps, [](int i, int r) { return r == 1 && i % 50 == 7 ? 50e6 : 1e6; });
  CHECK(gain(Replay(rare.calls, kRanks), {.kind = Change::Kind::on_time, .rank = 1}) == Approx(0.49).margin(0.01));
  const double shared = gain(Replay(rare.calls, kRanks), equal);
  CHECK((shared > 0.35 && shared < 0.44));
}

TEST_CASE("replay: a wait for a message becomes shorter when its sender comes earlier", "[replay]") {
  // Rank 0 computes 2 ms, rank 1 computes 1 ms and waits for rank 0, rank 2 computes 1 ms and waits for rank 1.
  const auto program = stepped(3, 100, [](int, int) { return 2e6; });
  std::vector<IntervalShares> shares(3);
  shares[1] = {0.5, {{0, 0.5}}};
  shares[2] = {0.5, {{1, 0.5}}};
  const Replay replay(program.calls, 3, shares);
  CHECK(replay.time() == 100 * 2.005e6 - 2e6);
  // Of 4 ms of own time, each rank gets a third.
  CHECK(gain(replay, {.kind = Change::Kind::equal_work}) == Approx(1.0 / 3).margin(0.01));
  CHECK(gain(replay, {.kind = Change::Kind::on_time, .rank = 0}) == Approx(0.5).margin(0.01));
  CHECK(gain(replay, {.kind = Change::Kind::on_time, .rank = 2}) == 0);
  const auto means = replay.own_means();
  CHECK(means.at({0, 0}) == Approx(2e6));
  CHECK(means.at({0, 1}) == Approx(1e6));
  const auto factors = Replay::equal(means);
  CHECK(factors.at({0, 0}) == Approx(2.0 / 3));
  CHECK(gain(replay, {.kind = Change::Kind::scaled, .factors = factors}) ==
        Approx(gain(replay, {.kind = Change::Kind::equal_work})));
  CHECK(replay.stretches().size() == 25);
  // A few short waits for a rank that does not change hold nobody up who comes earlier.
  std::vector<IntervalShares> few(3);
  few[0] = {0.99, {{2, 0.01}}};
  const auto late = stepped(3, 100, [](int, int r) { return r == 0 ? 2e6 : 1e6; });
  CHECK(gain(Replay(late.calls, 3, few), {.kind = Change::Kind::on_time, .rank = 0}) == Approx(0.5).margin(0.02));
}

TEST_CASE("replay: in rooted calls only the ranks that need the late one wait", "[replay]") {
  Program program;
  // Rank 1 is late for a reduce to rank 0, and leaves at once.
  program.add(Collective::reduce, 0, 0, {0, 1}, {0, 100}, {105, 101});
  program.add(Collective::reduce, 0, 0, {0, 1}, {115, 201}, {206, 202});
  program.add(Collective::bcast, 1, 0, {0, 1}, {210, 210}, {211, 212});
  const Replay replay(program.calls, 2);
  CHECK(replay.time() == 212);
  // Rank 1's intervals of 100 become 0 and 10: it arrives at 0 and 11, rank 0 at 0 and 15.
  CHECK(replay.time({.kind = Change::Kind::on_time, .site = 0, .rank = 1}) == 15 + 5 + 4 + 2);
}

TEST_CASE("replay: without a change, recorded times come back, whatever the communicators", "[replay]") {
  core::SplitMix64 random(11);
  constexpr int kRanks = 7;
  std::vector<core::Nanoseconds> left(kRanks);
  Program program;
  const auto number = [&](int most) { return static_cast<int>(random.uniform() * most); };
  constexpr Collective kOps[] = {Collective::allreduce, Collective::bcast,  Collective::reduce,
                                 Collective::scan,      Collective::gather, Collective::alltoall};
  for (int i = 0; i < 2000; ++i) {
    std::vector<core::Rank> members;
    for (core::Rank r = 0; r < kRanks; ++r)
      if (number(3) > 0) members.push_back(r);
    if (members.size() < 2) continue;
    const Collective op = kOps[number(6)];
    const core::Rank root = core::is_rooted(op) ? number(static_cast<int>(members.size())) : -1;
    std::vector<core::Nanoseconds> arrivals, exits;
    for (const core::Rank r : members) arrivals.push_back(left[static_cast<std::size_t>(r)] + number(1000));
    exits = arrivals;
    for_each_awaited(
        op, root, members.size(), [&](std::size_t r) { return arrivals[r]; },
        [&](std::size_t r, std::size_t awaited) { exits[r] = std::max(exits[r], arrivals[awaited]); });
    for (std::size_t k = 0; k < members.size(); ++k)
      left[static_cast<std::size_t>(members[k])] = exits[k] += number(100);
    program.add(op, number(4), root, members, arrivals, exits);
  }
  core::Nanoseconds first = INT64_MAX, last = 0;
  for (const auto& c : program.calls) {
    first = std::min(first, *std::ranges::min_element(c.arrivals));
    last = std::max(last, *std::ranges::max_element(c.exits));
  }
  // The order in the record does not matter.
  std::vector<ReplayCall> turned(program.calls.rbegin(), program.calls.rend());
  CHECK(Replay(program.calls, kRanks).time() == static_cast<double>(last - first));
  CHECK(Replay(turned, kRanks).time() == static_cast<double>(last - first));
}

TEST_CASE("replay: non-blocking calls in different orders end", "[replay]") {
  Program program;
  program.add(Collective::allreduce, 0, -1, {0, 1}, {0, 10}, {20, 20}, false);
  program.add(Collective::allreduce, 1, -1, {0, 1}, {5, 6}, {21, 21}, false);
  program.add(Collective::barrier, 2, -1, {0, 1}, {30, 31}, {40, 40});
  CHECK(Replay(program.calls, 2).time() == 40);
}
