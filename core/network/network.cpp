// SPDX-License-Identifier: BSD-3-Clause
// Implements the presets and the syntax of `--network`.
#include "core/network/network.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
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
/// The keys of `--network` that are no times.
constexpr std::string_view kOtherKeys[] = {"eager", "ports", "duplex", "ranks_per_host"};

std::string unknown_key(std::string_view key) {
  std::vector<std::string_view> keys(std::begin(kOtherKeys), std::end(kOtherKeys));
  for (const NetworkTime& time : kNetworkTimes) keys.push_back(time.name);
  return "network: unknown key '" + std::string(key) + "'" + suggestion(key, keys);
}

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

/// Sets one figure; the error is the reason without the key.
Result<double> set_figure(Network& network, std::string_view key, std::string_view value) {
  for (const NetworkTime& time : kNetworkTimes) {
    if (time.name != key) continue;
    auto ns = time.unit == 1 ? per_byte(value) : duration(value);
    if (ns) network.*time.value = *ns;
    return ns;
  }
  const auto whole = parse_integer(value);
  if (key == "eager") {
    const auto bytes = parse_bytes(value);
    if (!bytes) return Error{bytes.error()};
    network.eager_bytes = *bytes;
  } else if (key == "duplex") {
    if (value != "half" && value != "full") return Error{"expected 'half' or 'full', got '" + std::string(value) + "'"};
    network.half_duplex = value == "half";
  } else if (key == "ranks_per_host") {
    if (!whole || *whole < 1 || *whole > 1 << 20)
      return Error{"expected a number from 1 to 1048576, got '" + std::string(value) + "'"};
    network.ranks_per_host = static_cast<int>(*whole);
  } else {
    if (value == "link") network.ports = 0;
    else if (value == "exclusive") {
      network.ports = 1;
      network.exclusive_ports = true;
    } else if (whole && *whole >= 1 && *whole <= 1024) network.ports = static_cast<int>(*whole);
    else return Error{"expected 'link', 'exclusive' or a number from 1 to 1024, got '" + std::string(value) + "'"};
  }
  return 0.0;
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
      const std::string_view key = part.substr(0, equals);
      const auto same = [&](const NetworkTime& time) { return time.name == key; };
      if (std::ranges::none_of(kNetworkTimes, same) && std::ranges::find(kOtherKeys, key) == std::end(kOtherKeys))
        return Error{unknown_key(key)};
      const auto done = set_figure(network, key, part.substr(equals + 1));
      if (!done) return Error{"network: " + std::string(key) + ": " + done.error()};
    }
    start = comma + 1;
  }
  return network;
}

std::string network_text(const Network& n) {
  std::string out = "{";
  for (const NetworkTime& time : kNetworkTimes) {
    const bool unset = time.value == &Network::rendezvous_latency_ns && n.rendezvous_latency_ns < 0;
    char number[32];
    const double value = (unset ? n.latency_ns : n.*time.value) / time.unit;
    const auto* const end = std::to_chars(number, number + sizeof number, value).ptr;
    ((out += "\"") += time.key).append("\": ").append(static_cast<const char*>(number), end).append(", ");
  }
  return out + "\"eager\": " + std::to_string(n.eager_bytes) +
         ", \"ports\": " + (n.ports == 0 ? "\"link\"" : std::to_string(n.ports)) +
         ", \"duplex\": " + (n.half_duplex ? "\"half\"" : "\"full\"") +
         ", \"ranks_per_host\": " + std::to_string(n.ranks_per_host) + "}";
}

}  // namespace latecomer::core
