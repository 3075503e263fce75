// SPDX-License-Identifier: BSD-3-Clause
// Declarations that the files of this folder share. Other folders include policy.hpp.
#pragma once

#include "core/policy/policy.hpp"

namespace latecomer::core {

// keys.cpp

/// The limit of a number that has none.
inline constexpr double kNoLimit = 9e15;  // derived: just below 2^53, the largest range of exact integers in a double

/// The choices of a row, in their order.
std::vector<std::string_view> split_choices(const KeyRow& row);
/// The position of a word in the choices of a row, which hold it.
int index_of_choice(const KeyRow& row, std::string_view word);

// review.cpp

/// Adds notes about rules without effect, and warnings about rules that come into force late or serve a part of their
/// calls. The rules are valid.
void review_rules(PolicyReport& report);

}  // namespace latecomer::core
