// SPDX-License-Identifier: BSD-3-Clause
// The LATECOMER_* environment variables. One table drives parsing, defaults, warnings and documentation.
#pragma once

#include <string>

namespace latecomer::shim {

struct Environment {
  std::string policy;    // LATECOMER_POLICY
  std::string output;    // LATECOMER_OUTPUT; "": the policy's, or the default of output_path()
  int verbose = 0;       // LATECOMER_VERBOSE, 0..3
  bool check = false;    // LATECOMER_CHECK
  bool disable = false;  // LATECOMER_DISABLE
  std::string claim;     // LATECOMER_CLAIM
  std::string config;    // LATECOMER_CONFIG; "": none
};

/// Reads the environment. A bad value gives a warning and keeps the default. An unknown LATECOMER_ name gives a warning
/// with the nearest known name. `warnings`: false on all ranks but the first, which then warn about nothing.
Environment read_environment(bool warnings);

}  // namespace latecomer::shim
