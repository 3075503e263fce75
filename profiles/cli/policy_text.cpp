// SPDX-License-Identifier: BSD-3-Clause
// Reads policies.
#include "profiles/cli/policy_text.hpp"

#include <cstdlib>
#include <filesystem>

#include "core/base/file.hpp"
#include "core/policy/policy.hpp"
#include "profiles/cli/commands.hpp"

namespace latecomer::profiles::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kSpace[] = " \t\r\n";

/// Whether another process reads the same bytes from the path. /dev/stdin and /dev/fd are other files there.
bool is_readable_elsewhere(const fs::path& path) {
  std::error_code error;
  const std::string at = path.string();
  return fs::is_regular_file(path, error) && !at.starts_with("/dev/") && !at.starts_with("/proc/");
}

}  // namespace

PolicyText policy_text(const std::string& verb, const std::string& given) {
  PolicyText out;
  if (const auto first = given.find_first_not_of(kSpace); first != std::string::npos && given[first] == '{') {
    out.name = "the policy";
    out.text = given;
    out.for_ranks = given.substr(first);
    return out;
  }
  auto read = core::read_file(given);
  if (!read) throw BadUsage(verb + ": the policy: " + read.error());
  out.name = given;
  out.text = std::move(*read);
  const fs::path path = fs::absolute(given);
  if (is_readable_elsewhere(path)) {
    out.for_ranks = path.string();
  } else if (const auto first = out.text.find_first_not_of(kSpace);
             first != std::string::npos && out.text[first] == '{') {
    out.for_ranks = out.text.substr(first);
  }
  return out;
}

std::string configuration_path() {
  if (const char* named = std::getenv("LATECOMER_CONFIG")) return named;
  std::error_code error;
  return fs::exists(core::kConfiguration, error) ? core::kConfiguration : "";
}

}  // namespace latecomer::profiles::cli
