// SPDX-License-Identifier: BSD-3-Clause
// Implements the checks of measured network parameters.
#include "core/model/plausible.hpp"

#include "core/base/text.hpp"

namespace latecomer::core {

std::vector<std::string> implausible(const Network& n) {
  std::vector<std::string> out;
  const auto figure = [](double v) { return significant(v, 3); };
  const double small_us = (n.alpha_ns + n.latency_ns + 2 * n.overhead_ns) / 1e3;
  // Derived: networks with latencies below 5 us bypass the kernel, and the oldest of them, InfiniBand SDR on four
  // lanes, carries 1 GB/s (8 Gbit/s of data).
  constexpr double kQuick = 5, kSlow = 1;
  if (small_us < kQuick && n.beta_ns_per_byte > kSlow)
    out.push_back("a small message takes only " + figure(small_us) + " us, but a byte takes " +
                  figure(n.beta_ns_per_byte) + " ns (" + figure(1e3 / n.beta_ns_per_byte) +
                  " MB/s), as on a slow network: the cores were probably busy; measure again on an idle machine, or "
                  "with no more ranks than cores");
  if (n.beta_ns_per_byte <= 0)
    out.push_back("large messages took no longer than small ones: the machine was probably busy; measure again");
  // Derived: the fastest adapters carry 50 GB/s (400 Gbit/s), and a quiet core copies about 7 GB/s (7.3 to 7.9 GB/s,
  // 64 MiB, a virtual machine). A greater factor means that the copy was disturbed.
  if (n.copy_ns_per_byte > 0 && n.beta_ns_per_byte > 0 && n.beta_ns_per_byte < n.copy_ns_per_byte / 8)
    out.push_back("sending a byte takes " + figure(n.beta_ns_per_byte) + " ns, but copying it takes " +
                  figure(n.copy_ns_per_byte) + " ns: the memory was probably busy; measure again");
  return out;
}

}  // namespace latecomer::core
