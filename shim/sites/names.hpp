// SPDX-License-Identifier: BSD-3-Clause
// Whether a call site is what a policy's `site` glob means: its id, module+offset, function, or file:line. Asked by
// leaders only, at ends of epochs; each answer is kept.
#pragma once

#include <string>

#include "profiles/record.hpp"

namespace latecomer::shim {

bool site_is(const profiles::SiteKey& key, const std::string& glob);

}  // namespace latecomer::shim
