// SPDX-License-Identifier: BSD-3-Clause
// The LATECOMER_* environment variables: one table drives parsing, defaults, warnings and documentation.
#pragma once

#include <string>

namespace latecomer::shim {

struct Environment {
  std::string policy;                        // LATECOMER_POLICY
  std::string output = "latecomer.%j.json";  // LATECOMER_OUTPUT
  int verbose = 0;                           // LATECOMER_VERBOSE, 0..3
  bool check = false;                        // LATECOMER_CHECK
  bool disable = false;                      // LATECOMER_DISABLE
};

/// Reads the environment. A bad value warns and keeps the default; an unknown LATECOMER_ name warns with
/// the nearest known one. `warnings`: false to stay silent (all ranks but the first).
Environment read_environment(bool warnings);

}  // namespace latecomer::shim
