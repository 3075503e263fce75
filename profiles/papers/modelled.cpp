// SPDX-License-Identifier: BSD-3-Clause
// Modelled runs for the publications' tables.
#include "profiles/papers/modelled.hpp"

#include <stdexcept>

namespace latecomer::profiles::papers {

core::Simulation modelled(const core::Call& call, std::string_view name, const core::Pattern& arrivals,
                          const core::Network& network) {
  const core::Algorithm* algorithm = core::find_algorithm(call.op, name);
  if (!algorithm) throw std::logic_error("no algorithm '" + std::string(name) + "'");
  core::Parameters parameters;
  parameters.overlap = false;
  parameters.network = network;
  const auto result = core::simulate(*algorithm, core::Instance(call, arrivals, parameters), network, arrivals);
  if (!result) throw std::runtime_error(std::string(name) + ": " + result.error());
  return *result;
}

core::Pattern random_delays(int ranks, double most_ms, int seed) {
  if (most_ms == 0) return {};
  const auto pattern = core::parse_arrivals(
      "randlate:" + std::to_string(static_cast<int>(most_ms)) + "ms:" + std::to_string(seed), ranks);
  if (!pattern) throw std::logic_error(pattern.error());
  return *pattern;
}

core::Network network(std::string_view specification) {
  const auto found = core::parse_network(specification);
  if (!found) throw std::logic_error(found.error());
  core::Network out = *found;
  out.exclusive_ports = true;
  return out;
}

}  // namespace latecomer::profiles::papers
