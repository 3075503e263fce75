// SPDX-License-Identifier: BSD-3-Clause
// Keeping plans.
#include "core/select/planned_tables.hpp"

#include <algorithm>

#include "core/select/planning.hpp"

namespace latecomer::core {

Instance PlannedTables::instance(const Algorithm& algorithm, const Call& call, const Pattern& pattern,
                                 const Parameters& parameters) {
  const Call least = planned_call(call);
  Key key{&algorithm,          least.ranks,
          parameters.segments, least.root,
          parameters.only,     least.count,
          least.element_bytes, least.commutative,
          parameters.overlap,  {pattern.arrivals().begin(), pattern.arrivals().end()}};
  Instance out(call, pattern, parameters);
  std::shared_ptr<const std::vector<int>> table;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = tables_.find(key); found != tables_.end()) {
      found->second.used = ++clock_;
      table = found->second.table;
    }
  }
  if (!table) {
    const Instance planned(least, pattern, parameters);
    algorithm.build(planned, parameters.only);
    table = std::make_shared<const std::vector<int>>(planned.shared());
    keep_table(std::move(key), table);
  }
  out.share(*table);
  return out;
}

void PlannedTables::keep_table(Key key, std::shared_ptr<const std::vector<int>> table) {
  const std::lock_guard lock(mutex_);
  ++planned_;
  const auto [at, fresh] = tables_.try_emplace(std::move(key), Kept{std::move(table), ++clock_});
  if (fresh) bytes_ += size_of(at->first, at->second);
  while (bytes_ > most_ && tables_.size() > 1) {
    const auto oldest = std::min_element(tables_.begin(), tables_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    bytes_ -= size_of(oldest->first, oldest->second);
    tables_.erase(oldest);
  }
}

std::uint64_t PlannedTables::planned() const {
  const std::lock_guard lock(mutex_);
  return planned_;
}

std::size_t PlannedTables::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace latecomer::core
