// SPDX-License-Identifier: BSD-3-Clause
// Implements the presets and the syntax of `--network`.
#include "core/network/network.hpp"

#include <algorithm>
#include <vector>

#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

struct Preset {
  std::string_view name;
  double bytes_per_second, latency_us, rendezvous_latency_us;
  Bytes eager_kib;
};

// tryton2018 is fitted to the times that Proficz 2018 publishes for 1 Gbit/s Ethernet, although one such link cannot
// carry 230 MB/s. The other presets are typical figures of their class: chosen, not measured.
constexpr Preset kPresets[] = {
    {"tryton2018", 230e6, 50, 340, 64},
    {"eth1g", 125e6, 50, -1, 64},
    {"fdr", 6e9, 1.2, -1, 16},
    {"hdr", 24e9, 1.0, -1, 16},
};

constexpr std::string_view kPresetNames[] = {"tryton2018", "eth1g", "fdr", "hdr"};
constexpr std::string_view kKeys[] = {
    "alpha", "beta",     "gamma",  "copy",           "ports",       "latency",       "rendezvous_latency",
    "eager", "overhead", "duplex", "ranks_per_host", "memory_beta", "memory_latency"};

Result<double> duration(std::string_view text) {
  // Keeps fractions of a nanosecond: beta of a fast network is below 1 ns per byte.
  for (const auto& [unit, scale] :
       {std::pair<std::string_view, double>{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}) {
    if (!text.ends_with(unit)) continue;
    const auto value = parse_number(text.substr(0, text.size() - unit.size()));
    if (value && *value >= 0) return *value * scale;
  }
  if (const auto value = parse_number(text); value && *value == 0) return 0.0;
  return Error{"expected a duration such as 25us, got '" + std::string(text) + "'"};
}

Result<double> per_byte(std::string_view text) {
  if (text.ends_with("/B")) return duration(text.substr(0, text.size() - 2));
  if (text == "0") return 0.0;
  return Error{"expected a time per byte such as 8ns/B, got '" + std::string(text) + "'"};
}

}  // namespace

std::span<const std::string_view> network_presets() { return kPresetNames; }

Result<Network> network_preset(std::string_view name) {
  for (const Preset& p : kPresets) {
    if (p.name != name) continue;
    Network n;
    n.beta_ns_per_byte = 1e9 / p.bytes_per_second;
    n.latency_ns = p.latency_us * 1e3;
    n.rendezvous_latency_ns = p.rendezvous_latency_us < 0 ? -1 : p.rendezvous_latency_us * 1e3;
    n.eager_bytes = p.eager_kib * 1024;
    return n;
  }
  return Error{"unknown network '" + std::string(name) + "'" + suggestion(name, kPresetNames)};
}

Result<Network> parse_network(std::string_view spec) {
  Network network;
  std::size_t start = 0;
  while (start <= spec.size()) {
    const std::size_t comma = std::min(spec.find(',', start), spec.size());
    const std::string_view part = spec.substr(start, comma - start);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      if (start != 0) return Error{"network: expected key=value, got '" + std::string(part) + "'"};
      const auto preset = network_preset(part);
      if (!preset) return Error{preset.error()};
      network = *preset;
    } else {
      const std::string_view key = part.substr(0, equals), value = part.substr(equals + 1);
      Result<double> number = Error{""};
      if (key == "alpha") {
        if ((number = duration(value))) network.alpha_ns = *number;
      } else if (key == "latency") {
        if ((number = duration(value))) network.latency_ns = *number;
      } else if (key == "rendezvous_latency") {
        if ((number = duration(value))) network.rendezvous_latency_ns = *number;
      } else if (key == "overhead") {
        if ((number = duration(value))) network.overhead_ns = *number;
      } else if (key == "beta") {
        if ((number = per_byte(value))) network.beta_ns_per_byte = *number;
      } else if (key == "gamma") {
        if ((number = per_byte(value))) network.gamma_ns_per_byte = *number;
      } else if (key == "copy") {
        if ((number = per_byte(value))) network.copy_ns_per_byte = *number;
      } else if (key == "memory_beta") {
        if ((number = per_byte(value))) network.memory_beta_ns_per_byte = *number;
      } else if (key == "memory_latency") {
        if ((number = duration(value))) network.memory_latency_ns = *number;
      } else if (key == "ranks_per_host") {
        const auto ranks = parse_integer(value);
        if (ranks && *ranks >= 1 && *ranks <= 1 << 20) network.ranks_per_host = static_cast<int>(*ranks), number = 0.0;
        else number = Error{"expected a number from 1 to 1048576, got '" + std::string(value) + "'"};
      } else if (key == "eager") {
        if (const auto bytes = parse_bytes(value)) network.eager_bytes = *bytes, number = 0.0;
        else number = Error{bytes.error()};
      } else if (key == "duplex") {
        network.half_duplex = value == "half";
        if (value == "half" || value == "full") number = 0.0;
        else number = Error{"expected 'half' or 'full', got '" + std::string(value) + "'"};
      } else if (key == "ports") {
        const auto ports = parse_integer(value);
        if (value == "link") network.ports = 0, number = 0.0;
        else if (value == "exclusive") network.ports = 1, network.exclusive_ports = true, number = 0.0;
        else if (ports && *ports >= 1 && *ports <= 1024) network.ports = static_cast<int>(*ports), number = 0.0;
        else
          number = Error{"expected 'link', 'exclusive' or a number from 1 to 1024, got '" + std::string(value) + "'"};
      } else {
        return Error{"network: unknown key '" + std::string(key) + "'" + suggestion(key, kKeys)};
      }
      if (!number) return Error{"network: " + std::string(key) + ": " + number.error()};
    }
    start = comma + 1;
  }
  return network;
}

}  // namespace latecomer::core
