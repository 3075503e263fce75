// SPDX-License-Identifier: BSD-3-Clause
// Whether measured figures of a network can be those of a network.
#pragma once

#include <string>
#include <vector>

#include "core/network/network.hpp"

namespace latecomer::core {

/// What speaks against measured figures: they are those of a busy machine, mostly. Empty: nothing.
std::vector<std::string> implausible(const Network& network);

}  // namespace latecomer::core
