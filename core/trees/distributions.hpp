// SPDX-License-Identifier: BSD-3-Clause
// The distributions of block sizes in Träff 2019 (IEEE TPDS 30), section 5.1.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace latecomer::core {

/// Parses "NAME:P[:B[:RHO]]" to the P block sizes of a distribution with mean B (default 1000) and parameter RHO
/// (default 5). Random distributions use glibc's rand() with seed 1, as the paper does. Names: same, random,
/// random_down, random_up, bucket, spikes, decreasing, increasing, alternating, skewed, two_blocks.
Result<std::vector<double>> parse_distribution(std::string_view spec);

}  // namespace latecomer::core
