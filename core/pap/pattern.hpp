// SPDX-License-Identifier: BSD-3-Clause
// Process arrival patterns (PAP): arrival times of the ranks, the order of arrival, and the syntax of `--arrivals`.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

/// The arrival time of every rank: shape [ranks], nanoseconds, relative to an arbitrary zero.
/// An empty pattern is flat: no arrival is known, and all ranks count as arriving at time 0.
class Pattern {
 public:
  Pattern() = default;
  explicit Pattern(std::vector<Nanoseconds> arrivals) : arrivals_(std::move(arrivals)) {}
  bool flat() const { return arrivals_.empty(); }
  Nanoseconds arrival(Rank r) const { return flat() ? 0 : arrivals_[static_cast<std::size_t>(r)]; }
  Nanoseconds first() const;
  Nanoseconds last() const;
  std::span<const Nanoseconds> arrivals() const { return arrivals_; }
  /// order(ranks)[k] is the rank that arrives k-th. Ties are broken by rank.
  std::vector<Rank> order(int ranks) const;

 private:
  std::vector<Nanoseconds> arrivals_;
};

/// Parses `balanced`, `onelate:RANK:50ms`, `randlate:50ms:SEED`, `ascending:50ms`, `descending:50ms`, or `file:PATH`
/// (one time in seconds per line). The pattern has exactly `ranks` entries.
Result<Pattern> parse_arrivals(std::string_view spec, int ranks);

}  // namespace latecomer::core
