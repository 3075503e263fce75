// SPDX-License-Identifier: BSD-3-Clause
// Sites of Python programs.
#pragma once

#include "shim/sites/sites.hpp"

namespace latecomer::shim {

/// The site of the Python lines that lead here, or nullptr if Python does not run on this thread.
SiteSlot* python_site();

}  // namespace latecomer::shim
