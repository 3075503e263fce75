// SPDX-License-Identifier: BSD-3-Clause
// The policy that a command line or LATECOMER_POLICY names: a file, a pipe, or the text itself. And the configuration
// of the site.
#pragma once

#include <string>

namespace latecomer::profiles::cli {

struct PolicyText {
  std::string name;  ///< for messages
  std::string text;
  /// As LATECOMER_POLICY: the absolute path of a file, or else the text, because a pipe can be read only once. "": the
  /// text cannot be a policy.
  std::string for_ranks;
};

/// Reads the policy. Throws BadUsage with the prefix `verb: ` if it cannot be read.
PolicyText policy_text(const std::string& verb, const std::string& given);

/// The path of the configuration of the site, or "" if there is no such file.
std::string configuration_path();

}  // namespace latecomer::profiles::cli
