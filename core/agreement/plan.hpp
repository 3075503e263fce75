// SPDX-License-Identifier: BSD-3-Clause
// A plan: the leader's decisions about coming calls of one communicator, as bytes that all its ranks hold alike.
// Either slots of a period of the sequence of calls, or entries by universal signature.
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
  std::uint16_t edge =
      0;  ///< the pattern is exchanged for this very call, from what ranks have said of how far they are
  std::int32_t sizes = -1;  ///< index in Plan::sizes; -1: none
  std::uint16_t trial =
      0;  ///< holds for so many of its calls from when it comes into force on, then native; 0: for all
  std::uint16_t round = 0;  ///< of the trial: calls that one plan has let it have count in the next
  bool operator==(const PlanEntry&) const = default;
};

struct Plan {
  std::uint64_t period = 0;  ///< slots of a period; 0: entries by signature, ascending
  std::uint64_t first = 0;   ///< call n >= first is in slot (n - first) mod period
  std::vector<PlanEntry> entries;
  std::vector<std::vector<Nanoseconds>> patterns;  ///< [pattern][ranks], after the first arrival
  std::vector<std::vector<Bytes>> sizes;           ///< [sizes][ranks], of the blocks of a gatherv or scatterv

  bool empty() const { return entries.empty(); }
  bool operator==(const Plan&) const = default;
  std::uint64_t hash() const;
  std::vector<char> serialize() const;
  /// False if the bytes are no plan for so many ranks.
  static bool deserialize(std::span<const char> bytes, int ranks, Plan& out);
};

/// The plan in force on one rank. What it answers depends on the plan's bytes and on the calls so far only.
class PlanInForce {
 public:
  void install(Plan plan);
  const Plan& plan() const { return plan_; }
  std::uint64_t hash() const { return hash_; }
  /// Once the sequence has broken: every rank sees that at the same call.
  bool dropped() const { return dropped_; }
  /// Call n's entry, or nullptr: none, not begun, or the call is another than its slot expects, which drops the
  /// plan. An entry whose trial is over says native. To be asked for every counted call, in order. Allocates nothing.
  const PlanEntry* at(std::uint64_t n, std::uint64_t signature);

 private:
  const PlanEntry* use(const PlanEntry& entry);
  Plan plan_;
  std::vector<std::uint16_t> used_;  ///< [entries], calls that those on trial have had
  std::uint64_t hash_ = 0;
  bool dropped_ = false;
};

}  // namespace latecomer::core
