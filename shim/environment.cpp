// SPDX-License-Identifier: BSD-3-Clause
// The table of environment variables.
#include "shim/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/text.hpp"
#include "core/policy/policy.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {
namespace {

struct Row {
  std::string_view name;
  int lowest, highest;  // -1, -1: text
  void (*set)(Environment&, std::string_view text, int number);
};

constexpr Row kRows[] = {
    {"LATECOMER_POLICY", -1, -1, [](Environment& e, std::string_view t, int) { e.policy = t; }},
    {"LATECOMER_OUTPUT", -1, -1, [](Environment& e, std::string_view t, int) { e.output = t; }},
    {"LATECOMER_VERBOSE", 0, 3, [](Environment& e, std::string_view, int n) { e.verbose = n; }},
    {"LATECOMER_CHECK", 0, 1, [](Environment& e, std::string_view, int n) { e.check = n == 1; }},
    {"LATECOMER_DISABLE", 0, 1, [](Environment& e, std::string_view, int n) { e.disable = n == 1; }},
    {"LATECOMER_CONFIG", -1, -1, [](Environment& e, std::string_view t, int) { e.config = t; }},
    {"LATECOMER_MPI", -1, -1, [](Environment&, std::string_view, int) {}},  // front/front.cpp reads it
    {"LATECOMER_CLAIM", -1, -1, [](Environment& e, std::string_view t, int) { e.claim = t; }},
    {"LATECOMER_ROLL_CALL", -1, -1, [](Environment&, std::string_view, int) {}},  // job/run_channel.cpp reads it
};

}  // namespace

Environment read_environment(bool warnings) {
  Environment out;
  if (access(core::kConfiguration, F_OK) == 0) out.config = core::kConfiguration;
  std::string_view names[std::size(kRows)];
  for (std::size_t i = 0; i < std::size(kRows); ++i) names[i] = kRows[i].name;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("LATECOMER_")) continue;
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : text.substr(equals + 1);
    const Row* row = nullptr;
    for (const Row& r : kRows)
      if (r.name == name) row = &r;
    if (!row) {
      if (warnings) warn("unknown variable %s%s", std::string(name).c_str(), core::suggestion(name, names).c_str());
      continue;
    }
    int number = 0;
    if (row->highest >= 0) {
      const auto parsed = core::parse_integer(value);
      if (!parsed || *parsed < row->lowest || *parsed > row->highest) {
        if (warnings)
          warn("%s: expected a number from %d to %d, got '%s'; keeping the default", std::string(name).c_str(),
               row->lowest, row->highest, std::string(value).c_str());
        continue;
      }
      number = static_cast<int>(*parsed);
    }
    row->set(out, value, number);
  }
  return out;
}

}  // namespace latecomer::shim
