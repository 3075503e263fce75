// SPDX-License-Identifier: BSD-3-Clause
// Tests the verifier on thousands of mutants of correct schedules. A mutant is a fault if any random run of the
// independent executor gives a wrong result. The verifier must reject at least 95% of the faults of every kind.
#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>

#include "tests/core/random_executor.hpp"

using namespace latecomer::core;
using latecomer::test::run_once;

namespace {

using Programs = std::vector<RankProgram>;

/// Removes operation i of rank r. Dependents inherit its dependencies as far as they have room.
void remove_operation(Programs& p, Rank r, std::size_t i) {
  auto& ops = p[static_cast<std::size_t>(r)].ops;
  const Operation gone = ops[i];
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
  for (std::size_t k = i; k < ops.size(); ++k) {
    const Operation was = ops[k];
    ops[k].dep_count = 0;
    for (int d = 0; d < was.dep_count; ++d) {
      if (was.deps[d] == static_cast<OpId>(i)) {
        for (int g = 0; g < gone.dep_count && ops[k].dep_count < Operation::kMaxDeps; ++g)
          ops[k] = ops[k].after(gone.deps[g]);
      } else {
        ops[k] = ops[k].after(was.deps[d] > static_cast<OpId>(i) ? was.deps[d] - 1 : was.deps[d]);
      }
    }
  }
}

/// Inserts `extra` after operation i. The dependents of i depend on `extra` instead.
void insert_after(std::vector<Operation>& ops, std::size_t i, Operation extra) {
  extra.dep_count = 0;
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, extra.after(static_cast<OpId>(i)));
  for (std::size_t k = i + 2; k < ops.size(); ++k)
    for (int d = 0; d < ops[k].dep_count; ++d)
      if (ops[k].deps[d] >= static_cast<OpId>(i)) ++ops[k].deps[d];
}

void drop_dependency(Operation& op, int d) {
  for (int k = d; k + 1 < op.dep_count; ++k) op.deps[k] = op.deps[k + 1];
  --op.dep_count;
}

/// Picks a random operation for which `suits` holds. Returns false if no operation qualifies.
bool pick(const Programs& p, SplitMix64& random, const std::function<bool(const Operation&)>& suits, Rank& r,
          std::size_t& i) {
  std::vector<std::pair<Rank, std::size_t>> all;
  for (std::size_t q = 0; q < p.size(); ++q)
    for (std::size_t k = 0; k < p[q].ops.size(); ++k)
      if (suits(p[q].ops[k])) all.emplace_back(static_cast<Rank>(q), k);
  if (all.empty()) return false;
  std::tie(r, i) = all[random.below(all.size())];
  return true;
}

struct Kind {
  const char* name;
  bool noncommutative;  // only for schedules of non-commutative operators
  std::function<bool(Programs&, SplitMix64&)> seed;
};

const Kind kKinds[] = {
    {"dropped dependency", false,
     [](Programs& p, SplitMix64& random) {
       Rank r;
       std::size_t i;
       if (!pick(
               p, random, [](const Operation& o) { return o.dep_count > 0; }, r, i))
         return false;
       Operation& op = p[static_cast<std::size_t>(r)].ops[i];
       drop_dependency(op, static_cast<int>(random.below(op.dep_count)));
       return true;
     }},
    {"doubled contribution", false,
     [](Programs& p, SplitMix64& random) {
       Rank r;
       std::size_t i;
       if (!pick(
               p, random, [](const Operation& o) { return o.kind == OpKind::reduce; }, r, i))
         return false;
       auto& ops = p[static_cast<std::size_t>(r)].ops;
       insert_after(ops, i, Operation(ops[i]));
       return true;
     }},
    {"missing contribution", false,
     [](Programs& p, SplitMix64& random) {
       Rank r;
       std::size_t i;
       if (!pick(
               p, random, [](const Operation& o) { return o.kind == OpKind::reduce; }, r, i))
         return false;
       remove_operation(p, r, i);
       return true;
     }},
    {"swapped operands", true,
     [](Programs& p, SplitMix64& random) {
       // Computes dst := dst o src instead of src o dst, by swapping the operands' places.
       Rank r;
       std::size_t i;
       if (!pick(
               p, random, [](const Operation& o) { return o.kind == OpKind::reduce && o.src.buffer != Buffer::input; },
               r, i))
         return false;
       auto& ops = p[static_cast<std::size_t>(r)].ops;
       std::swap(ops[i].dst, ops[i].src);
       insert_after(ops, i, copy(ops[i].src, ops[i].dst));
       return true;
     }},
    {"overlapping writes", false,
     [](Programs& p, SplitMix64& random) {
       // Two receives of a rank write the same place without a dependency between them.
       Rank r;
       std::size_t i;
       const auto is_recv = [](const Operation& o) { return o.kind == OpKind::recv && o.dst.count > 0; };
       if (!pick(p, random, is_recv, r, i)) return false;
       auto& ops = p[static_cast<std::size_t>(r)].ops;
       for (std::size_t k = i + 1; k < ops.size(); ++k) {
         if (!is_recv(ops[k]) || ops[k].dst.count != ops[i].dst.count) continue;
         ops[k].dst = ops[i].dst;
         ops[k].dep_count = 0;
         return true;
       }
       return false;
     }},
    {"unmatched message", false,
     [](Programs& p, SplitMix64& random) {
       Rank r;
       std::size_t i;
       if (!pick(
               p, random, [](const Operation& o) { return o.communicates(); }, r, i))
         return false;
       if (random.below(2) == 0) remove_operation(p, r, i);
       else p[static_cast<std::size_t>(r)].ops[i].channel = kChannels - 1;
       return true;
     }},
    {"cycle under rendezvous", false,
     [](Programs& p, SplitMix64& random) {
       // In an exchange, both ranks start the receive only after their send is complete.
       Rank r;
       std::size_t i;
       const auto& q = p;
       const auto exchanges = [&](Rank a, std::size_t s, std::size_t& v) {
         for (v = 0; v < q[static_cast<std::size_t>(a)].ops.size(); ++v) {
           const Operation& o = q[static_cast<std::size_t>(a)].ops[v];
           const Operation& given = q[static_cast<std::size_t>(a)].ops[s];
           if (o.kind == OpKind::recv && o.peer == given.peer && o.channel == given.channel) return true;
         }
         return false;
       };
       if (!pick(
               p, random, [](const Operation& o) { return o.kind == OpKind::send; }, r, i))
         return false;
       std::size_t mine = 0, theirs = 0, other = 0;
       const Operation sent = q[static_cast<std::size_t>(r)].ops[i];
       if (!exchanges(r, i, mine)) return false;
       const auto& there = q[static_cast<std::size_t>(sent.peer)].ops;
       for (other = 0; other < there.size(); ++other)
         if (there[other].kind == OpKind::send && there[other].peer == r && there[other].channel == sent.channel) break;
       if (other == there.size() || !exchanges(sent.peer, other, theirs)) return false;
       if (i > mine || other > theirs) return false;
       auto& a = p[static_cast<std::size_t>(r)].ops[mine];
       auto& b = p[static_cast<std::size_t>(sent.peer)].ops[theirs];
       if (a.dep_count == Operation::kMaxDeps || b.dep_count == Operation::kMaxDeps) return false;
       a = a.after(static_cast<OpId>(i));
       b = b.after(static_cast<OpId>(other));
       return true;
     }},
};

}  // namespace

TEST_CASE("the independent executor accepts every algorithm", "[faults]") {
  for (const Algorithm& algorithm : catalogue())
    for (const int ranks : {1, 2, 3, 5, 6, 8})
      for (const bool in_place : {false, true}) {
        Call call{algorithm.op,
                  ranks,
                  is_rooted(algorithm.op) ? ranks / 2 : 0,
                  ranks + 3,
                  8,
                  in_place,
                  !algorithm.keeps_rank_order()};
        Parameters parameters;
        parameters.network.alpha_ns = 1e4;
        const Instance instance(call, *parse_arrivals("randlate:300us:5", ranks), parameters);
        const auto programs = materialize(algorithm, instance);
        for (std::uint64_t seed = 0; seed < 20; ++seed) REQUIRE(run_once(call, programs, seed) == "");
      }
}

TEST_CASE("seeded faults are rejected", "[faults]") {
  SplitMix64 random(20260101);
  std::printf("%-24s %8s %8s %9s %7s %18s\n", "kind", "mutants", "faults", "rejected", "share", "harmless, rejected");
  for (const Kind& kind : kKinds) {
    int mutants = 0, faults = 0, caught = 0, harmless = 0, strict = 0;
    for (int attempt = 0; attempt < 6000 && mutants < 1000; ++attempt) {
      const auto& all = catalogue();
      const Algorithm& algorithm = all[random.below(all.size())];
      if (kind.noncommutative && (!algorithm.keeps_rank_order() || !is_reduction(algorithm.op))) continue;
      const int ranks = 2 + static_cast<int>(random.below(6));
      Call call{algorithm.op,
                ranks,
                is_rooted(algorithm.op) ? static_cast<Rank>(random.below(static_cast<std::uint64_t>(ranks))) : 0,
                static_cast<Elements>(1 + random.below(12)),
                8,
                random.below(2) == 0,
                !kind.noncommutative};
      Parameters parameters;
      parameters.network.alpha_ns = 1e4;
      parameters.overlap = random.below(2) == 0;
      const Instance instance(call, *parse_arrivals("randlate:200us:" + std::to_string(random.below(1000)), ranks),
                              parameters);
      auto programs = materialize(algorithm, instance);
      if (!kind.seed(programs, random)) continue;
      ++mutants;
      const bool rejected = !verify(call, programs).ok();
      bool fault = false;
      for (int run = 0; run < 300 && !fault; ++run) fault = run_once(call, programs, random.next()) != "";
      faults += fault;
      caught += fault && rejected;
      harmless += !fault;
      strict += !fault && rejected;
    }
    std::printf("%-24s %8d %8d %9d %6.1f%% %8d of %6d\n", kind.name, mutants, faults, caught,
                faults ? 100.0 * caught / faults : 0.0, strict, harmless);
    INFO(kind.name);
    CHECK(mutants >= 300);
    CHECK(faults >= 50);
    CHECK(caught >= 0.95 * faults);
  }
}
