// SPDX-License-Identifier: BSD-3-Clause
// A plan: the leader's decisions about future calls of one communicator, as bytes that are equal on all of its ranks.
// The entries of a plan are either the slots of a period of the sequence of calls, or sorted by universal signature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/types.hpp"

namespace latecomer::core {

struct PlanEntry {
  std::uint64_t signature = 0;  ///< Signature::hash() of the call that is expected
  std::int32_t algorithm = -1;  ///< index in the catalogue; -1: native
  std::int32_t segments = 0;    ///< 0: the algorithm's own choice
  std::int32_t pattern = -1;    ///< index in Plan::patterns; -1: flat
  std::uint16_t overlap = 1;
  /// 1: the ranks exchange a pattern for each call, computed from the progress that they reported (latecomer_edge).
  std::uint16_t edge = 0;
  std::int32_t sizes = -1;  ///< index in Plan::sizes; -1: none
  /// The number of calls that the entry serves after it comes into force; later calls are native. 0: no limit.
  std::uint16_t trial = 0;
  /// Number of the trial. Calls of a trial under one plan count under the next plan if the round is the same.
  std::uint16_t round = 0;
  bool operator==(const PlanEntry&) const = default;
};

struct Plan {
  std::uint64_t period = 0;  ///< number of slots; 0: the entries are in ascending order of their signatures
  std::uint64_t first = 0;   ///< call n >= first is in slot (n - first) mod period
  std::vector<PlanEntry> entries;
  std::vector<std::vector<Nanoseconds>> patterns;  ///< [pattern][ranks], nanoseconds after the first arrival
  std::vector<std::vector<Bytes>> sizes;           ///< [sizes][ranks], block sizes of a gatherv or scatterv

  bool empty() const { return entries.empty(); }
  bool operator==(const Plan&) const = default;
  std::uint64_t hash() const;
  std::vector<char> serialize() const;
  /// Returns false if the bytes are not a plan for `ranks` ranks. `out` is then unspecified.
  static bool deserialize(std::span<const char> bytes, int ranks, Plan& out);
};

/// The plan in force on one rank. Its answers depend only on the plan's bytes and on the calls so far, so all ranks of
/// the communicator get the same answers.
class PlanInForce {
 public:
  void install(Plan plan);
  const Plan& plan() const { return plan_; }
  std::uint64_t hash() const { return hash_; }
  /// Whether a call differed from the signature of its slot. Every rank detects this at the same call.
  bool dropped() const { return dropped_; }
  /// The entry of call n. Returns nullptr if the plan has no entry for it, begins later, or is dropped. Drops the plan
  /// if the signature differs from that of the slot. Returns the native entry after the calls of a trial. Call this
  /// function for every counted call, in order. Allocates nothing.
  const PlanEntry* at(std::uint64_t n, std::uint64_t signature);

 private:
  const PlanEntry* use(const PlanEntry& entry);
  Plan plan_;
  std::vector<std::uint16_t> used_;  ///< [entries], number of calls that each trial has served
  std::uint64_t hash_ = 0;
  bool dropped_ = false;
};

}  // namespace latecomer::core
