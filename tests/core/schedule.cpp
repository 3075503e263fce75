// SPDX-License-Identifier: BSD-3-Clause
// Tests that the verifier accepts every algorithm, rejects each kind of fault, and confirms the catalogue's traits.
#include <catch2/catch.hpp>
#include <map>

#include "core/schedule/pieces.hpp"
#include "core/verify/verify.hpp"
#include "tests/core/random_executor.hpp"

using namespace latecomer::core;

TEST_CASE("verify: every algorithm, 1 to 17 ranks", "[schedule]") {
  for (const Algorithm& algorithm : catalogue()) {
    bool independent = true;
    for (int ranks = 1; ranks <= 17; ++ranks) {
      const SweepResult result = sweep(algorithm, ranks, is_rooted(algorithm.op) ? ranks / 2 : 0, {});
      INFO(algorithm.name << " on " << ranks << ": " << (result.failures.empty() ? "" : result.failures[0].what));
      REQUIRE(result.failures.empty());
      independent = independent && result.pattern_independent;
    }
    INFO(algorithm.name);
    CHECK(independent == algorithm.pattern_independent());
  }
}

TEST_CASE("verify: the catalogue claims rank order exactly where it holds", "[schedule]") {
  for (const Algorithm& algorithm : catalogue()) {
    // A single pattern may keep the ranks in order by chance.
    bool ok = true, rank_order = true;
    for (const char* arrivals : {"balanced", "descending:10ms", "randlate:10ms:3"}) {
      Call call{algorithm.op, 7, 0, 21, 8, false, false};
      Parameters parameters;
      parameters.network.alpha_ns = 1e5;
      parameters.segments = 3;  // with a given number, no algorithm passes the call to another
      const ScheduleVerdict verdict =
          verify(call, materialize(algorithm, Instance(call, *parse_arrivals(arrivals, 7), parameters)));
      ok = ok && verdict.ok();
      rank_order = rank_order && verdict.rank_order;
    }
    INFO(algorithm.name);
    CHECK(ok == algorithm.keeps_rank_order());
    CHECK(rank_order == algorithm.keeps_rank_order());
  }
}

namespace {
/// A correct schedule in which two ranks exchange and reduce. The tests add faults to it.
std::vector<RankProgram> exchange() {
  std::vector<RankProgram> p(2);
  for (Rank r : {0, 1}) {
    const Slice mine{Buffer::output, 0, 4}, theirs{Buffer::scratch, 0, 4};
    p[static_cast<std::size_t>(r)].scratch = 4;
    auto& ops = p[static_cast<std::size_t>(r)].ops;
    ops.push_back(recv(1 - r, theirs, 0));
    ops.push_back(send(1 - r, mine, 0));
    if (r == 1) {
      ops.push_back(reduce(mine, theirs).after(0, 1));
    } else {
      ops.push_back(reduce(theirs, mine).after(0));
      ops.push_back(copy(mine, theirs).after(2, 1));
    }
  }
  return p;
}
const Call kCall{Collective::allreduce, 2, 0, 4, 8, true, false};
Fault fault_of(const std::vector<RankProgram>& p) { return verify(kCall, p).fault; }
}  // namespace

TEST_CASE("verify: rejects a barrier that a rank may leave early", "[schedule]") {
  std::vector<RankProgram> p(3);
  for (Rank r = 0; r < 3; ++r)
    p[static_cast<std::size_t>(r)].ops = {send((r + 1) % 3, {Buffer::output, 0, 0}, 0),
                                          recv((r + 2) % 3, {Buffer::output, 0, 0}, 0)};
  const Call call{Collective::barrier, 3, 0, 0, 1, false, true};
  CHECK(verify(call, p).fault == Fault::wrong_result);
  for (auto& program : p) {  // a second step, in which ranks forward what they have heard
    const Rank next = program.ops[0].peer, before = program.ops[1].peer;
    program.ops.push_back(send(next, {Buffer::output, 0, 0}, 1).after(1));
    program.ops.push_back(recv(before, {Buffer::output, 0, 0}, 1));
  }
  CHECK(verify(call, p).ok());
}

TEST_CASE("verify: names each kind of fault", "[schedule]") {
  REQUIRE(verify(kCall, exchange()).ok());
  auto p = exchange();
  SECTION("a slice beyond the buffer") {
    p[0].ops[0].dst.count = 5;
    CHECK(fault_of(p) == Fault::malformed);
  }
  SECTION("scratch beyond its declared bound") {
    p[0].scratch = 3;
    CHECK(fault_of(p) == Fault::malformed);
  }
  SECTION("no such peer") {
    p[0].ops[1].peer = 2;
    CHECK(fault_of(p) == Fault::malformed);
  }
  SECTION("input in place") {
    p[0].ops[1].src.buffer = Buffer::input;
    CHECK(fault_of(p) == Fault::malformed);
  }
  SECTION("another channel") {
    p[0].ops[1].channel = 3;
    CHECK(fault_of(p) == Fault::unmatched);
  }
  SECTION("another length") {
    p[0].ops[1].src.count = 3;
    CHECK(fault_of(p) == Fault::unmatched);
  }
  SECTION("send, and only then receive, on both sides") {
    for (auto& q : p) {
      std::swap(q.ops[0], q.ops[1]);
      q.ops[1] = q.ops[1].after(0);
    }
    p[0].ops[2].deps[0] = 1;  // the receive is now operation 1
    CHECK(fault_of(p) == Fault::deadlock);
  }
  SECTION("reduce before the send has read") {
    p[1].ops[2].dep_count = 1;
    CHECK(fault_of(p) == Fault::race);
  }
  SECTION("send of data that were never written") {
    p[0].ops[1].src.buffer = Buffer::scratch;
    CHECK_FALSE(verify(kCall, p).ok());
  }
  SECTION("result in another order on each rank") {
    p[0].ops[2] = reduce({Buffer::output, 0, 4}, {Buffer::scratch, 0, 4}).after(0, 1);
    p[0].ops.pop_back();
    CHECK(fault_of(p) == Fault::wrong_result);
  }
  SECTION("ambiguous channel") {
    p[0].ops.push_back(send(1, {Buffer::output, 0, 4}, 0));
    p[1].ops.push_back(recv(0, {Buffer::scratch, 0, 4}, 0).after(2));
    CHECK(fault_of(p) == Fault::unmatched);
  }
  SECTION("a program buffer before the arrival") {
    p[0].ops[1] = p[0].ops[1].in_lane(Lane::background);
    CHECK(fault_of(p) == Fault::early_touch);
    p = exchange();
    p[0].ops[0] = p[0].ops[0].in_lane(Lane::background);  // valid, because it writes scratch
    CHECK(verify(kCall, p).ok());
  }
}

TEST_CASE("prr with a flat pattern is the ring", "[schedule]") {
  for (const int ranks : {2, 5, 8}) {
    Call call{Collective::allreduce, ranks, 0, 40, 8, false, true};
    const Instance instance(call, Pattern(), {});
    const auto ring = materialize(*find_algorithm(call.op, "ring"), instance);
    const auto prr = materialize(*find_algorithm(call.op, "prr"), instance);
    for (std::size_t r = 0; r < ring.size(); ++r) {
      REQUIRE(ring[r].ops.size() == prr[r].ops.size());
      for (std::size_t i = 0; i < ring[r].ops.size(); ++i)
        CHECK(describe_operation(ring[r].ops[i]) == describe_operation(prr[r].ops[i]));
    }
  }
}

TEST_CASE("pieces: messages in pieces give the same result as copies", "[schedule]") {
  std::map<std::string, int> found;
  for (const Algorithm& algorithm : catalogue()) {
    if (!is_scatter(algorithm.op) && !is_gather(algorithm.op)) continue;
    for (const int ranks : {2, 5, 8, 13})
      for (const char* arrivals : {"balanced", "descending:10ms", "randlate:10ms:3"})
        for (const bool in_place : {false, true}) {
          const Call call{algorithm.op, ranks, ranks / 3, 3, 1, in_place, true};
          const Instance instance(call, *parse_arrivals(arrivals, ranks), {});
          auto programs = materialize(algorithm, instance);
          std::vector<std::vector<Pieces>> pieces;
          for (RankProgram& p : programs) {
            const Elements before = p.scratch;
            pieces.push_back(skip_packing(p, 4));
            CHECK(p.scratch <= before);
            found[std::string(name_of(algorithm.op)) + " " + std::string(algorithm.name)] +=
                static_cast<int>(pieces.back().size());
            for (const Pieces& m : pieces.back()) {
              Elements all = 0;
              for (const Slice& s : m.where) {
                all += s.count;
                CHECK(s.buffer == (is_scatter(algorithm.op) ? Buffer::input : Buffer::output));
              }
              CHECK(all == p.ops[static_cast<std::size_t>(m.message)].count());
              CHECK(all >= 4);
            }
          }
          for (std::uint64_t seed = 0; seed < 5; ++seed) {
            INFO(algorithm.name << " on " << ranks << ", " << arrivals);
            CHECK(latecomer::test::run_once(call, programs, seed, pieces) == "");
          }
        }
  }
  // The roots of trees have such messages. Lists have none, and background messages need the scratch.
  for (const char* name : {"scatter sbn", "scatter binomial", "gather sbn", "gatherv optimal", "scatterv optimal"})
    CHECK(found[name] > 0);
  for (const char* name : {"scatter linear", "scatter slin", "gather bsls", "gather linear_sync"})
    CHECK(found[name] == 0);
}

TEST_CASE("pieces: a copy is removed only if no other operation touches its data", "[schedule]") {
  // Packs two blocks of the input in reverse order.
  const Slice packed{Buffer::scratch, 0, 4}, low{Buffer::scratch, 0, 2}, high{Buffer::scratch, 2, 2},
      a{Buffer::input, 0, 2}, b{Buffer::input, 2, 2};
  RankProgram p;
  p.scratch = 4;
  p.ops = {copy(low, b), copy(high, a).after(0), send(1, packed, 0).after(1)};
  const auto pieces = [](RankProgram program, Elements least = 1) { return skip_packing(program, least); };
  REQUIRE(pieces(p).size() == 1);
  CHECK(pieces(p)[0].where == std::vector<Slice>{b, a});
  CHECK(pieces(p, 5).empty());
  RankProgram q = p;
  SECTION("a part without a copy") { q.ops[1] = copy({Buffer::scratch, 2, 1}, {Buffer::input, 0, 1}).after(0); }
  SECTION("a second reader") { q.ops.push_back(send(2, low, 0).after(1)); }
  SECTION("written again") { q.ops.push_back(recv(2, high, 0).after(2)); }
  SECTION("from the output, which may change") { q.ops[0].src.buffer = Buffer::output; }
  SECTION("in the background") { q.ops[2] = q.ops[2].in_lane(Lane::background); }
  SECTION("an output that another operation writes too") {
    q.ops = {recv(1, packed, 0), copy({Buffer::output, 2, 2}, low).after(0),
             copy({Buffer::output, 0, 2}, high).after(1)};
    REQUIRE(pieces(q).size() == 1);
    q.ops.push_back(copy({Buffer::output, 1, 1}, {Buffer::input, 0, 1}).after(2));
  }
  CHECK(pieces(q).empty());
}
