// SPDX-License-Identifier: BSD-3-Clause
// The network figures of the model: Hockney's alpha and beta, latency in flight, ports, thresholds.
// Owns presets and the `--network` syntax; the simulation itself is in simulate.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

/// A modelled time in whole nanoseconds, rounded up; bounds are rounded down. So no sum of rounded times is below the
/// bound, however small and many its messages are. Without libm, which planning would call once per message.
constexpr Nanoseconds rounded_up(double ns) {
  const auto whole = static_cast<Nanoseconds>(ns);
  return whole + (static_cast<double>(whole) < ns);
}

struct Network {
  double alpha_ns = 0;                ///< start-up per message; occupies both ports
  double beta_ns_per_byte = 0;        ///< time on the ports per byte
  double gamma_ns_per_byte = 0;       ///< reduction, processor time per byte
  double copy_ns_per_byte = 0;        ///< local copy, processor time per byte
  double overhead_ns = 0;             ///< processor time per message and side
  double latency_ns = 0;              ///< time in flight of an eager message; occupies nothing
  double rendezvous_latency_ns = -1;  ///< the same above `eager_bytes`; < 0: equal to latency_ns
  Bytes eager_bytes = 0;              ///< messages up to this size are eager; 0: every send is synchronous
  double reaction_ns =
      0;          ///< until the background engine looks, where its process has not arrived; no key of the syntax
  int ports = 1;  ///< per direction; 0: one port per directed pair (`ports=link`)

  bool operator==(const Network&) const = default;
  bool eager(Bytes m) const { return eager_bytes > 0 && m <= eager_bytes; }
  double flight_ns(Bytes m) const { return eager(m) || rendezvous_latency_ns < 0 ? latency_ns : rendezvous_latency_ns; }
  /// Time that one message of m bytes keeps its ports busy.
  Nanoseconds port_ns(Bytes m) const { return rounded_up(alpha_ns + static_cast<double>(m) * beta_ns_per_byte); }
  /// One step of a lockstep ring: one message of m bytes and its reduction, with nothing in the way.
  Nanoseconds step_ns(Bytes m) const {
    return port_ns(m) + rounded_up(flight_ns(m)) + 2 * rounded_up(overhead_ns) +
           rounded_up(static_cast<double>(m) * gamma_ns_per_byte);
  }
};

/// A preset's name (tryton2018, eth1g, fdr, hdr), `key=value,...`, or `preset,key=value,...`.
/// Keys: alpha, beta, gamma, copy, ports, latency, rendezvous_latency, eager, overhead.
Result<Network> parse_network(std::string_view spec);

std::span<const std::string_view> network_presets();

/// The preset of that name; an error names the nearest one.
Result<Network> network_preset(std::string_view name);

}  // namespace latecomer::core
