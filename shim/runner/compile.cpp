// SPDX-License-Identifier: BSD-3-Clause
// The generation of schedules, and the tables of planned numbers of segments that it uses.
#include "shim/runner/compile.hpp"

#include <utility>

#include "core/select/planned_tables.hpp"
#include "core/select/planning.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

core::PlannedTables& tables() {
  static auto& made = *new core::PlannedTables;  // never destroyed: callbacks may come after exit handlers
  return made;
}

}  // namespace

core::Call ScheduleKey::call(int ranks) const {
  core::Call out;
  out.op = algorithm->op;
  out.root = root;
  out.ranks = ranks;
  out.count = count;
  out.element_bytes = element_bytes;
  out.in_place = in_place;
  out.commutative = commutative;
  return out;
}

std::shared_ptr<Compiled> build_schedule(Rank rank, const std::vector<Rank>& world, const ScheduleKey& key,
                                         const core::Plan* plan) {
  return build_schedule(
      rank, world, key,
      key.pattern < 0 ? core::Pattern() : core::Pattern(plan->patterns[static_cast<std::size_t>(key.pattern)]),
      key.sizes < 0 ? std::vector<core::Bytes>{} : plan->sizes[static_cast<std::size_t>(key.sizes)]);
}

std::shared_ptr<Compiled> compile_irregular(core::RankProgram program) {
  auto pieces = core::skip_packing(program, 1);
  auto out = std::make_shared<Compiled>(std::move(program));
  out->pieces = std::move(pieces);
  return out;
}

std::shared_ptr<Compiled> build_schedule(Rank rank, const std::vector<Rank>& world, const ScheduleKey& key,
                                         const core::Pattern& pattern, const std::vector<core::Bytes>& sizes) {
  core::Parameters parameters;
  parameters.segments = key.segments;
  parameters.overlap = key.overlap;
  parameters.network = job_rules().policy.network;
  parameters.hosts = job_world().hosts_of(world);
  parameters.sizes = sizes;
  parameters.only = rank;
  const int ranks = static_cast<int>(world.size());
  const core::Instance instance = core::plans_segments(*key.algorithm)
                                      ? tables().instance(*key.algorithm, key.call(ranks), pattern, parameters)
                                      : core::Instance(key.call(ranks), pattern, parameters);
  core::RankProgram program = core::materialize(*key.algorithm, instance, rank);
  if (core::is_irregular(key.algorithm->op)) return compile_irregular(std::move(program));
  // From this size on, an indexed datatype takes 0.26 to 0.85 of the time of copying; below it up to 1.4 (measured with
  // tests/bench/permutation). The blocks of smaller messages are copied. Bytes.
  constexpr core::Elements kWorthIndexing = 16384;
  const auto pieces =
      core::has_blocks(key.algorithm->op) ? core::skip_packing(program, kWorthIndexing) : std::vector<core::Pieces>{};
  return std::make_shared<Compiled>(std::move(program), pieces);
}

std::uint64_t plans_made() { return tables().planned(); }

}  // namespace latecomer::shim
