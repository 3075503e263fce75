// SPDX-License-Identifier: BSD-3-Clause
// The catalogue as C++ sees it: declarations and the table, both from catalogue.def.
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

#define LATECOMER_ALGORITHM(collective, name, ...) \
  namespace algorithms::collective { Schedule name(const Instance& instance, Rank me); }
#include "core/algorithms/catalogue.def"
#undef LATECOMER_ALGORITHM

namespace {
constexpr Algorithm kCatalogue[] = {
#define LATECOMER_ALGORITHM(collective, name, source, cost, ...) {Traits{__VA_ARGS__}, Collective::collective, #name, source, cost, &algorithms::collective::name},
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

std::string_view native_stand_in(const Call& call) {
  // MPICH's own thresholds (MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE, MPIR_CVAR_BCAST_SHORT_MSG_SIZE and the like; fewer elements
  // than ranks cannot be scattered).
  constexpr Bytes kShort = 2048, kShortBcast = 12288;
  constexpr int kFewRanks = 8;
  switch (call.op) {
    case Collective::scatter:
    case Collective::gather: return "binomial";
    case Collective::scatterv:
    case Collective::gatherv: return "linear";
    case Collective::bcast: return call.bytes() < kShortBcast || call.ranks < kFewRanks ? "binomial" : "scatter_ring";
    case Collective::reduce:
    case Collective::allreduce:
      if (call.commutative && call.bytes() > kShort && call.count >= call.ranks) return "rabenseifner";
      return call.op == Collective::reduce ? "binomial" : "recursive_doubling";
    default: return "";
  }
}

}  // namespace latecomer::core
