// SPDX-License-Identifier: BSD-3-Clause
// The generators of a reduce's Clairvoyant plan by name: the three of Proficz, Ocetkiewicz 2021, and `rows`, which
// production uses (planner.hpp). All give the same plan; they differ in time and memory. Only `latecomer plan
// clairvoyant --impl` and tests include this file, so that no other program links the paper's three.
#pragma once

#include <string_view>

#include "core/algorithms/clairvoyant/planner.hpp"

namespace latecomer::core::clairvoyant {

void plan_plain(const Problem& problem, const Emit& emit);
void plan_heaps(const Problem& problem, const Emit& emit);
void plan_segment_tree(const Problem& problem, const Emit& emit);

struct Generator {
  std::string_view name;
  Generate* generate;
};
inline constexpr Generator kGenerators[] = {
    {"plain", plan_plain},  ///< the corrected pseudocode (section 4.6)
    {"heaps", plan_heaps},  ///< a pairing heap of candidates per segment (section 4.1)
    {"segment_tree",
     plan_segment_tree},  ///< a segment tree over bit columns (section 5.4): 5 bits per (process, segment)
    {"rows", plan_rows},
};

}  // namespace latecomer::core::clairvoyant
