// SPDX-License-Identifier: BSD-3-Clause
// Findings of profiles that are made here: who is accused, what a change could save, and where nothing is said.
#include "profiles/analysis/findings.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "core/base/text.hpp"
#include "profiles/record/waiting.hpp"

using namespace latecomer;
using namespace latecomer::profiles;
using namespace latecomer::profiles::analysis;

namespace {

/// A job on one host with a core for each rank, whose only site is an allreduce. work(step, rank): own time before a
/// call, ns. The profile holds the arrivals of all calls, and the figures that follow from them.
template <typename Work>
Profile job_of(int ranks, int steps, Work work, core::Collective op = core::Collective::allreduce, double bytes = 8) {
  constexpr core::Nanoseconds kCall = 5'000;
  Profile out;
  out.job.program = "made";
  out.job.ranks = ranks;
  out.job.hosts = 1;
  RecordedArrivals record;
  record.groups.emplace_back(static_cast<std::size_t>(ranks));
  std::iota(record.groups[0].begin(), record.groups[0].end(), 0);
  Site site;
  site.op = core::kCollectiveNames[static_cast<std::size_t>(op)];
  site.id = "5170";
  site.comm_size = ranks;
  site.bytes = bytes;
  site.frames.push_back({});
  site.ranks.resize(static_cast<std::size_t>(ranks));
  for (long r = 0; r < ranks; ++r) site.ranks[static_cast<std::size_t>(r)].rank = r;
  std::vector<ProcessFigures> processes(static_cast<std::size_t>(ranks));
  core::Nanoseconds now = 0;
  for (int i = 0; i < steps; ++i) {
    RecordedCall call;
    call.op = op;
    for (int r = 0; r < ranks; ++r) {
      const auto own = static_cast<core::Nanoseconds>(work(i, r));
      processes[static_cast<std::size_t>(r)].times.computing += static_cast<double>(own);
      call.arrivals.push_back(now + own);
    }
    now = *std::ranges::max_element(call.arrivals) + kCall;
    call.exits.assign(static_cast<std::size_t>(ranks), now);
    call.awaited.assign(static_cast<std::size_t>(ranks), -1);
    call.wait_ends = call.arrivals;
    for_each_wait(
        op, -1, static_cast<std::size_t>(ranks), [&](std::size_t r) { return call.arrivals[r]; },
        [&](std::size_t r) { return call.exits[r]; },
        [&](std::size_t waits, std::size_t awaited, core::Nanoseconds spent) {
          call.awaited[waits] = static_cast<std::int32_t>(awaited);
          call.wait_ends[waits] += spent;
          site.ranks[waits].waited += static_cast<double>(spent);
          site.ranks[awaited].awaited += static_cast<double>(spent);
          site.waited += static_cast<double>(spent);
        });
    ++site.ranks[static_cast<std::size_t>(std::ranges::max_element(call.arrivals) - call.arrivals.begin())].last;
    record.calls.push_back(std::move(call));
  }
  site.calls = site.patterns = site.logged = record.calls_of_job = static_cast<unsigned>(steps);
  site.after_last_sum = static_cast<double>(kCall) * steps;
  site.elapsed.mean = 1;
  out.job.wall = static_cast<double>(now);
  for (int r = 0; r < ranks; ++r) {
    ProcessFigures& one = processes[static_cast<std::size_t>(r)];
    one.rank = r;
    one.host = "h";
    one.wall = out.job.wall;
    one.times.collectives = out.job.wall - one.times.computing;
    one.cores = one.host_cores = ranks;
    one.core_list = "0-" + std::to_string(ranks - 1);
  }
  out.analysis.add(site, site.baseline);
  out.analysis.finish(processes, ranks);
  out.processes = std::move(processes);
  out.hosts.assign(static_cast<std::size_t>(ranks), "h");
  out.sites.push_back(std::move(site));
  out.record = std::move(record);
  return out;
}

double middle(const std::optional<GainRange>& gain) { return gain ? (gain->low + gain->high) / 2 : -1; }

double late_rank(int, int rank) { return rank == 1 ? 1.3e6 : 1e6; }

}  // namespace

TEST_CASE("findings: a late rank is named, and its gain is what moving its work saves", "[findings]") {
  const Profile profile = job_of(8, 400, late_rank);
  const auto all = findings(profile);
  REQUIRE(all.size() == 1);
  CHECK(all[0].id() == "imbalance");
  CHECK(all[0].rank == 1);
  CHECK(all[0].pattern == LatePattern::fixed);
  CHECK(all[0].hosts == std::vector<std::string>{"h"});
  REQUIRE(all[0].gain);
  CHECK((all[0].gain->low < 0.2 && all[0].gain->high >= 0.2));
  CHECK_FALSE(all[0].gain->at_most);
  CHECK(Gains(profile).on_time(1)->high == Approx(0.23).margin(0.01));  // no more than ranks wait
}

TEST_CASE("findings: a slow host saves what its ranks take longer, until others are the last", "[findings]") {
  Profile profile = job_of(8, 400, [](int, int r) { return r >= 6 ? 1.5e6 : r == 0 ? 1.2e6 : 1e6; });
  profile.hosts[6] = profile.hosts[7] = "slow";
  const Gains gains(profile);
  CHECK(middle(gains.as_others("slow")) == Approx(0.3 / 1.505).margin(0.02));  // rank 0 is the last then
  CHECK(gains.as_others("h")->high < 0.02);
  const auto all = findings(profile, {{.kind = FindingKind::slow_core, .hosts = {"slow"}}});
  const auto found = std::ranges::find(all, FindingKind::slow_core, &Finding::kind);
  REQUIRE(found != all.end());
  REQUIRE(found->gain);
  CHECK(found->basis == "as_others");
  CHECK((found->gain->low < 0.3 / 1.505 && found->gain->high > 0.3 / 1.505));
}

TEST_CASE("findings: what varies from call to call accuses nobody, and saves nothing", "[findings]") {
  core::SplitMix64 random(7);
  const Profile noisy = job_of(8, 400, [&](int, int) { return 1e6 * (0.8 + 0.4 * random.uniform()); });
  const Profile turns = job_of(8, 400, [](int i, int r) { return i % 8 == r ? 2e6 : 1e6; });
  const Profile moves = job_of(8, 400, [](int i, int r) { return i / 50 == r ? 2e6 : 1e6; });
  for (const Profile* profile : {&noisy, &turns, &moves}) {
    const auto all = findings(*profile);
    REQUIRE(all.size() == 1);
    CHECK(all[0].id() == "imbalance");
    CHECK(all[0].ranks == 0);
    CHECK(all[0].time.value() > 0.1);
    REQUIRE(all[0].gain);
    CHECK(all[0].gain->low < 0.01);
    CHECK(all[0].gain->high < 0.02);
  }
  CHECK(findings(turns)[0].pattern == LatePattern::random);
  CHECK(findings(moves)[0].pattern == LatePattern::moves);
  const Profile since = job_of(8, 400, [](int i, int r) { return i >= 200 && r == 3 ? 2e6 : 1e6; });
  CHECK(findings(since)[0].pattern == LatePattern::since);
  CHECK(findings(since)[0].rank == 3);
}

TEST_CASE("findings: unequal work of several ranks, and rare long intervals of one, are named", "[findings]") {
  const auto half = findings(job_of(4, 400, [](int, int r) { return r < 2 ? 1.5e6 : 1e6; }));
  REQUIRE(half.size() == 1);
  CHECK(half[0].ranks == 0);
  CHECK(half[0].gain->low > 0.1);
  REQUIRE(half[0].own_times);
  CHECK(half[0].own_times->longest.second == Approx(1.5e6));
  CHECK(half[0].own_times->shortest.second == Approx(1e6));
  const auto rare = findings(job_of(4, 400, [](int i, int r) { return r == 2 && i % 25 == 7 ? 2e7 : 1e6; }));
  REQUIRE(rare.size() == 1);
  CHECK(rare[0].rank == 2);
  CHECK(rare[0].pattern == LatePattern::fixed);
  // The set-up before the first call is no part of the other calls' gain.
  Profile start = job_of(4, 400, [](int i, int r) { return r == 1 && i == 0 ? 4e8 : 1e6; });
  start.job.first_call = {.waited = 3 * 3.99e8, .awaited = 3 * 3.99e8, .rank = 1, .site = "5170"};
  const auto set_up = findings(start);
  REQUIRE(set_up.size() == 1);
  CHECK(set_up[0].id() == "wait_at_start_or_end");
  CHECK(set_up[0].rank == 1);
  CHECK_FALSE(set_up[0].gain);
  CHECK(Gains(start).on_time(1)->high < 0.02);
  // Waits at another site are not those of the first call.
  Profile other = job_of(4, 400, late_rank);
  other.job.first_call = {.waited = other.sites[0].waited, .awaited = other.sites[0].waited, .rank = 1, .site = "7"};
  CHECK(findings(other)[0].id() == "imbalance");
}

TEST_CASE("findings: no gain is said where a replay cannot know it", "[findings]") {
  Profile none = job_of(4, 400, late_rank);
  none.record.reset();
  CHECK(findings(none)[0].no_gain.find("no record") != std::string::npos);
  const Profile few = job_of(4, 20, late_rank);
  CHECK(findings(few)[0].no_gain.find("too few calls") != std::string::npos);
  const auto crowd = [](Profile profile) {
    for (ProcessFigures& one : profile.processes) {
      one.core_list = "0-1";
      one.cores = one.host_cores = 2;
    }
    return profile;
  };
  const Profile crowded = crowd(job_of(4, 400, late_rank));
  CHECK(findings(crowded)[0].no_gain.find("share cores") != std::string::npos);
  CHECK(findings(crowded)[0].rank == 1);
  // Nothing but the order of arrivals tells the last rank from the others.
  const auto hardly = [](int, int rank) { return rank == 1 ? 1.03e6 : 1e6; };
  CHECK(findings(job_of(4, 400, hardly))[0].rank == 1);
  CHECK(findings(crowd(job_of(4, 400, hardly)))[0].ranks == 0);
  Profile loaded = job_of(4, 400, late_rank);
  loaded.loads.push_back(
      {.host = "h", .ranks = 4, .cores = 4, .usable = 4, .span = 1e9, .others = 1e9, .pressure = {}, .throttled = {}});
  CHECK(findings(loaded)[0].no_gain.find("Other processes") != std::string::npos);
  // The recorded half differs so much from part to part that the range would say nothing.
  Profile rare = job_of(4, 800, [](int i, int r) { return r == 2 && i % 100 == 7 ? 1.5e8 : 1e6; });
  rare.record->calls_of_job *= 2;
  rare.sites[0].calls = rare.sites[0].patterns *= 2;
  rare.sites[0].waited *= 2;
  CHECK_FALSE(findings(rare)[0].gain);
  CHECK(findings(rare)[0].no_gain.find("differ too much") != std::string::npos);
  // The profile's waits are ten times those of the recorded calls.
  Profile other = job_of(4, 400, late_rank);
  other.sites[0].waited *= 10;
  CHECK(findings(other)[0].no_gain.find("not like those") != std::string::npos);
  // Another site has nearly all waits, and the record holds none of its calls.
  Profile elsewhere = job_of(4, 400, late_rank);
  elsewhere.sites.push_back(elsewhere.sites[0]);
  elsewhere.sites[1].index = 1;
  elsewhere.sites[1].id = "5171";
  elsewhere.sites[0].waited /= 20;
  CHECK(findings(elsewhere)[0].no_gain.find("MPI_COMM_WORLD only") != std::string::npos);
  for (const Profile* profile :
       std::initializer_list<const Profile*>{&none, &few, &crowded, &loaded, &other, &elsewhere})
    for (const Finding& one : findings(*profile)) CHECK_FALSE(one.gain);
}

TEST_CASE("findings: an algorithm is offered only for collectives that the catalogue serves", "[findings]") {
  const auto equal = [](int, int) { return 1e5; };
  const auto offers = [](const Profile& profile) {
    const auto all = findings(profile);
    return std::ranges::any_of(all, [](const Finding& one) { return one.kind == FindingKind::transfer; });
  };
  CHECK(offers(job_of(4, 400, equal, core::Collective::allreduce, 1e6)));
  CHECK_FALSE(offers(job_of(4, 400, equal, core::Collective::alltoall, 1e6)));
  CHECK_FALSE(offers(job_of(4, 400, equal, core::Collective::allreduce, 8)));
  CHECK(findings(job_of(4, 400, equal))[0].id() == "no_problem");
}

TEST_CASE("findings: the load and the work are two replays", "[findings]") {
  // Of ranks that compute 1 ms, rank 1 has no core for 0.2 ms, and rank 2 computes 1.6 ms.
  Profile profile = job_of(4, 400, [](int, int r) { return r == 1 ? 1.2e6 : r == 2 ? 1.6e6 : 1e6; });
  profile.processes[1].times.computing -= 400 * 0.2e6;
  profile.processes[1].times.runnable += 400 * 0.2e6;
  profile.analysis.finish(profile.processes, 4);
  const Gains gains(profile);
  CHECK(gains.no_delay()->high < 0.011);  // rank 2 is as late as before
  // Each computes 1.15 ms, and rank 1 then needs 1.38 ms.
  CHECK(middle(gains.equal_computing()) == Approx((1.6 - 1.38) / 1.605).margin(0.005));
  CHECK(middle(gains.equal_work()) == Approx((1.6 - 1.2) / 1.605).margin(0.005));
  const auto all = findings(profile, {{.kind = FindingKind::cores_taken}});
  CHECK(std::ranges::count(all, FindingKind::cores_taken, &Finding::kind) == 1);
  CHECK(std::ranges::find(all, FindingKind::imbalance, &Finding::kind)->basis ==
        "equal_work");  // the delay costs little
  // With 0.7 ms without a core, rank 1 decides how long the run takes.
  profile = job_of(4, 400, [](int, int r) { return r == 1 ? 1.7e6 : r == 2 ? 1.2e6 : 1e6; });
  profile.processes[1].times.computing -= 400 * 0.7e6;
  profile.processes[1].times.runnable += 400 * 0.7e6;
  profile.analysis.finish(profile.processes, 4);
  const auto delayed = findings(profile, {{.kind = FindingKind::cores_taken}});
  const auto load = std::ranges::find(delayed, FindingKind::cores_taken, &Finding::kind);
  REQUIRE(load->gain);
  CHECK(middle(load->gain) == Approx(0.5 / 1.705).margin(0.005));
  CHECK(std::ranges::find(delayed, FindingKind::imbalance, &Finding::kind)->basis == "equal_computing");
}
