// SPDX-License-Identifier: BSD-3-Clause
// The parameters of the network model: Hockney's alpha and beta, latency, ports, and the eager threshold.
// Owns the presets and the syntax of `--network`. core/model/simulate.hpp owns the simulation.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

/// A modelled time in whole nanoseconds, rounded up. Lower bounds are rounded down, so a sum of rounded times is never
/// below its bound. Avoids std::ceil(), because planning calls this function once per message.
constexpr Nanoseconds rounded_up(double ns) {
  const auto whole = static_cast<Nanoseconds>(ns);
  return whole + (static_cast<double>(whole) < ns);
}

struct Network {
  double alpha_ns = 0;                ///< start-up per message; occupies both ports
  double beta_ns_per_byte = 0;        ///< port time per byte
  double gamma_ns_per_byte = 0;       ///< processor time of a reduction per byte
  double copy_ns_per_byte = 0;        ///< processor time of a local copy per byte
  double overhead_ns = 0;             ///< processor time per message, on the sender and on the receiver
  double latency_ns = 0;              ///< time in flight of an eager message; occupies neither port nor processor
  double rendezvous_latency_ns = -1;  ///< latency of messages above `eager_bytes`; < 0: equal to latency_ns
  Bytes eager_bytes = 0;              ///< messages up to this size are eager; 0: every send is synchronous
  /// Delay of the background engine's reaction to a message before its process arrives. `--network` has no key for it.
  double reaction_ns = 0;
  int ports = 1;  ///< per direction; 0: one port per directed pair (`ports=link`)
  /// Whether a message that finds its receiver's port busy holds its sender's port (`ports=exclusive`). The
  /// publications count so. Measured on the wire: networks buffer instead (docs/results/wire.md).
  bool exclusive_ports = false;
  /// Whether two ranks' messages to each other never share time (`duplex=half`), unless they are eager. Measured for
  /// rendezvous over TCP: its requests wait behind the data of the same connection (docs/results/wire.md).
  bool half_duplex = false;
  /// Consecutive ranks on each host. They share the host's ports. Their messages to each other use memory instead.
  int ranks_per_host = 1;
  double memory_beta_ns_per_byte = 0;  ///< time per byte of a message inside a host; occupies its two ranks only
  double memory_latency_ns = 0;        ///< time in flight of a message inside a host

  bool operator==(const Network&) const = default;
  bool eager(Bytes m) const { return eager_bytes > 0 && m <= eager_bytes; }
  double flight_ns(Bytes m) const { return eager(m) || rendezvous_latency_ns < 0 ? latency_ns : rendezvous_latency_ns; }
  /// Time that one message of m bytes occupies its ports.
  Nanoseconds port_ns(Bytes m) const { return rounded_up(alpha_ns + static_cast<double>(m) * beta_ns_per_byte); }
  /// The time between two of many messages of m bytes that pass a rank: its port, or its processor, which receives,
  /// reduces and sends each of them.
  double pace_ns(Bytes m) const {
    return std::max(static_cast<double>(port_ns(m)), 2 * overhead_ns + static_cast<double>(m) * gamma_ns_per_byte);
  }
  /// One step of a lockstep ring: one message of m bytes and its reduction, without waiting for a port.
  Nanoseconds step_ns(Bytes m) const {
    return port_ns(m) + rounded_up(flight_ns(m)) + 2 * rounded_up(overhead_ns) +
           rounded_up(static_cast<double>(m) * gamma_ns_per_byte);
  }
};

/// A time of the network. Its key in files ends with the unit: "alpha_us", "beta_ns_per_byte".
struct NetworkTime {
  std::string_view name, key;  ///< in `--network`, and in files
  double Network::*value;      ///< ns
  double unit;                 ///< of the file, in ns: 1 for a time per byte, 1000 for others
  std::string_view fallback;   ///< the default in files, or ""
  std::string_view meaning;
};
inline constexpr NetworkTime kNetworkTimes[] = {
    {"alpha", "alpha_us", &Network::alpha_ns, 1e3, "0", "Start-up time of a message, which occupies the ports."},
    {"beta", "beta_ns_per_byte", &Network::beta_ns_per_byte, 1, "0", "Time on the ports per byte."},
    {"gamma", "gamma_ns_per_byte", &Network::gamma_ns_per_byte, 1, "0", "Time to reduce a byte."},
    {"copy", "copy_ns_per_byte", &Network::copy_ns_per_byte, 1, "0", "Time to copy a byte within a process."},
    {"latency", "latency_us", &Network::latency_ns, 1e3, "0", "Time of a message in flight, which occupies nothing."},
    {"rendezvous_latency", "rendezvous_latency_us", &Network::rendezvous_latency_ns, 1e3, "",
     "Time in flight of a message above the eager threshold. Default: `latency_us`."},
    {"overhead", "overhead_us", &Network::overhead_ns, 1e3, "0", "Processor time of a message on each side."},
    {"memory_beta", "memory_beta_ns_per_byte", &Network::memory_beta_ns_per_byte, 1, "0",
     "Time per byte of a message inside a host."},
    {"memory_latency", "memory_latency_us", &Network::memory_latency_ns, 1e3, "0",
     "Time in flight of a message inside a host."},
};

/// The JSON object that the policy key `network` takes.
std::string network_text(const Network& network);

/// Parses a preset's name (tryton2018, eth1g, fdr, hdr), `key=value,...`, or `preset,key=value,...`.
/// Keys: the names of kNetworkTimes, eager, ports, duplex and ranks_per_host.
Result<Network> parse_network(std::string_view spec);

std::span<const std::string_view> network_presets();

/// Returns the preset of that name. The error suggests the nearest name.
Result<Network> network_preset(std::string_view name);

}  // namespace latecomer::core
