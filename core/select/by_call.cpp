// SPDX-License-Identifier: BSD-3-Clause
// Thresholds.
#include "core/select/by_call.hpp"

namespace latecomer::core {

const Algorithm* native_stand_in(const Call& call) {
  // MPICH's own thresholds (MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE, MPIR_CVAR_BCAST_SHORT_MSG_SIZE and the like; fewer
  // elements than ranks cannot be scattered).
  constexpr Bytes kShort = 2048, kShortBcast = 12288;
  constexpr int kFewRanks = 8;
  const auto named = [&](std::string_view name) { return find_algorithm(call.op, name); };
  switch (call.op) {
    case Collective::scatter:
    case Collective::gather:
      return named("binomial");
    case Collective::scatterv:
    case Collective::gatherv:
      return named("linear");
    case Collective::bcast:
      return named(call.bytes() < kShortBcast || call.ranks < kFewRanks ? "binomial" : "scatter_ring");
    case Collective::reduce:
    case Collective::allreduce:
      if (call.commutative && call.bytes() > kShort && call.count >= call.ranks) return named("rabenseifner");
      return named(call.op == Collective::reduce ? "binomial" : "recursive_doubling");
    default:
      return nullptr;
  }
}

const Algorithm& range_algorithm(const Call& call) {
  // From here on fewer bytes count for more than fewer messages.
  constexpr Bytes kLongAllgather = 80 << 10, kLongHalving = 512 << 10;
  const bool blocks = call.element_bytes == 0;
  const auto named = [&](std::string_view name) -> const Algorithm& { return *find_algorithm(call.op, name); };
  switch (call.op) {
    case Collective::barrier:
      return named("dissemination");
    case Collective::scan:
    case Collective::exscan:
      return named("doubling");
    case Collective::alltoall:
      return named("pairwise");
    case Collective::reduce_scatter_block:
      return named(call.commutative && call.bytes() * call.ranks <= kLongHalving ? "recursive_halving" : "pairwise");
    case Collective::allgather:
      return named(blocks || call.count * call.element_bytes * call.ranks > kLongAllgather ? "ring"
                                                                                           : "recursive_doubling");
    case Collective::gather:
    case Collective::scatter:
      return named(blocks ? "linear" : "binomial");
    default:
      return *native_stand_in(call);
  }
}

}  // namespace latecomer::core
