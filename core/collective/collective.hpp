// SPDX-License-Identifier: BSD-3-Clause
// The collectives and their traits, one row each (collective.def). Everything that depends on the kind of a collective
// asks for a trait: a new collective is a new row.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "core/base/types.hpp"

namespace latecomer::core {

/// Every collective operation that MPI 4.0 defines.
enum class Collective : std::uint8_t {
#define LATECOMER_COLLECTIVE(name, ...) name,
#include "core/collective/collective.def"
#undef LATECOMER_COLLECTIVE
};

inline constexpr std::string_view kCollectiveNames[] = {
#define LATECOMER_COLLECTIVE(name, ...) #name,
#include "core/collective/collective.def"
#undef LATECOMER_COLLECTIVE
};
inline constexpr int kCollectives = static_cast<int>(std::size(kCollectiveNames));

constexpr std::string_view name_of(Collective c) { return kCollectiveNames[static_cast<int>(c)]; }
constexpr std::optional<Collective> find_collective(std::string_view name) {
  for (int i = 0; i < kCollectives; ++i)
    if (kCollectiveNames[i] == name) return static_cast<Collective>(i);
  return {};
}

/// The size of a buffer.
enum class Extent : std::uint8_t {
  none,
  vector,  ///< Call::count elements
  blocks,  ///< Call::count elements for every rank
};
/// The sizes of the buffers of the root and of all other ranks. Without a root both are alike.
struct Extents {
  Extent root = Extent::none, others = Extent::none;
};

/// The effect of MPI_IN_PLACE, which a rooted collective allows at the root only.
enum class InPlace : std::uint8_t {
  none,    ///< not allowed
  input,   ///< no input: the contribution lies in the output, which is as large as both
  output,  ///< no output: the root's own block stays in the input
};

/// Reductions: the ranks whose contributions the result of a rank combines.
enum class Combines : std::uint8_t { nothing, all, up_to_me, before_me };

/// The rank that has to make its call before any rank can return from a blocking call with a payload.
enum class Waits : std::uint8_t {
  nobody,  ///< none, or no rank in particular
  root,    ///< the root, because it sends all data
  all,     ///< every rank
};

/// The properties of a collective, in the order in which a row may give them.
struct CollectiveTraits {
  Extents input = {}, output = {};
  InPlace in_place = InPlace::none;
  Combines combines = Combines::nothing;
  Waits waits_for = Waits::nobody;
  bool rooted = false;      ///< has a root argument, which MPI requires to be equal on every rank
  bool dispatched = false;  ///< a policy can select an algorithm; otherwise algorithms serve range communicators only
  bool irregular = false;   ///< blocks have different sizes, and only the root knows all of them
  std::optional<Collective> equal_blocks = {};  ///< the collective that moves blocks of one size in the same way
};

namespace collectives {
constexpr Extents kVector{Extent::vector, Extent::vector}, kBlocks{Extent::blocks, Extent::blocks},
    kVectorAtRoot{Extent::vector, Extent::none}, kBlocksAtRoot{Extent::blocks, Extent::none};
constexpr CollectiveTraits kTraits[] = {
#define LATECOMER_COLLECTIVE(name, ...) CollectiveTraits{__VA_ARGS__},
#include "core/collective/collective.def"
#undef LATECOMER_COLLECTIVE
};
}  // namespace collectives

constexpr const CollectiveTraits& traits(Collective c) { return collectives::kTraits[static_cast<int>(c)]; }

constexpr bool is_rooted(Collective c) { return traits(c).rooted; }
constexpr bool is_irregular(Collective c) { return traits(c).irregular; }
constexpr bool is_dispatched(Collective c) { return traits(c).dispatched; }
constexpr bool is_reduction(Collective c) { return traits(c).combines != Combines::nothing; }
/// The collective that moves equal blocks in the same way: scatter for scatterv, gather for gatherv.
constexpr Collective regular(Collective c) { return traits(c).equal_blocks.value_or(c); }
/// The root sends every rank a block of its own.
constexpr bool is_scatter(Collective c) { return is_rooted(c) && traits(c).input.root == Extent::blocks; }
/// The root receives a block from every rank.
constexpr bool is_gather(Collective c) { return is_rooted(c) && traits(c).output.root == Extent::blocks; }
/// A buffer of a rank holds a block for, or from, every rank.
constexpr bool has_blocks(Collective c) {
  const auto holds = [](Extents e) { return e.root == Extent::blocks; };
  return holds(traits(c).input) || holds(traits(c).output);
}
/// Every rank gets the reduced vector.
constexpr bool reduces_to_all(Collective c) {
  return traits(c).combines == Combines::all && traits(c).output.others == Extent::vector &&
         traits(c).input.root == Extent::vector;
}

/// False for a barrier.
constexpr bool has_payload(Collective c) {
  return traits(c).input.root != Extent::none || traits(c).output.root != Extent::none;
}

/// No rank can return from the blocking call with this payload before every rank has made the call.
/// bytes < 0 means that no size is known on all ranks.
constexpr bool depends_on_all(Collective c, Bytes bytes) {
  return traits(c).waits_for == Waits::all && (bytes > 0 || !has_payload(c));
}
/// No rank can return from the blocking call with this payload before the root has made the call.
constexpr bool depends_on_root(Collective c, Bytes bytes) { return traits(c).waits_for == Waits::root && bytes > 0; }

}  // namespace latecomer::core
