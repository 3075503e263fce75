// SPDX-License-Identifier: BSD-3-Clause
// The version for people: cmake/version.cmake writes the source.
#pragma once

namespace latecomer::profiles::cli {

/// The version, and the commit that it was configured from if that is known: "0.1.0 (3c9ac987d01c)".
extern const char kVersionText[];

}  // namespace latecomer::profiles::cli
