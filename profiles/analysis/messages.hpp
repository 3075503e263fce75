// SPDX-License-Identifier: BSD-3-Clause
// Follows the waits for messages, summed over the whole run, from the rank that waits most to the rank that causes
// them. It writes no sentences.
#pragma once

#include <optional>
#include <vector>

#include "profiles/analysis/whole_run.hpp"

namespace latecomer::profiles::analysis {

struct MessageChain {
  /// The first rank spends the largest share of its time in messages. Each rank waits mostly for the next one.
  std::vector<const RankFigures*> ranks;
  /// The part of its time by which the last rank takes longer than the others, if it explains most of the waits. Empty:
  /// the last rank also waits for messages, or no part explains the waits.
  std::optional<LongerPart> longer;
  bool cycle = false;  ///< the last rank waits mostly for a rank of the chain
  bool ends = false;   ///< the last rank waits much less than the one before
};

/// Empty: no rank waits for messages, or too few calls were timed. The result refers to `ranks`.
std::optional<MessageChain> follow_messages(const std::vector<RankFigures>& ranks);

}  // namespace latecomer::profiles::analysis
