// SPDX-License-Identifier: BSD-3-Clause
// The block sizes that paper 003 (section 5.1) tries its trees on.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace latecomer::core {

/// "NAME:P[:B[:RHO]]": sizes [P] of that distribution with mean B (1000) and parameter RHO (5). The random ones come
/// from glibc's rand() with seed 1, as in the paper. Names: same, random, random_down, random_up, bucket, spikes,
/// decreasing, increasing, alternating, skewed, two_blocks.
Result<std::vector<double>> parse_distribution(std::string_view spec);

}  // namespace latecomer::core
