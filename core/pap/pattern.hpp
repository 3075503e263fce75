// SPDX-License-Identifier: BSD-3-Clause
// Process arrival patterns (PAP): arrival times per rank, the sorted order, the specification syntax.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

/// Arrival time of every rank, relative to an arbitrary zero: shape [ranks], nanoseconds.
/// An empty pattern is flat: nothing is known, everybody counts as arriving together.
class Pattern {
 public:
  Pattern() = default;
  explicit Pattern(std::vector<Nanoseconds> arrivals) : arrivals_(std::move(arrivals)) {}
  bool flat() const { return arrivals_.empty(); }
  Nanoseconds arrival(Rank r) const { return flat() ? 0 : arrivals_[static_cast<std::size_t>(r)]; }
  Nanoseconds first() const;
  Nanoseconds last() const;
  std::span<const Nanoseconds> arrivals() const { return arrivals_; }
  /// order()[k] is the rank that arrives k-th of `ranks`; ties are broken by rank.
  std::vector<Rank> order(int ranks) const;

 private:
  std::vector<Nanoseconds> arrivals_;
};

/// `balanced`, `onelate:RANK:50ms`, `randlate:50ms:SEED`, `ascending:50ms`, `descending:50ms`,
/// `file:PATH` (seconds, one per line). The pattern has exactly `ranks` entries.
Result<Pattern> parse_arrivals(std::string_view spec, int ranks);

}  // namespace latecomer::core
