// SPDX-License-Identifier: BSD-3-Clause
// The times of the best binary trees for the tables of Träff 2019, which no collective uses: finding the trees, as
// core/trees does, takes minutes for all rows.
#pragma once

#include <optional>

#include "core/trees/tree.hpp"

namespace latecomer::profiles::papers {

/// With the given root, and with the best one.
struct BinaryTimes {
  double given = 0, free = 0;
};
/// In O(p^2), without the trees; nothing where the shortcut does not hold (binary_times.cpp says when it does).
std::optional<BinaryTimes> binary_times(const core::TreeProblem& problem, core::Rank root);

}  // namespace latecomer::profiles::papers
