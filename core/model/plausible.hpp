// SPDX-License-Identifier: BSD-3-Clause
// Checks whether measured network parameters can be those of an idle machine.
#pragma once

#include <string>
#include <vector>

#include "core/network/network.hpp"

namespace latecomer::core {

/// Returns one message per implausible parameter, with the probable cause. Most causes are a busy machine.
std::vector<std::string> implausible(const Network& network);

}  // namespace latecomer::core
