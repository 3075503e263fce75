// SPDX-License-Identifier: BSD-3-Clause
// The catalogue as C++ sees it: declarations and the table, both from catalogue.def.
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

#define LATECOMER_ALGORITHM(collective, name, ...)  \
  namespace algorithms::collective {                \
  Schedule name(const Instance& instance, Rank me); \
  }
#include "core/algorithms/catalogue.def"
#undef LATECOMER_ALGORITHM

namespace {
constexpr Algorithm kCatalogue[] = {
#define LATECOMER_ALGORITHM(collective, name, source, cost, ...) \
  {Traits{__VA_ARGS__}, Collective::collective, #name, source, cost, &algorithms::collective::name},
#include "core/algorithms/catalogue.def"
#undef LATECOMER_ALGORITHM
};
}  // namespace

std::string Algorithm::restrictions() const {
  if (!is_dispatched(op)) return "range communicators only";
  if (operators == Operators::commutative) return "commutative operators";
  std::string out = planning == Planning::slow ? "planning takes O(P^3)" : "";
  if (needs_sizes) out += std::string(out.empty() ? "" : "; ") + "from the first plan on";
  return out;
}

std::span<const Algorithm> catalogue() { return kCatalogue; }

const Algorithm* stand_in_for(Collective op) {
  for (const Algorithm& a : kCatalogue)
    if (a.op == op && a.stand_in) return &a;
  return nullptr;
}

const Algorithm* find_algorithm(Collective op, std::string_view name) {
  for (const Algorithm& a : kCatalogue)
    if (a.op == op && a.name == name) return &a;
  return nullptr;
}

std::vector<std::string_view> algorithm_names(Collective op) {
  std::vector<std::string_view> names;
  for (const Algorithm& a : kCatalogue)
    if (a.op == op) names.push_back(a.name);
  return names;
}

RankProgram materialize(const Algorithm& algorithm, const Instance& instance, Rank me) {
  return materialize(algorithm.build(instance, me));
}

std::vector<RankProgram> materialize(const Algorithm& algorithm, const Instance& instance) {
  std::vector<RankProgram> programs;
  programs.reserve(static_cast<std::size_t>(instance.call.ranks));
  for (Rank r = 0; r < instance.call.ranks; ++r) programs.push_back(materialize(algorithm, instance, r));
  return programs;
}

}  // namespace latecomer::core
