// SPDX-License-Identifier: BSD-3-Clause
// The types that every part of latecomer shares: ranks, bytes, nanoseconds and collectives.
// Owns names, units and properties of collectives. Depends on neither MPI nor the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace latecomer::core {

using Rank = std::int32_t;         // rank in one communicator
using Bytes = std::int64_t;        // payload size
using Nanoseconds = std::int64_t;  // virtual or real time
using Elements = std::int64_t;     // number of datatype instances

/// Every collective operation that MPI 4.0 defines. The order is that of shim/collectives.def.
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

/// The collective has a root argument, which MPI requires to be equal on every rank.
constexpr bool is_rooted(Collective c) {
  return c == Collective::bcast || c == Collective::gather || c == Collective::gatherv || c == Collective::reduce ||
         c == Collective::scatter || c == Collective::scatterv;
}

/// The blocks have different sizes, and only the root knows all of them.
constexpr bool is_irregular(Collective c) { return c == Collective::scatterv || c == Collective::gatherv; }
/// The collective that moves equal blocks in the same way: scatter for scatterv, gather for gatherv.
constexpr Collective regular(Collective c) {
  return c == Collective::scatterv ? Collective::scatter : c == Collective::gatherv ? Collective::gather : c;
}
/// A policy can select an algorithm of the catalogue for this collective. Algorithms of all other collectives run on
/// range communicators only.
constexpr bool is_dispatched(Collective c) { return is_rooted(c) || c == Collective::allreduce; }
/// Every rank has a block of its own, and the root has all blocks.
constexpr bool has_blocks(Collective c) {
  return regular(c) == Collective::scatter || regular(c) == Collective::gather;
}

constexpr bool is_reduction(Collective c) {
  return c == Collective::allreduce || c == Collective::reduce || c == Collective::scan || c == Collective::exscan ||
         c == Collective::reduce_scatter || c == Collective::reduce_scatter_block;
}

/// No rank can return from the blocking call with this payload before every rank has made the call.
/// bytes < 0 means that no size is known on all ranks.
constexpr bool depends_on_all(Collective c, Bytes bytes) {
  if (c == Collective::barrier) return true;
  return bytes > 0 && (c == Collective::allgather || c == Collective::allreduce || c == Collective::alltoall ||
                       c == Collective::reduce_scatter_block);
}

/// No rank can return from the blocking call with this payload before the root has made the call, because the root
/// sends all data.
constexpr bool depends_on_root(Collective c, Bytes bytes) {
  return bytes > 0 && (c == Collective::bcast || c == Collective::scatter);
}

/// The form of a collective call. Blocking and non-blocking calls never match each other (MPI 4.0, section 6.12), so
/// the form is equal on every rank.
enum class CallKind : std::uint8_t { blocking, nonblocking, persistent };

/// The class of a reduction operator. All ranks of a call are guaranteed to have the same class.
enum class OpClass : std::uint8_t { none, sum, prod, max, min, logical, bitwise, loc, user, user_noncommutative };
inline constexpr int kOpClasses = 10;
inline constexpr std::string_view kOpClassNames[kOpClasses] = {
    "none", "sum", "prod", "max", "min", "logical", "bitwise", "loc", "user", "user_noncommutative"};
constexpr std::string_view name_of(OpClass c) { return kOpClassNames[static_cast<int>(c)]; }

}  // namespace latecomer::core
