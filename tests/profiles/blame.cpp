// SPDX-License-Identifier: BSD-3-Clause
// Following lateness to its cause, and POP's efficiencies, on constructed profiles with known answers.
#include "profiles/cli/blame.hpp"

#include <catch2/catch.hpp>
#include <utility>

#include "profiles/cli/efficiency.hpp"

using namespace latecomer::cli;
using Json = nlohmann::ordered_json;

namespace {

using Waits = std::vector<std::pair<long, double>>;

/// A row of 10 samples: the mean interval in its parts, the offset in the calls, and the time that others waited for
/// it.
Json row(long rank, double computing, double messages, double blocked, const Waits& waits_for, double offset,
         double awaited) {
  Json before = {{"samples", 10},        {"wall_ns", computing + messages + blocked},
                 {"collectives_ns", 0},  {"messages_ns", messages},
                 {"io_ns", 0},           {"computing_ns", computing},
                 {"kernel_ns", 0},       {"runnable_ns", 0},
                 {"blocked_ns", blocked}};
  for (const auto& [peer, waited] : waits_for) before["waits_for"].push_back({{"rank", peer}, {"wait_ns", waited}});
  return {{"rank", rank}, {"mean_offset_ns", offset}, {"awaited_ns", awaited}, {"before", before}};
}

/// `after_last`: per call, of 10 calls.
Json site(std::vector<Json> rows, double after_last = 0) {
  Json all = {{"samples", 10 * rows.size()}};
  for (const auto& [key, value] : rows[0]["before"].items()) {
    if (key == "samples" || key == "waits_for") continue;
    double sum = 0;
    for (const Json& r : rows) sum += r["before"][key].get<double>();
    all[key] = sum / static_cast<double>(rows.size());
  }
  return {{"comm_size", rows.size()},
          {"rows", rows.size()},
          {"before", all},
          {"ranks", rows},
          {"dispatch", {{"native", {{"calls", 10}, {"mean_after_last_ns", after_last}}}}}};
}

Blame blamed(const Json& site) { return blame({{"sites", {site}}}); }

std::vector<long> ranks_of(const SiteIntervals::Chain& chain) {
  std::vector<long> out;
  for (const Json* r : chain.rows) out.push_back((*r)["rank"].get<long>());
  return out;
}

/// Rank 1 sleeps for 800, rank 2 waits for it, and rank 3 for rank 2. Ranks 0 and 4 are on time.
Json chain_of_three() {
  return site({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 0, 800, {}, 800, 0), row(2, 200, 800, 0, {{1, 800}}, 800, 0),
               row(3, 200, 800, 0, {{2, 790}, {0, 10}}, 810, 1600), row(4, 200, 0, 0, {}, 0, 0)});
}

}  // namespace

TEST_CASE("blame: waits for messages lead to the rank that sleeps", "[blame]") {
  const Json s = chain_of_three();
  const SiteIntervals intervals(s);
  const auto chain = intervals.follow(s["ranks"][3]);
  CHECK(ranks_of(chain) == std::vector<long>{3, 2, 1});
  CHECK(chain.end == ChainEnd::own);
  const Blame b = blamed(s);
  CHECK(b.at(1)[blocked] == Approx(1600.0 * 800 / 810 * 790 / 800));
  // 10 of 800 is a wait for rank 0, which is on time. 10 of 810 is no part of the interval.
  CHECK(b.at(3)[mpi_wait] == Approx(1600.0 * 800 / 810 * 10 / 800));
  CHECK(b.at(3)[kCauses] == Approx(1600.0 * 10 / 810));
  CHECK(b.count(2) == 0);
}

TEST_CASE("blame: a peer that is not late ends the chain with the transfer", "[blame]") {
  const Json s =
      site({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 800, 0, {{0, 800}}, 800, 1600), row(2, 200, 0, 0, {}, 0, 0)});
  const auto chain = SiteIntervals(s).follow(s["ranks"][1]);
  CHECK(ranks_of(chain) == std::vector<long>{1});
  CHECK((chain.end == ChainEnd::transfer && chain.peer == 0));
  CHECK(blamed(s).at(1)[mpi_wait] == Approx(1600));
}

TEST_CASE("blame: ranks that wait for each other end the chain", "[blame]") {
  const Json s = site({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 800, 0, {{2, 800}}, 800, 1000),
                       row(2, 200, 800, 0, {{1, 800}}, 800, 0), row(3, 200, 0, 0, {}, 0, 0)});
  const auto chain = SiteIntervals(s).follow(s["ranks"][1]);
  CHECK(ranks_of(chain) == std::vector<long>{1, 2});
  CHECK((chain.end == ChainEnd::cycle && chain.peer == 1));
  double all = 0;
  for (const auto& [rank, times] : blamed(s))
    for (const double time : times) all += time;
  CHECK(all == Approx(1000));
}

TEST_CASE("blame: a rank that waits for several ranks, or for one without samples", "[blame]") {
  const Json several =
      site({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 800, 0, {{0, 300}, {2, 250}, {3, 250}}, 800, 3000),
            row(2, 200, 0, 0, {}, 0, 0), row(3, 200, 0, 0, {}, 0, 0)});
  CHECK(SiteIntervals(several).follow(several["ranks"][1]).end == ChainEnd::several);
  Json unseen =
      site({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 800, 0, {{2, 800}}, 800, 1600), row(2, 200, 0, 800, {}, 0, 0)});
  unseen["ranks"][2].erase("before");
  CHECK(SiteIntervals(unseen).follow(unseen["ranks"][1]).end == ChainEnd::unsampled);
}

TEST_CASE("blame: a rank that computes more keeps the blame, and an earlier collective explains nothing", "[blame]") {
  const Json late =
      site({row(0, 200, 0, 0, {}, 0, 0), row(1, 900, 100, 0, {{0, 100}}, 800, 800), row(2, 200, 0, 0, {}, 0, 0)});
  CHECK(blamed(late).at(1)[computing] == Approx(700));
  CHECK(blamed(late).at(1)[mpi_wait] == Approx(100));
  const Json earlier = site({row(0, 200, 0, 0, {}, 0, 0), row(1, 200, 0, 0, {}, 800, 800)});
  CHECK(blamed(earlier).at(1)[kCauses] == Approx(800));
}

TEST_CASE("blame: own threads take the rank's core only where the process has no other", "[blame]") {
  Json r = row(0, 200, 0, 0, {}, 0, 0);
  r["before"]["wall_ns"] = 400, r["before"]["runnable_ns"] = 200, r["before"]["threads_ns"] = 200;
  CHECK(own_threads_run(r, 1));
  CHECK_FALSE(own_threads_run(r, 2));
  r["before"]["threads_ns"] = 550;
  CHECK(own_threads_run(r, 2));
  CHECK_FALSE(own_threads_run(r, 0));
}

TEST_CASE("efficiencies: the parts of a chain and of a transfer", "[efficiency]") {
  // 10 calls. Outside MPI: 2,000, 10,000, 2,000, 2,000, 2,000; the run takes 12,000. After the last arrival: 100 per
  // call.
  Json profile = {{"sites", {chain_of_three()}}};
  profile["sites"][0]["dispatch"]["native"]["mean_after_last_ns"] = 100;
  const double messages[] = {0, 0, 8000, 8000, 0}, blocked_ns[] = {0, 8000, 0, 0, 0};
  for (long r = 0; r < 5; ++r)
    profile["processes"].push_back({{"rank", r},
                                    {"host", r < 3 ? "a" : "b"},
                                    {"wall_ns", 12'000},
                                    {"computing_ns", 2000},
                                    {"kernel_ns", 0},
                                    {"runnable_ns", 0},
                                    {"blocked_ns", blocked_ns[r]},
                                    {"messages_ns", messages[r]}});
  const Efficiencies efficiencies(profile);
  const Efficiency all = efficiencies.of_host("");
  CHECK(all.load_balance == Approx(18'000.0 / 5 / 10'000));
  CHECK(all.communication == Approx(10'000.0 / 12'000));
  // Of rank 3's messages, 10 of 800 are for a rank on time: 100 of 8,000. Each rank has 1,000 after last arrivals.
  const double transfer = 1 - (5 * 1000.0 + 100) / (5 * 12'000);
  CHECK(all.transfer == Approx(transfer));
  CHECK(all.serialisation == Approx(10'000.0 / 12'000 / transfer));
  const Efficiency b = efficiencies.of_host("b");
  CHECK(b.load_balance == Approx(1));
  CHECK(b.communication == Approx(2000.0 / 12'000));
  CHECK(b.transfer == Approx(1 - 2100.0 / 24'000));
  CHECK(efficiencies.of_host("c").load_balance == 0);
}
