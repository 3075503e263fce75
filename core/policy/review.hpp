// SPDX-License-Identifier: BSD-3-Clause
// The review of valid rules. The parser ends with it.
#pragma once

#include "core/policy/policy.hpp"

namespace latecomer::core {

/// Adds notes about rules without effect, and warnings about rules that come into force late or serve a part of their
/// calls. The rules are valid.
void review_rules(PolicyReport& report);

}  // namespace latecomer::core
