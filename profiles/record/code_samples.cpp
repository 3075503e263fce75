// SPDX-License-Identifier: BSD-3-Clause
// Merges the code of ranks.
#include "profiles/record/code_samples.hpp"

#include <algorithm>

namespace latecomer::profiles {
namespace {

std::size_t rows_of(const auto& all) {
  std::size_t rows = 0;
  for (const auto& [key, of] : all) rows += of.size();
  return rows;
}

/// Folds the entries with the least of `amount` into those of `rest`, until few enough rows are left. Returns whether
/// it has changed something.
bool fold_least(auto& all, auto amount, auto rest, auto merge) {
  std::size_t rows = rows_of(all);
  if (rows <= CodeOfRanks::kMostRows) return false;
  using Key = typename std::decay_t<decltype(all)>::key_type;
  std::vector<std::pair<double, Key>> order;
  for (const auto& [key, of] : all) {
    if (rest(key) == key) continue;
    double sum = 0;
    for (const auto& [row, one] : of) sum += amount(one);
    order.emplace_back(sum, key);
  }
  std::ranges::sort(order);
  for (const auto& [sum, key] : order) {
    if (rows <= CodeOfRanks::kMostRows / 2) break;
    const auto at = all.extract(key);
    auto& others = all[rest(key)];
    const std::size_t before = others.size();
    for (const auto& [row, one] : at.mapped()) merge(others[row], one);
    rows += others.size() - before;
    rows -= at.mapped().size();
  }
  return !order.empty();
}

}  // namespace

void CodeOfRanks::add(const std::vector<CodeSamples>& code, const std::vector<Stretch>& between, std::int32_t row) {
  for (const CodeSamples& one : code) samples[one.key][row] += one.samples;
  for (const Stretch& one : between) stretches[one.key][row].merge(one.sums);
  limit();
}

void CodeOfRanks::merge(const CodeOfRanks& other) {
  for (const auto& [key, rows] : other.samples)
    for (const auto& [row, number] : rows) samples[key][row] += number;
  for (const auto& [key, rows] : other.stretches)
    for (const auto& [row, sums] : rows) stretches[key][row].merge(sums);
  whole.insert(other.whole.begin(), other.whole.end());
  limit();
}

void CodeOfRanks::limit() {
  const auto rest = [&](const CodeKey& key) {
    const auto function = whole.find(key.place);
    return function != whole.end() && function->second != key.place
               ? CodeKey{function->second, key.next, key.collective, key.others}
               : CodeKey{0, 0, key.collective, key.others};
  };
  while (fold_least(
      samples, [](std::uint64_t number) { return static_cast<double>(number); }, rest,
      [](std::uint64_t& to, std::uint64_t number) { to += number; })) {
  }
  fold_least(
      stretches, [](const StretchSums& sums) { return static_cast<double>(sums.time); },
      [](const StretchKey& key) {
        return StretchKey{0, 0, key.collective};
      },
      [](StretchSums& to, const StretchSums& sums) { to.merge(sums); });
}

}  // namespace latecomer::profiles
