// SPDX-License-Identifier: BSD-3-Clause
// A plan: the leader's decisions about future calls of one communicator, as bytes that are equal on all of its ranks.
// The entries of a plan are either the slots of a period of the sequence of calls, or sorted by universal signature.
// An entry may have a rota: several algorithms that serve its calls in turn, so that the leader can compare them.
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
  std::int32_t sizes = -1;       ///< index in Plan::sizes; -1: none
  std::int32_t first_turn = 0;   ///< index in Plan::turns
  std::uint16_t turns = 0;       ///< number of turns in the rota; 0: no rota
  std::uint16_t trial = 0;       ///< calls that the rota serves; the entry itself serves later calls
  std::uint16_t round = 0;       ///< number of the rota; a later plan with the same number continues its count of calls
  std::uint16_t remembered = 0;  ///< 1: an earlier run has found this decision
  bool operator==(const PlanEntry&) const = default;
};

/// Turns of a rota at most: the algorithm in use, and three candidates.
inline constexpr int kMostTurns = 4;

/// The turn that serves call number `used` of a rota, counted from 0. In each block of `turns` calls every turn comes
/// once, in an order that depends on the seed and on the block only. Turns in a fixed order would always fall on the
/// same calls of a program that alternates.
int turn_of(std::uint64_t seed, std::uint64_t used, int turns);

struct Plan {
  std::uint64_t period = 0;  ///< number of slots; 0: the entries are in ascending order of their signatures
  std::uint64_t first = 0;   ///< call n >= first is in slot (n - first) mod period
  std::vector<PlanEntry> entries;
  std::vector<PlanEntry> turns;                    ///< algorithms of the rotas; these entries have no rota themselves
  std::vector<std::vector<Nanoseconds>> patterns;  ///< [pattern][ranks], nanoseconds after the first arrival
  std::vector<std::vector<Bytes>> sizes;           ///< [sizes][ranks], block sizes of a gatherv or scatterv

  bool empty() const { return entries.empty(); }
  bool operator==(const Plan&) const = default;
  std::uint64_t hash() const;
  /// Takes two bytes per rank and pattern: patterns are rounded to 65,535 steps. The leader must use the plan that
  /// deserialize() makes of these bytes, as the other ranks do.
  std::vector<char> serialize() const;
  /// Returns false if the bytes are not a plan for `ranks` ranks. `out` is then unspecified.
  static bool deserialize(std::span<const char> bytes, int ranks, Plan& out);
};

/// The leader's decisions about the calls from the next boundary on.
struct Announcement {
  enum class Kind : std::uint32_t { none, keep, plan } kind = Kind::none;
  Plan plan;
  bool rest = false;        ///< the epoch that begins when the announcement comes into force is idle: not logged
  std::uint64_t epoch = 0;  ///< calls of that epoch; 0: the default of Sequence::set_epoch_length

  std::vector<char> serialize() const;
  /// Returns false if the bytes are no announcement to `ranks` ranks. `out` is then unspecified.
  static bool deserialize(std::span<const char> bytes, int ranks, Announcement& out);
};

/// The plan in force on one rank. Its answers depend only on the plan's bytes and on the calls so far, so all ranks of
/// the communicator get the same answers.
class PlanInForce {
 public:
  /// If it throws std::bad_alloc, neither the plan in force nor `plan` has changed.
  void install(Plan&& plan);
  void install(const Plan& plan) { install(Plan(plan)); }
  const Plan& plan() const { return plan_; }
  std::uint64_t hash() const { return hash_; }
  /// Whether a call differed from the signature of its slot. Every rank detects this at the same call.
  bool dropped() const { return dropped_; }
  /// The entry of call n. Returns nullptr if the plan has no entry for it, begins later, or is dropped. Drops the plan
  /// if the signature differs from that of the slot. Returns the turn of a rota, and the entry itself after the rota's
  /// calls. Call this function for every counted call, in order. Allocates nothing.
  const PlanEntry* at(std::uint64_t n, std::uint64_t signature);

 private:
  const PlanEntry* use(const PlanEntry& entry);
  Plan plan_;
  std::vector<std::uint16_t> used_;  ///< [entries], number of calls that each rota has served
  std::uint64_t hash_ = 0;
  bool dropped_ = false;
};

}  // namespace latecomer::core
