// SPDX-License-Identifier: BSD-3-Clause
// Tests the limits of planning in a job, the algorithms that replace a plan above them, and the sharing of plans.
#include "core/select/planning.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "core/agreement/agreement.hpp"
#include "core/base/text.hpp"
#include "core/select/planned_tables.hpp"
#include "core/verify/verify.hpp"

using namespace latecomer::core;

namespace {

Signature signature_of(Collective op, Elements count, Bytes element_bytes, int ranks, OpClass op_class, bool exact) {
  Signature s;
  s.op = op;
  s.root = is_rooted(op) ? ranks / 2 : -1;
  s.count = is_irregular(op) ? 1 : count;
  s.bytes = is_irregular(op) ? -1 : count * element_bytes * (has_blocks(op) ? ranks : 1);
  s.op_class = is_reduction(op) ? op_class : OpClass::none;
  s.exact = !is_reduction(op) || exact;
  s.servable = true;
  return s;
}

Policy forced(const Algorithm& a, Reproducible reproducible, int segments) {
  Policy policy;
  policy.mode = Mode::apply;
  policy.reproducible = reproducible;
  Rule rule;
  rule.match.ops = {a.op};
  rule.use.kind = Use::Kind::algorithm;
  rule.use.algorithm = a.name;
  rule.use.segments = segments;
  policy.rules = {rule};
  return policy;
}

}  // namespace

TEST_CASE("planning: every decision respects the planning limit, the operator and the policy", "[planning]") {
  std::set<std::string> planned, replaced;
  for (const Algorithm& a : catalogue()) {
    if (!is_dispatched(a.op)) continue;
    for (const int ranks : {2, 5, 16, 39, 150, 1000, 4096})
      for (const Elements count : {1, 30, 5000, 3'000'000})
        for (const int segments : {0, 700})
          for (const OpClass op_class : {OpClass::sum, OpClass::user, OpClass::user_noncommutative})
            for (const bool exact : {false, true})
              for (const Reproducible reproducible : {Reproducible::any, Reproducible::run, Reproducible::native})
                for (const bool announced : {false, true}) {
                  if (segments > 0 && a.segments == Segments::none) continue;
                  const Policy policy = forced(a, reproducible, segments);
                  const Signature s = signature_of(a.op, count, 8, ranks, op_class, exact);
                  PlanEntry entry;
                  entry.algorithm = index_of(&a);
                  entry.segments = segments;
                  entry.sizes = a.needs_sizes ? 0 : -1;
                  entry.pattern = 0;
                  entry.edge = 1;
                  const Decision d =
                      announced ? decide_planned_call(policy, s, ranks, entry) : decide_call(policy, s, ranks);
                  CAPTURE(a.name, ranks, count, segments, announced);
                  const std::int64_t most = announced ? kPlannedAhead : kPlannedInside;
                  if (d.unplanned) {
                    REQUIRE(d.unplanned == &a);
                    REQUIRE(d.algorithm != &a);
                    REQUIRE(d.planning > most);
                    replaced.insert(std::string(a.name) + (announced ? " ahead" : " inside"));
                  }
                  if (!d.algorithm) continue;
                  REQUIRE(d.algorithm->op == a.op);
                  if (is_reduction(a.op)) {
                    if (op_class == OpClass::user_noncommutative) REQUIRE(d.algorithm->keeps_rank_order());
                    if (!exact && reproducible == Reproducible::run) REQUIRE(d.algorithm->pattern_independent());
                    if (!exact) REQUIRE(reproducible != Reproducible::native);
                  }
                  if (d.algorithm->needs_sizes) REQUIRE(d.sizes >= 0);
                  const Call call = call_of(s, ranks);
                  // The planning effort, computed independently of the decision.
                  const std::int64_t takes = planning_of(*d.algorithm, call, d.segments, policy.network);
                  REQUIRE(takes <= most);
                  if (d.edge) REQUIRE(takes <= kPlannedInside);
                  if (plans_segments(*d.algorithm)) {
                    REQUIRE(d.segments >= 1);  // set by the decision, so that ranks search for no number
                    if (segments > 0) REQUIRE(d.segments == segments);
                    planned.insert(std::string(a.name));
                  }
                }
  }
  // Each algorithm that plans an exchange was planned in some cases, and replaced under both limits in others.
  for (const Algorithm& a : catalogue()) {
    if (!is_dispatched(a.op) || !plans_segments(a)) continue;
    CAPTURE(a.name);
    CHECK(planned.contains(std::string(a.name)));
    CHECK(replaced.contains(std::string(a.name) + " inside"));
    CHECK(replaced.contains(std::string(a.name) + " ahead"));
  }
}

TEST_CASE("planning: prr replaces clairvoyant above the limit, or native where the policy forbids prr", "[planning]") {
  const Algorithm& plan = *find_algorithm(Collective::allreduce, "clairvoyant");
  const Signature sum = signature_of(Collective::allreduce, 1 << 20, 8, 200, OpClass::sum, false);
  const Decision any = decide_call(forced(plan, Reproducible::any, 0), sum, 200);
  REQUIRE(any.algorithm);
  CHECK(any.algorithm->name == "prr");
  CHECK(any.unplanned == &plan);
  CHECK(any.planning == 2 * 200 * 16);
  CHECK_FALSE(decide_call(forced(plan, Reproducible::run, 0), sum, 200).algorithm);
  CHECK(decide_call(forced(plan, Reproducible::any, 0), sum, 90).algorithm == &plan);  // 2 * 90 * 16 messages
}

TEST_CASE("planning: earlier plans of a process change no schedule", "[planning]") {
  SplitMix64 random(29);
  PlannedTables one, small(1);  // `small` keeps one table at a time
  std::set<std::pair<const Algorithm*, Elements>> classes;
  std::int64_t cases = 0;
  for (const Algorithm& a : catalogue()) {
    if (!is_dispatched(a.op) || !plans_segments(a)) continue;
    for (int round = 0; round < 60; ++round) {
      Call call;
      call.op = a.op;
      call.ranks = 2 + static_cast<int>(random.below(6));
      call.root = is_rooted(a.op) ? static_cast<Rank>(random.below(static_cast<std::uint64_t>(call.ranks))) : 0;
      call.count = 1 + static_cast<Elements>(random.below(3000));
      call.element_bytes = is_reduction(a.op) ? 8 : 1;
      call.in_place = is_reduction(a.op) && !is_rooted(a.op) && random.below(2) == 0;
      std::vector<Nanoseconds> arrivals(static_cast<std::size_t>(call.ranks), 0);
      if (random.below(2)) arrivals[random.below(arrivals.size())] = 1'000'000;
      const Pattern pattern = random.below(3) ? Pattern(arrivals) : Pattern();
      Parameters parameters;
      parameters.network = *network_preset("fdr");
      parameters.segments = fit_to(a, call, 0, parameters.network, kPlannedInside).segments;
      if (random.below(4) == 0) parameters.segments = 1 + static_cast<int>(random.below(40));
      std::vector<RankProgram> programs;
      for (Rank r = 0; r < call.ranks; ++r) {
        parameters.only = r;
        programs.push_back(materialize(a, one.instance(a, call, pattern, parameters), r));
        // Plans other calls first, so that the two processes have different tables.
        for (int other = static_cast<int>(random.below(3)); other > 0; --other) {
          Call before = call;
          before.count = 1 + static_cast<Elements>(random.below(3000));
          small.instance(a, before, pattern, parameters);
        }
        const RankProgram again = materialize(a, small.instance(a, call, pattern, parameters), r);
        REQUIRE(again.scratch == programs.back().scratch);
        REQUIRE(again.ops.size() == programs.back().ops.size());
        for (std::size_t i = 0; i < again.ops.size(); ++i)
          REQUIRE(describe_operation(again.ops[i]) == describe_operation(programs.back().ops[i]));
      }
      const ScheduleVerdict verdict = verify(call, programs);
      CAPTURE(a.name, call.ranks, call.count, parameters.segments);
      REQUIRE(verdict.what == "");
      REQUIRE(verdict.ok());
      ++cases;
    }
  }
  CHECK(cases == 2 * 60);
  CHECK(small.bytes() < one.bytes());
}

TEST_CASE("planning: all sizes of a class share a plan, and memory is bounded", "[planning]") {
  const Algorithm& a = *find_algorithm(Collective::allreduce, "clairvoyant");
  Parameters parameters;
  parameters.network = *network_preset("fdr");
  parameters.only = 1;
  PlannedTables tables(1 << 18);
  std::set<std::pair<Elements, int>> classes;
  for (Elements count = 100; count < 40'000; count += 13) {
    Call call;
    call.op = Collective::allreduce;
    call.ranks = 4;
    call.count = count;
    call.element_bytes = 4;
    parameters.segments = fit_to(a, call, 0, parameters.network, kPlannedInside).segments;
    classes.emplace(size_class(count), parameters.segments);
    REQUIRE(size_class(count) <= count);
    REQUIRE(8 * count < 9 * size_class(count) + 8);
    tables.instance(a, call, {}, parameters);
    REQUIRE(tables.bytes() <= 1 << 18);
  }
  CHECK(classes.size() < 80);
  // Each class has one number of segments.
  CHECK(std::set<Elements>([&] {
          std::set<Elements> out;
          for (const auto& [c, s] : classes) out.insert(c);
          return out;
        }())
            .size() == classes.size());
  CHECK(tables.planned() == classes.size());
}
