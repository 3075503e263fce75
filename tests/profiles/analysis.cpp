// SPDX-License-Identifier: BSD-3-Clause
// Following lateness to its cause, the sums of ranks and hosts, and POP's efficiencies, on constructed sites with known
// answers.
#include "profiles/analysis/analysis.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <utility>

#include "profiles/analysis/messages.hpp"

using namespace latecomer::profiles::analysis;

namespace {

using Waits = std::vector<std::pair<long, double>>;

/// A row of 10 samples: the mean interval in its parts, the offset in the calls, and the time that others waited for
/// it.
RankRow row(long rank, double computing, double messages, double blocked, const Waits& waits_for, double offset,
            double awaited) {
  RankRow out;
  out.rank = rank;
  out.offset = offset;
  out.awaited = awaited;
  out.before.samples = out.before.stand_for = 10;
  out.before.wall = computing + messages + blocked;
  out.before.computing = computing;
  out.before.messages = messages;
  out.before.blocked = blocked;
  for (const auto& [peer, waited] : waits_for) out.before.peers.push_back({peer, waited});
  return out;
}

/// 10 calls on all ranks. `after_last`: per call.
struct Made : CallFigures {
  explicit Made(std::vector<RankRow> rows, double after_last = 0) {
    ranks = std::move(rows);
    comm_size = static_cast<double>(ranks.size());
    calls = patterns = 10;
    after_last_sum = 10 * after_last;
    for (const RankRow& r : ranks) before.add(r.before);
  }
  Baseline baseline() const { return Baseline(*this); }
};

SiteIntervals::Chain chain_from(const Made& site, std::size_t row) {
  return SiteIntervals(site, site.baseline()).follow(site.ranks[row]);
}

std::map<long, Causes> blamed(const Made& site) {
  std::map<long, Causes> out;
  const Baseline baseline = site.baseline();
  for (const RankRow& r : site.ranks)
    SiteIntervals(site, baseline).divide(r, r.awaited, [&](long rank, std::size_t cause, double amount) {
      out[rank][cause] += amount;
    });
  return out;
}

std::vector<long> ranks_of(const SiteIntervals::Chain& chain) {
  std::vector<long> out;
  for (const RankRow* r : chain.rows) out.push_back(r->rank);
  return out;
}

/// Rank 1 sleeps for 800, rank 2 waits for it, and rank 3 for rank 2. Ranks 0 and 4 are on time.
Made chain_of_three(double after_last = 0) {
  return Made({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 0, 800, {}, 800, 0), row(2, 200, 800, 0, {{1, 800}}, 800, 0),
               row(3, 200, 800, 0, {{2, 790}, {0, 10}}, 810, 1600), row(4, 200, 0, 0, {}, 0, 0)},
              after_last);
}

/// Ten ranks in rows of two. The last row is late.
std::vector<RankRow> pairs() {
  std::vector<RankRow> rows;
  for (long r = 0; r < 10; r += 2) {
    rows.push_back(row(r, r == 8 ? 900 : 200, 0, 0, {}, r == 8 ? 700 : 0, r == 8 ? 5600 : 0));
    rows.back().ranks = 2;
    rows.back().last = r == 8 ? 10 : 0;
  }
  return rows;
}

}  // namespace

TEST_CASE("blame: waits for messages lead to the rank that sleeps", "[blame]") {
  const Made s = chain_of_three();
  const auto chain = chain_from(s, 3);
  CHECK(ranks_of(chain) == std::vector<long>{3, 2, 1});
  CHECK(chain.end == ChainEnd::own);
  auto b = blamed(s);
  CHECK(b.at(1)[blocked] == Approx(1600.0 * 800 / 810 * 790 / 800));
  // 10 of 800 is a wait for rank 0, which is on time. 10 of 810 is no part of the interval.
  CHECK(b.at(3)[mpi_wait] == Approx(1600.0 * 800 / 810 * 10 / 800));
  CHECK(b.at(3)[kCauses] == Approx(1600.0 * 10 / 810));
  for (const double amount : b[2]) CHECK(amount == 0);
}

TEST_CASE("blame: a peer that is not late ends the chain with the transfer", "[blame]") {
  const Made s({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 800, 0, {{0, 800}}, 800, 1600), row(2, 200, 0, 0, {}, 0, 0)});
  const auto chain = chain_from(s, 1);
  CHECK(ranks_of(chain) == std::vector<long>{1});
  CHECK((chain.end == ChainEnd::transfer && chain.peer == 0));
  CHECK(blamed(s).at(1)[mpi_wait] == Approx(1600));
}

TEST_CASE("blame: ranks that wait for each other end the chain", "[blame]") {
  const Made s({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 800, 0, {{2, 800}}, 800, 1000),
                row(2, 200, 800, 0, {{1, 800}}, 800, 0), row(3, 200, 0, 0, {}, 0, 0)});
  const auto chain = chain_from(s, 1);
  CHECK(ranks_of(chain) == std::vector<long>{1, 2});
  CHECK((chain.end == ChainEnd::cycle && chain.peer == 1));
  double all = 0;
  for (const auto& [rank, times] : blamed(s))
    for (const double time : times) all += time;
  CHECK(all == Approx(1000));
}

TEST_CASE("blame: a rank that waits for several ranks, or for one without samples", "[blame]") {
  const Made several({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 800, 0, {{0, 300}, {2, 250}, {3, 250}}, 800, 3000),
                      row(2, 200, 0, 0, {}, 0, 0), row(3, 200, 0, 0, {}, 0, 0)});
  CHECK(chain_from(several, 1).end == ChainEnd::several);
  Made unseen({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 800, 0, {{2, 800}}, 800, 1600), row(2, 200, 0, 800, {}, 0, 0)});
  unseen.ranks[2].before = {};
  CHECK(chain_from(unseen, 1).end == ChainEnd::unsampled);
}

TEST_CASE("blame: a rank that computes more keeps the blame, and an earlier collective explains nothing", "[blame]") {
  const Made late(
      {row(0, 200, 0, 0, {}, 0, 0), row(1, 900, 100, 0, {{0, 100}}, 800, 800), row(2, 200, 0, 0, {}, 0, 0)});
  CHECK(blamed(late).at(1)[computing] == Approx(700));
  CHECK(blamed(late).at(1)[mpi_wait] == Approx(100));
  const Made earlier({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 0, 0, {}, 800, 800)});
  CHECK(blamed(earlier).at(1)[kCauses] == Approx(800));
}

TEST_CASE("blame: own threads take the rank's core only where the process has no other", "[blame]") {
  IntervalFigures r = row(0, 200, 0, 0, {}, 0, 0).before;
  r.wall = 400;
  r.runnable = 200;
  r.threads = 200;
  CHECK(own_threads_run(r, 1));
  CHECK_FALSE(own_threads_run(r, 2));
  r.threads = 550;
  CHECK(own_threads_run(r, 2));
  CHECK_FALSE(own_threads_run(r, 0));
}

TEST_CASE("intervals: the mean over both, with the ranks that either waited for", "[figures]") {
  IntervalFigures a = row(0, 100, 300, 0, {{1, 300}}, 0, 0).before;
  IntervalFigures b = row(0, 400, 30, 0, {{2, 30}}, 0, 0).before;
  b.samples = b.stand_for = 20;
  a.add(b);
  CHECK(a.samples == 30);
  CHECK(a.computing == Approx(300));
  REQUIRE(a.peers.size() == 2);
  CHECK((a.peers[0].rank == 1 && a.peers[0].waited == Approx(100)));
  CHECK((a.peers[1].rank == 2 && a.peers[1].waited == Approx(20)));
}

TEST_CASE("came last: shares are of the calls, and ties leave a rest", "[figures]") {
  Made s({row(0, 1, 0, 0, {}, 0, 0), row(1, 1, 0, 0, {}, 0, 0)});
  CHECK(s.last_ranks(2) == "-");
  CHECK(s.most_often_last() == nullptr);
  s.ranks[1].last = 4;
  s.ranks[0].last = 1;
  CHECK(s.last_ranks(2) == "1 (40%), 0 (10%)");
  CHECK(s.most_often_last()->rank == 1);
}

namespace {

std::vector<ProcessFigures> processes_of(std::size_t ranks) {
  std::vector<ProcessFigures> out;
  for (std::size_t r = 0; r < ranks; ++r)
    out.push_back({static_cast<long>(r), r < ranks / 2 ? "a" : "b", 12'000, {.computing = 2000}});
  return out;
}

}  // namespace

TEST_CASE("lateness is against all other ranks, and sums are kept by rank and by host", "[analysis]") {
  // Of 1,000 ranks, the last 200 are 8 late: a mean of 1.6. Each is late by 8 less 192 * 8 / 999, less its own.
  std::vector<RankRow> rows;
  for (long r = 0; r < 1000; ++r) {
    rows.push_back(row(r, r < 800 ? 200 : 208, 0, 0, {}, r < 800 ? 0 : 8, r == 999 ? 64'000 : 0));
    rows.back().waited = r < 800 ? 80 : 0;
    rows.back().last = r == 999 ? 10 : 0;
  }
  const Made site(std::move(rows));
  Analysis analysis;
  analysis.add(site, site.baseline());
  analysis.add(site, site.baseline());
  analysis.finish(processes_of(1000), 1000);
  REQUIRE(analysis.ranks().size() == 1000);
  const RankFigures &early = analysis.ranks()[0], &late = analysis.ranks()[999];
  CHECK(*early.late == Approx(-200 * 8.0 / 999));
  CHECK(*late.late == Approx(8 - 199 * 8.0 / 999));
  CHECK(early.waited == Approx(160));
  CHECK(late.awaited == Approx(128'000));
  CHECK(late.last == 20);
  CHECK(late.blamed == Approx(128'000));
  REQUIRE(late.causes);
  CHECK((*late.causes)[computing] == Approx(1));
  CHECK_FALSE(early.causes);
  REQUIRE(analysis.hosts().size() == 2);
  CHECK(analysis.hosts()[0].waited == Approx(500 * 160));
  CHECK(analysis.hosts()[1].waited == Approx(300 * 160));
  CHECK(analysis.hosts()[1].awaited == Approx(128'000));
  CHECK(analysis.hosts()[0].times.computing == Approx(500 * 2000));
}

TEST_CASE("rows of several ranks keep their lateness, causes and host", "[analysis]") {
  Made site(pairs());
  site.comm_size = 10;
  Analysis analysis;
  analysis.add(site, site.baseline());
  analysis.finish(processes_of(10), 10);
  REQUIRE(analysis.ranks().size() == 5);
  const RankFigures& late = analysis.ranks()[4];
  CHECK((late.first == 8 && late.ranks == 2 && late.name() == "8-9" && late.host == "b"));
  CHECK(*late.late == Approx(700));
  CHECK(late.last == 10);
  CHECK(late.is_late());
  REQUIRE(late.causes);
  CHECK((*late.causes)[computing] == Approx(1));
  CHECK(analysis.hosts()[1].ranks == 5);
  CHECK(analysis.ranks_per_sum() == 2);
}

TEST_CASE("sums of single ranks replace those of rows of several ranks, whose causes stay", "[analysis]") {
  Made site(pairs());
  site.comm_size = 10;
  Analysis analysis;
  analysis.add(site, site.baseline());
  std::vector<RankTotals> sums;
  for (long r = 0; r < 10; ++r)
    sums.push_back({r, 10, r == 9 ? 10.0 : 0, r == 9 ? 1400.0 : -50, r == 9 ? 0.0 : 20, r == 9 ? 5600.0 : 0});
  sums.push_back({10, 1, 1, 1, 1, 1});  // of no rank of the job
  analysis.finish(processes_of(10), 10, sums);
  REQUIRE(analysis.ranks().size() == 10);
  CHECK((analysis.ranks_per_row() == 2 && analysis.ranks_per_sum() == 1));
  const RankFigures &early = analysis.ranks()[8], &late = analysis.ranks()[9];
  CHECK((late.name() == "9" && late.ranks == 1 && late.wall == Approx(analysis.ranks()[0].wall)));
  CHECK((late.last == 10 && *late.late == 1400 && late.awaited == 5600 && late.waited == 0 && late.calls == 10));
  CHECK((early.last == 0 && *early.late == -50 && early.awaited == 0 && early.waited == 20));
  CHECK((late.shares_causes() && late.causes_name() == "8-9"));
  CHECK((late.is_late() && !early.is_late()));
  CHECK((late.blamed == Approx(2800) && early.blamed == Approx(2800)));
  REQUIRE(late.causes);
  CHECK((*late.causes)[computing] == Approx(1));
  CHECK((analysis.hosts()[1].waited == 80 && analysis.hosts()[1].awaited == 5600));
  // Sums are not taken where a row is one rank.
  const Made single({row(0, 200, 0, 0, {}, 0, 0), row(1, 900, 0, 8, {}, 8, 80)});
  Analysis of_single;
  of_single.add(single, single.baseline());
  of_single.finish(processes_of(2), 2, {{0, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}});
  CHECK((of_single.ranks()[1].awaited == 80 && !of_single.ranks()[1].shares_causes()));
}

TEST_CASE("a lateness of less than 1% of the time has no cause worth a word", "[analysis]") {
  const Made site({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 0, 8, {}, 8, 80)});
  Analysis analysis;
  analysis.add(site, site.baseline());
  analysis.finish(processes_of(2), 2);
  CHECK((analysis.ranks()[1].causes && !analysis.ranks()[1].is_late()));
}

TEST_CASE("efficiencies: the parts of a chain and of a transfer", "[efficiency]") {
  // 10 calls. Outside MPI: 2,000, 10,000, 2,000, 2,000, 2,000; the run takes 12,000. After the last arrival: 100 per
  // call.
  const Made site = chain_of_three(100);
  const double messages[] = {0, 0, 8000, 8000, 0}, blocked_ns[] = {0, 8000, 0, 0, 0};
  std::vector<ProcessFigures> processes;
  for (std::size_t r = 0; r < 5; ++r)
    processes.push_back(
        {static_cast<long>(r),
         r < 3 ? "a" : "b",
         12'000,
         {.computing = 2000, .blocked = blocked_ns[r], .messages = messages[r], .other_mpi = r == 4 ? 500.0 : 0.0}});
  Analysis analysis;
  analysis.add(site, site.baseline());
  analysis.finish(processes, 5);
  const Efficiency& all = analysis.efficiency();
  CHECK(all.load_balance == Approx(18'000.0 / 5 / 10'000));
  CHECK(all.communication == Approx(10'000.0 / 12'000));
  // Of rank 3's messages, 10 of 800 are for a rank on time: 100 of 8,000. Each rank has 1,000 after last arrivals, and
  // rank 4 has 500 in other calls.
  const double transfer = 1 - (5 * 1000.0 + 100 + 500) / (5 * 12'000);
  CHECK(all.transfer == Approx(transfer));
  CHECK(all.serialisation == Approx(10'000.0 / 12'000 / transfer));
  REQUIRE(analysis.hosts().size() == 2);
  const Efficiency& b = analysis.hosts()[1].efficiency;
  CHECK(b.load_balance == Approx(1));
  CHECK(b.communication == Approx(2000.0 / 12'000));
  CHECK(b.transfer == Approx(1 - 2600.0 / 24'000));
}

TEST_CASE("a chain of messages leads to the rank that does something else", "[analysis]") {
  // Rank 1 computes. Rank 2 waits for it, rank 3 for rank 2, and rank 0 completes messages of ranks 3 and 1 at once.
  std::vector<RankFigures> ranks(4);
  for (long r = 0; r < 4; ++r) {
    RankFigures& rank = ranks[static_cast<std::size_t>(r)];
    rank.first = r;
    rank.ranks = 1;
    rank.wall = 1000;
    rank.times.messages = r == 1 ? 100 : 700;
    rank.times.computing = r == 1 ? 900 : 300;
  }
  ranks[0].times.messages = 750;
  ranks[0].times.computing = 250;
  ranks[0].peers = {{3, 750}, {1, 750}};
  ranks[1].peers = {{2, 90}};
  ranks[2].peers = {{1, 690}, {3, 10}};
  ranks[3].peers = {{2, 650}};
  const auto numbers = [](const MessageChain& chain) {
    std::vector<long> out;
    for (const RankFigures* rank : chain.ranks) out.push_back(rank->first);
    return out;
  };
  auto chain = follow_messages(ranks);
  REQUIRE(chain);
  CHECK(numbers(*chain) == std::vector<long>{0, 1});
  REQUIRE(chain->longer);
  CHECK_FALSE(chain->cycle);
  CHECK(kTimeColumns[chain->longer->part].key == "computing_ns");
  CHECK((chain->longer->mine == Approx(0.9) && chain->longer->others == Approx(0.85 / 3)));
  // Rank 1 sleeps instead. Its threads compute, and then they are in MPI calls.
  std::swap(ranks[1].times.computing, ranks[1].times.blocked);
  CHECK(follow_messages(ranks)->longer->sleeps_for == SleepsFor::unknown);
  ranks[1].times.threads = 880;
  CHECK(follow_messages(ranks)->longer->sleeps_for == SleepsFor::own_threads);
  ranks[1].times.threads_in_mpi = 880;
  CHECK(follow_messages(ranks)->longer->sleeps_for == SleepsFor::own_calls);
  std::swap(ranks[1].times.computing, ranks[1].times.blocked);

  ranks[0].times.messages = 0;
  ranks[3].times.messages = 720;
  chain = follow_messages(ranks);
  REQUIRE(chain);
  CHECK(numbers(*chain) == std::vector<long>{3, 2, 1});
  CHECK(chain->longer);

  // Rank 2 waits for rank 3, too, which waits for rank 2. What is left has to be a quarter of its wait.
  ranks[2].peers = {{1, 320}, {3, 380}};
  chain = follow_messages(ranks);
  REQUIRE(chain);
  CHECK(numbers(*chain) == std::vector<long>{3, 2, 1});
  CHECK(chain->longer);
  ranks[2].peers = {{1, 100}, {3, 600}};
  CHECK(numbers(*follow_messages(ranks)) == std::vector<long>{3, 2});
  // Some calls waited for ranks 1 and 3 at once: what is left without rank 3 is not known.
  ranks[2].peers = {{1, 340}, {3, 400}};
  CHECK(numbers(*follow_messages(ranks)) == std::vector<long>{3, 2});
  ranks[2].peers = {{1, 690}, {3, 10}};

  // Few of rank 3's calls were timed.
  ranks[3].messages_error = 300;
  CHECK(numbers(*follow_messages(ranks)) == std::vector<long>{3});
  ranks[3].messages_error = 400;
  CHECK_FALSE(follow_messages(ranks));
  ranks[3].messages_error = 0;

  // Nothing that rank 1 does explains why it waits less.
  ranks[1].times.computing = 300;
  chain = follow_messages(ranks);
  REQUIRE(chain);
  CHECK_FALSE(chain->longer);

  // Ranks 2 and 3 wait for each other, and of rank 3's eight peers none has most of the wait for certain.
  ranks[2].peers = {{3, 690}};
  CHECK(numbers(*follow_messages(ranks)) == std::vector<long>{3, 2});
  CHECK(follow_messages(ranks)->cycle);
  ranks[3].peers.assign(8, {2, 400});
  ranks[3].peers.resize(8);
  CHECK(numbers(*follow_messages(ranks)) == std::vector<long>{3});
  for (RankFigures& rank : ranks) rank.times.messages = 0;
  CHECK_FALSE(follow_messages(ranks));
}

TEST_CASE("samples count as the intervals that they stand for", "[analysis]") {
  // Rank 1: one interval in a hundred is long, and all long ones are sampled. Of the others, one in a hundred is.
  IntervalFigures all;
  all.samples = 2;
  all.stand_for = 2;
  all.wall = all.computing = 1000;
  IntervalFigures others;
  others.samples = 2;
  others.stand_for = 198;
  others.wall = others.computing = 10;
  all.add(others);
  CHECK((all.samples == 4 && all.stand_for == 200));
  CHECK(all.wall == Approx((2 * 1000 + 198 * 10) / 200.0));
}

TEST_CASE("one interval of a site that is called once is enough for its cause", "[analysis]") {
  const auto once = [](double calls) {
    std::vector<RankRow> rows;
    for (long r = 0; r < 4; ++r) {
      rows.push_back(row(r, r == 1 ? 9000 : 200, 0, 0, {}, r == 1 ? 8800 : 0, r == 1 ? 26400 : 0));
      rows.back().before.samples = rows.back().before.stand_for = 1;
    }
    Made site(std::move(rows));
    site.calls = calls;
    return site;
  };
  const Made setup = once(1);
  const auto compared = SiteIntervals(setup, setup.baseline()).compare(setup.ranks[1]);
  REQUIRE(compared);
  CHECK((compared->late_ns == Approx(8800) && compared->largest() == computing));
  const Made loop = once(100);
  CHECK_FALSE(SiteIntervals(loop, loop.baseline()).compare(loop.ranks[1]));
}
