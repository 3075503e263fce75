// SPDX-License-Identifier: BSD-3-Clause
// The record of one collective call on one rank.
#pragma once

#include <cstdint>

#include "core/collective/collective.hpp"

namespace latecomer::profiles {

using core::Nanoseconds;

/// One collective call on one rank. Ranks send records to each other in this memory layout.
struct CallRecord {
  Nanoseconds arrival = 0;  ///< on the job's common clock
  Nanoseconds exit = 0;     ///< 0: unknown (a non-blocking call whose completion was not observed)
  std::uint64_t site = 0;   ///< hash of build-id and offset of the calling frame; 0: unknown
  /// The payload, as the profile's `bytes` defines it; for gatherv and scatterv, this rank's block. -1: not known on
  /// every rank.
  std::int64_t bytes = -1;
  std::int32_t root = -1;
  core::Collective op = core::Collective::barrier;
  core::CallKind kind = core::CallKind::blocking;
  std::uint8_t algorithm = 0;  ///< 0: native, else 1 + index in the catalogue
  std::uint8_t edge = 0;       ///< kSaid, kRanByEdge, kSampled
  /// The arrival of this rank after the first arrival in the pattern that the call ran on, in units of kExpectedUnit.
  /// -1: no pattern.
  std::int32_t expected = -1;
  std::uint32_t callers = 0;  ///< SiteKey::callers
};
static_assert(sizeof(CallRecord) == 48);
/// Bits of CallRecord::edge. The process had called latecomer_edge. The pattern of the call was made from edges.
/// The leader needs the arrivals of all ranks, which all ranks know.
inline constexpr std::uint8_t kSaid = 1, kRanByEdge = 2, kSampled = 4;
/// Derived: with this unit, 32 bits hold offsets up to 214 s.
inline constexpr Nanoseconds kExpectedUnit = 100;

}  // namespace latecomer::profiles
