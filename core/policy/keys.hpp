// SPDX-License-Identifier: BSD-3-Clause
// The rows of the policy's keys, as the parser, the schema and the review use them. Other folders include policy.hpp.
#pragma once

#include "core/policy/policy.hpp"

namespace latecomer::core {

/// The limit of a number that has none.
inline constexpr double kNoLimit = 9e15;  // derived: just below 2^53, the largest range of exact integers in a double

/// The choices of a row, in their order.
std::vector<std::string_view> split_choices(const KeyRow& row);
/// The position of a word in the choices of a row, which hold it.
int index_of_choice(const KeyRow& row, std::string_view word);

}  // namespace latecomer::core
