// SPDX-License-Identifier: BSD-3-Clause
// Whether a call site matches a policy's `site` glob: its id, module+offset, function, or file:line. Only leaders ask,
// at ends of epochs. Each answer is cached.
#pragma once

#include <string>

#include "profiles/record/record.hpp"

namespace latecomer::shim {

bool site_is(const profiles::SiteKey& key, const std::string& glob);

}  // namespace latecomer::shim
