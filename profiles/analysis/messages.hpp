// SPDX-License-Identifier: BSD-3-Clause
// Follows the waits for messages, summed over the whole run, from the rank that waits most to the rank that they come
// from. It writes no sentences.
#pragma once

#include <optional>
#include <vector>

#include "profiles/analysis/whole_run.hpp"

namespace latecomer::analysis {

struct MessageChain {
  /// The first one spends the largest share of its time in messages. Each waits mostly for the next one.
  std::vector<const Rank*> ranks;
  /// [ranks] Whether the rank before waits mostly for this one only apart from ranks that wait longer for it.
  std::vector<bool> apart;
  /// What the last rank does longer than the others, which explains most of the waits. Empty: the last rank also waits
  /// for messages, or nothing explains them.
  std::optional<LongerPart> longer;
};

/// Empty: no rank waits for messages. The ranks are those of the argument.
std::optional<MessageChain> follow_messages(const std::vector<Rank>& ranks);

}  // namespace latecomer::analysis
