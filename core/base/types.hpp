// SPDX-License-Identifier: BSD-3-Clause
// The small vocabulary every part of latecomer shares: ranks, bytes, nanoseconds, collectives.
// Owns names and units only; no behaviour that depends on MPI or on the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace latecomer::core {

using Rank = std::int32_t;         // rank inside one communicator
using Bytes = std::int64_t;        // payload size in bytes
using Nanoseconds = std::int64_t;  // virtual or real time, in nanoseconds
using Elements = std::int64_t;     // count of datatype instances

/// Every collective operation MPI 4.0 defines, in the order of shim/dispatch/collectives.def.
enum class Collective : std::uint8_t {
  allgather,
  allgatherv,
  allreduce,
  alltoall,
  alltoallv,
  alltoallw,
  barrier,
  bcast,
  exscan,
  gather,
  gatherv,
  reduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  scatter,
  scatterv,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
};
inline constexpr int kCollectives = 22;

inline constexpr std::string_view kCollectiveNames[kCollectives] = {"allgather",
                                                                    "allgatherv",
                                                                    "allreduce",
                                                                    "alltoall",
                                                                    "alltoallv",
                                                                    "alltoallw",
                                                                    "barrier",
                                                                    "bcast",
                                                                    "exscan",
                                                                    "gather",
                                                                    "gatherv",
                                                                    "reduce",
                                                                    "reduce_scatter",
                                                                    "reduce_scatter_block",
                                                                    "scan",
                                                                    "scatter",
                                                                    "scatterv",
                                                                    "neighbor_allgather",
                                                                    "neighbor_allgatherv",
                                                                    "neighbor_alltoall",
                                                                    "neighbor_alltoallv",
                                                                    "neighbor_alltoallw"};

constexpr std::string_view name_of(Collective c) { return kCollectiveNames[static_cast<int>(c)]; }
constexpr std::optional<Collective> find_collective(std::string_view name) {
  for (int i = 0; i < kCollectives; ++i)
    if (kCollectiveNames[i] == name) return static_cast<Collective>(i);
  return {};
}

/// Has a root argument that MPI requires to be equal on every rank.
constexpr bool is_rooted(Collective c) {
  return c == Collective::bcast || c == Collective::gather || c == Collective::gatherv || c == Collective::reduce ||
         c == Collective::scatter || c == Collective::scatterv;
}

/// Blocks of different sizes, which no rank but the root knows.
constexpr bool is_irregular(Collective c) { return c == Collective::scatterv || c == Collective::gatherv; }
/// The collective that moves the same with blocks of one size.
constexpr Collective regular(Collective c) {
  return c == Collective::scatterv ? Collective::scatter : c == Collective::gatherv ? Collective::gather : c;
}
/// What a policy may have served by an algorithm of ours. Other collectives' algorithms run on range communicators
/// only.
constexpr bool is_dispatched(Collective c) { return is_rooted(c) || c == Collective::allreduce; }
/// Every rank has a block of its own; the root has all of them.
constexpr bool has_blocks(Collective c) {
  return regular(c) == Collective::scatter || regular(c) == Collective::gather;
}

constexpr bool is_reduction(Collective c) {
  return c == Collective::allreduce || c == Collective::reduce || c == Collective::scan || c == Collective::exscan ||
         c == Collective::reduce_scatter || c == Collective::reduce_scatter_block;
}

/// No rank can return from the blocking form with that payload before every rank has called it.
/// (bytes < 0: no size that all ranks know.)
constexpr bool depends_on_all(Collective c, Bytes bytes) {
  if (c == Collective::barrier) return true;
  return bytes > 0 && (c == Collective::allgather || c == Collective::allreduce || c == Collective::alltoall ||
                       c == Collective::reduce_scatter_block);
}

/// The same for the root alone: what others get can only come from it.
constexpr bool depends_on_root(Collective c, Bytes bytes) {
  return bytes > 0 && (c == Collective::bcast || c == Collective::scatter);
}

/// How a collective was called. The blocking and the non-blocking form never match each other
/// (MPI 4.0, 6.12), so the kind is the same on every rank.
enum class CallKind : std::uint8_t { blocking, nonblocking, persistent };

/// The reduction operator as far as all ranks are guaranteed to agree on it.
enum class OpClass : std::uint8_t { none, sum, prod, max, min, logical, bitwise, loc, user, user_noncommutative };
inline constexpr int kOpClasses = 10;
inline constexpr std::string_view kOpClassNames[kOpClasses] = {
    "none", "sum", "prod", "max", "min", "logical", "bitwise", "loc", "user", "user_noncommutative"};
constexpr std::string_view name_of(OpClass c) { return kOpClassNames[static_cast<int>(c)]; }

}  // namespace latecomer::core
