// SPDX-License-Identifier: BSD-3-Clause
// Implements the closed forms: one row per algorithm with its steps after the last arrival.
#include "core/model/closed_form.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "core/algorithms/arrival_trees.hpp"
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core {
namespace {

/// The input of a row. Steps that do not need the last rank are hidden in D, the imbalance.
struct Case {
  const Call& call;
  const Network& network;
  int segments;   ///< of a chain
  double spread;  ///< D, the imbalance in nanoseconds

  double ranks() const { return call.ranks; }
  double rounds() const { return std::bit_width(static_cast<unsigned>(std::max(call.ranks, 1)) - 1); }  // ceil(log2 P)
  /// The time of one message with 1/parts of the vector (of all blocks) and of its reduction.
  double step(double parts) const {
    const auto bytes = static_cast<Bytes>(static_cast<double>(call.bytes()) / parts + 0.5);
    const double added = is_reduction(call.op) ? 0 : network.gamma_ns_per_byte * static_cast<double>(bytes);
    return static_cast<double>(network.step_ns(bytes)) - added;
  }
  /// A step in which two ranks send to each other.
  double exchange(double parts) const {
    const auto bytes = static_cast<Bytes>(static_cast<double>(call.bytes()) / parts + 0.5);
    return step(parts) +
           (network.half_duplex && !network.eager(bytes) ? static_cast<double>(network.port_ns(bytes)) : 0);
  }
  /// The time in which a segment passes so many ranks of a pipeline, and `behind` others follow on a port or a
  /// processor.
  double pipeline(double hops, double behind) const {
    const auto m = static_cast<Bytes>(static_cast<double>(call.bytes()) / segments + 0.5);
    return hops * step(segments) + behind * network.pace_ns(m);
  }
};

using AfterLast = double (*)(const Case&);

/// ceil(log2 P) rounds; each moves the whole vector.
double whole_rounds(const Case& c) { return c.rounds() * c.step(1); }
/// ceil(log2 P) rounds; in each, two ranks send the whole vector to each other.
double whole_exchanges(const Case& c) { return c.rounds() * c.exchange(1); }
/// Recursive halving, then recursive doubling: two messages of each size N/2, N/4, ...
double halving(const Case& c) {
  double out = 0;
  for (double parts = 2; parts <= 2 * (c.ranks() - 1) || parts == 2; parts *= 2)
    out += c.exchange(parts) + (reduces_to_all(c.call.op) ? c.exchange(parts) : c.step(parts));
  return out;
}
/// The simulation serves the root's largest subtree last: log2 P messages of the root, then log2 P - 1 rounds below.
double rounds_after_rounds(const Case& c) { return (2 * c.rounds() - 1) * c.step(1); }
double ring(const Case& c) { return 2 * (c.ranks() - 1) * c.step(c.ranks()); }
double reduce_ring(const Case& c) {
  // After the reduce-scatter, the ranks' parts pass the root's port one after the other.
  return (c.ranks() - 1) * (c.step(c.ranks()) + static_cast<double>(c.network.port_ns(c.call.bytes() / c.call.ranks)));
}
double scatter_ring(const Case& c) {
  double scatter = 0;
  for (double parts = 2; parts <= 2 * (c.ranks() - 1) || parts == 2; parts *= 2) scatter += c.step(parts);
  return (c.ranks() - 1) * c.step(c.ranks()) + std::max(0.0, scatter - c.spread);
}
/// Finished segments return on the ports that send partial ones. They meet there if there are more segments than ranks.
double linear(const Case& c) {
  return c.pipeline(2 * c.ranks() - 2, c.segments - 1 + std::max(0.0, c.segments - c.ranks() + 1));
}
double slt(const Case& c) { return std::max(c.pipeline(c.ranks(), c.segments - 1), linear(c) - c.spread); }
/// The contributions of early ranks climb the trees before the last arrival.
double trees(const Case& c) {
  const double once = tree_time(c.call, c.network, c.call.ranks, 1, c.segments);
  if (!is_reduction(c.call.op)) {
    // Eager segments are there before a late receiver is. Others take their time on its port.
    const bool eager = c.network.eager(largest_part(c.call.count, c.segments) * c.call.element_bytes);
    const double received = eager || c.spread <= 0 ? 0 : static_cast<double>(c.network.port_ns(c.call.bytes()));
    return std::max(received, once - c.spread);
  }
  return std::max(once, (reduces_to_all(c.call.op) ? 2 : 1) * once - c.spread);
}
/// The blocks of all other ranks pass the root's port one after the other.
double blocks(const Case& c) {
  return (c.ranks() - 1) * static_cast<double>(c.network.port_ns(c.call.bytes() / c.call.ranks)) + c.step(c.ranks());
}

/// In the order of Form.
constexpr AfterLast kForms[] = {nullptr, whole_rounds, whole_exchanges, rounds_after_rounds,
                                halving, ring,         reduce_ring,     scatter_ring,
                                linear,  slt,          trees,           blocks};
static_assert(std::size(kForms) == static_cast<std::size_t>(Form::blocks) + 1);

}  // namespace

std::optional<double> closed_form_after_last(const Algorithm& algorithm, const Call& call, int segments,
                                             const Network& network, const Pattern& arrivals) {
  const AfterLast after_last = kForms[static_cast<std::size_t>(algorithm.form)];
  if (!after_last) return {};
  if (segments == 0)
    segments = algorithm.form == Form::trees ? tree_segments(call, network, call.ranks, 1)
                                             : chain_segments(call, network, false);
  return after_last({call, network, segments, static_cast<double>(arrivals.last() - arrivals.first())});
}

}  // namespace latecomer::core
