// SPDX-License-Identifier: BSD-3-Clause
// Slots, hops and segments of an exchange.
#include "core/algorithms/exchange/pace.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/logarithm.hpp"

namespace latecomer::core::exchange {
namespace {

/// The growth per slot of the copies of a segment if every holder sends it on in every slot: r^hop = r^(hop - 1) + 1.
double growth(double hop) {
  if (hop <= 1) return 2;
  // Newton's steps on the logarithm of r^(hop - 1) (r - 1), which is concave: from the left, where r = 1 + 1/hop is,
  // they stay on the left.
  constexpr int kMost = 40;
  double r = 1 + 1 / hop;
  for (int i = 0; i < kMost; ++i) {
    const double step = -((hop - 1) * logarithm(r) + logarithm(r - 1)) / ((hop - 1) / r + 1 / (r - 1));
    if (step <= 1e-15) break;
    r += step;
  }
  return r;
}

/// Slots until what one has is everywhere, while much else is on its way.
double spreading(double hop, int ranks) {
  // As a part of that what it has to wait for besides was seen to be a quarter (16 to 1024 ranks, ways of two to five
  // slots).
  constexpr double kWaits = 1.25;
  return hop + kWaits * logarithm(std::max(2, ranks)) / logarithm(growth(hop));
}

}  // namespace

double leaves_from(double hop, int ranks) {
  // r^-hop.
  const double r = growth(hop);
  return ranks * (r - 1) / r;
}

Pace pace_of(Bytes segment, const Network& n) {
  // A model without a cost per message has none of its own: no machine is like that.
  constexpr double kLeastSlot = 100;
  const double port = static_cast<double>(n.port_ns(segment)), way = port + n.flight_ns(segment) + 2 * n.overhead_ns;
  // What is eager is complete when it has left, what waits for its receiver when it is there: so many keep the port
  // busy, the processor being at another just then.
  const double least = std::max({port, 2 * n.overhead_ns, kLeastSlot}),
               cycle = n.eager(segment) ? port + n.overhead_ns : way;
  const double sends = std::clamp<double>(std::ceil(cycle / least), 1, kMostSends);
  // More messages on their way than a schedule has operations waiting (kLookahead) would not keep to a plan.
  constexpr double kLongest = 144;
  const double slot = std::ceil(std::max({least, cycle / sends, way / kLongest}));
  // Posted before its slot begins. What a message is a little late by is handed on, until it is too much and one waits
  // for the next slot.
  const double hop = (way + n.overhead_ns) / slot, whole = std::floor(hop), late = hop - whole;
  return {static_cast<Nanoseconds>(slot), late > 0 ? whole + 1 / (1 + std::floor(kLate / late)) : whole,
          static_cast<int>(sends)};
}

int segments_for(Elements count, Bytes element_bytes, int ranks, int owners, const Network& network, int limit) {
  // A plan of so many cells, ranks times segments, takes 1 to 2 s (1,024 ranks, measured on one quiet core).
  constexpr std::int64_t kCells = 1 << 20;
  // Among numbers that differ less the smallest is chosen, since its plan is made sooner. Chosen, not measured.
  const double nearly = network.overhead_ns > 0 ? 1.005 : 1.01;
  const auto most = std::min<Elements>(
      {kChannels, std::max(1, limit), std::max<Elements>(1, count), std::max<Elements>(1, kCells / ranks)});
  const auto time = [&](int s) {
    const Pace pace = pace_of(largest_part(count, s) * element_bytes, network);
    // A port is as busy with contributions as with final segments; the owner with the most segments is the last.
    const int contributions = (s + owners - 1) / owners * owners;
    return static_cast<double>(pace.slot) * ((s + contributions) / 2.0 + spreading(pace.hop, ranks));
  };
  std::map<int, double> times;
  const auto note = [&](int s) {
    if (const auto [at, is_new] = times.try_emplace(s, 0); is_new) at->second = time(s);
  };
  for (int s = 1; s <= most; s += std::max(1, s / 64)) note(s);
  for (int s = owners; s <= most; s += owners * std::max(1, s / 64 / owners)) note(s);
  const double least = std::min_element(times.begin(), times.end(), [](const auto& x, const auto& y) {
                         return x.second < y.second;
                       })->second;
  return std::find_if(times.begin(), times.end(), [&](const auto& t) { return t.second <= nearly * least; })->first;
}

int segments_for(const Call& call, const Network& network, int most) {
  return segments_for(call.count, call.element_bytes, call.ranks, is_reduction(call.op) ? call.ranks : 1, network,
                      most);
}

}  // namespace latecomer::core::exchange
