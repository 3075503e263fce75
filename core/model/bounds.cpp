// SPDX-License-Identifier: BSD-3-Clause
// Implements the lower bounds from port times and latencies. least_after_last() also counts processor time.
#include "core/model/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "core/algorithms/irregular.hpp"

namespace latecomer::core {

namespace {

/// The smaller of the eager and the rendezvous latency, because an algorithm may cut the vector into eager segments.
double least_latency(const Network& network, Bytes bytes) {
  const double latency = network.flight_ns(bytes);
  return network.eager_bytes > 0 ? std::min(latency, network.latency_ns) : latency;
}

/// The earliest end of a reduction. `a`: arrivals in ascending order. wire: time of the vector on all ports of a rank.
/// latency: least time in flight.
double reduction_end(const Call& call, const Network& network, const Pattern& arrivals, const std::vector<double>& a,
                     double wire, double latency) {
  const int ranks = call.ranks;
  double end = a.back();
  // From the arrival of the first of the m latest ranks on: m contributions of the vector and ranks - 1 results pass
  // the ports of all ranks. One contribution fewer where no rank was earlier, or where an eager message of the earlier
  // ones may already lie at a late rank.
  for (int m = 1; m <= ranks && reduces_to_all(call.op); ++m) {
    const double passes = m + ranks - (m == ranks || network.eager_bytes > 0 ? 2 : 1);
    end = std::max(end, a[static_cast<std::size_t>(ranks - m)] + passes * wire / ranks);
  }
  if (reduces_to_all(call.op))
    return std::max(end, a.back() + wire + latency + (ranks >= 3 ? 2 * network.alpha_ns : 0));
  // Every rank sends its contribution after its arrival. The root receives at least one contribution, but eager
  // messages may deliver it before the root arrives.
  for (Rank r = 0; r < ranks; ++r)
    if (r != call.root || network.eager_bytes == 0)
      end = std::max(end, static_cast<double>(arrivals.arrival(r)) + wire + latency + network.alpha_ns);
  return end;
}

/// The earliest end of a scatter, gather or bcast, where background receives may complete before the arrival.
/// block(r): time on one port of rank r's block (bcast: of the whole vector).
template <typename Block>
double movement_end(const Call& call, const Network& network, const Pattern& arrivals, const std::vector<double>& a,
                    Block block, double ports, double latency) {
  const double root = static_cast<double>(arrivals.arrival(call.root)), last = a.back();
  double others = 0;
  for (Rank r = 0; r < call.ranks; ++r) others += r == call.root ? 0 : block(r);
  if (is_scatter(call.op))
    return others > 0 ? std::max(last, root + network.alpha_ns + others / ports + latency) : last;
  if (is_gather(call.op)) {
    // For every k, the blocks of the k latest senders pass the root's ports after the first of these ranks arrives.
    std::vector<std::pair<double, double>> senders;
    for (Rank r = 0; r < call.ranks; ++r)
      if (r != call.root && block(r) > 0) senders.emplace_back(static_cast<double>(arrivals.arrival(r)), block(r));
    std::sort(senders.begin(), senders.end(), std::greater<>());
    double end = last, sum = 0;
    for (const auto& [arrival, time] : senders) {
      sum += time;
      end = std::max(end, arrival + network.alpha_ns + sum / ports + latency);
    }
    return end;
  }
  double rounds = 0, have = 1;
  while (have < call.ranks) {
    have *= ports + 1;
    ++rounds;
  }
  return std::max(last,
                  root + std::max(rounds * network.alpha_ns, network.alpha_ns + block(call.root) / ports) + latency);
}

/// The bound of a reduction on hosts of several ranks: that of one rank per host, which arrives with the host's last
/// one. A host's contribution is complete only then, and its ranks share its ports. The last rank's own contribution
/// reaches another rank through memory or through the network.
LowerBound bound_of_hosts(const Call& call, const Network& network, const Pattern& arrivals) {
  Network flat = network;
  flat.ranks_per_host = 1;
  Call between = call;
  between.ranks = (call.ranks - 1) / network.ranks_per_host + 1;
  between.root = call.root / network.ranks_per_host;
  std::vector<Nanoseconds> last(static_cast<std::size_t>(between.ranks), arrivals.first());
  for (Rank r = 0; r < call.ranks; ++r) {
    Nanoseconds& host = last[static_cast<std::size_t>(r / network.ranks_per_host)];
    host = std::max(host, arrivals.arrival(r));
  }
  LowerBound out = lower_bound(between, flat, Pattern(last));
  // After the last arrival, every other rank takes in the vector. Its memory brings a part, and the host's port serves
  // the ranks of a host together.
  if (reduces_to_all(call.op)) {
    const double n = static_cast<double>(call.count * call.element_bytes),
                 ranks = std::min(call.ranks, network.ranks_per_host);
    const double takers = between.ranks > 1 && call.ranks % network.ranks_per_host == 0 ? ranks : ranks - 1;
    const double memory = network.memory_beta_ns_per_byte, port = between.ranks > 1 ? network.beta_ns_per_byte : 0;
    if (takers > 0 && memory > 0)
      out.after_last = std::max(out.after_last,
                                static_cast<Nanoseconds>(takers * n / (takers / memory + (port > 0 ? 1 / port : 0))));
  }
  out.run_time = out.after_last + arrivals.last() - arrivals.first();
  return out;
}

}  // namespace

LowerBound lower_bound(const Call& call, const Network& network, const Pattern& arrivals,
                       const std::vector<Bytes>& sizes) {
  if (network.ranks_per_host > 1 && is_reduction(call.op) && !sizes.size())
    return bound_of_hosts(call, network, arrivals);
  LowerBound bound;
  bound.known = (is_rooted(call.op) || reduces_to_all(call.op)) && network.ranks_per_host == 1;
  if (!bound.known) return bound;
  const int ranks = call.ranks;
  std::vector<double> a;
  a.reserve(static_cast<std::size_t>(ranks));
  for (Rank r = 0; r < ranks; ++r) a.push_back(static_cast<double>(arrivals.arrival(r)));
  std::sort(a.begin(), a.end());
  double end = a.back();
  if (ranks > 1 && call.bytes() > 0) {
    const double ports = network.ports == 0 ? ranks - 1 : network.ports;
    const double port = static_cast<double>(call.count * call.element_bytes) * network.beta_ns_per_byte;
    const auto block = [&](Rank r) {
      return sizes.empty() ? port : static_cast<double>(sizes[static_cast<std::size_t>(r)]) * network.beta_ns_per_byte;
    };
    const double latency = least_latency(network, call.bytes());
    end = is_reduction(call.op) ? reduction_end(call, network, arrivals, a, port / ports, latency)
                                : movement_end(call, network, arrivals, a, block, ports, latency);
  }
  bound.run_time = static_cast<Nanoseconds>(std::floor(end - a.front()));
  bound.after_last = static_cast<Nanoseconds>(std::floor(end - a.back()));
  return bound;
}

Nanoseconds spreading_time(int ranks, const Network& network) {
  // With several ports, only the processor delays the next message.
  const double apart = std::max(network.overhead_ns, network.ports == 1 ? network.alpha_ns : 0.0),
               way = 2 * network.overhead_ns + network.alpha_ns + least_latency(network, 0);
  if (ranks < 2) return 0;
  if (apart <= 0) return static_cast<Nanoseconds>(way);
  // The times at which each holder's next message can arrive, earliest first.
  std::priority_queue<double, std::vector<double>, std::greater<>> next;
  next.push(way);
  double now = 0;
  for (int have = 1; have < ranks; ++have) {
    now = next.top();
    next.pop();
    next.push(now + apart);
    next.push(now + way);
  }
  return static_cast<Nanoseconds>(now);
}

Nanoseconds least_after_last(const Call& call, const Network& network, const Pattern& arrivals,
                             const std::vector<Bytes>& sizes) {
  const LowerBound bound = lower_bound(call, network, arrivals, sizes);
  if (!reduces_to_all(call.op) || call.ranks < 2 || call.bytes() <= 0 || network.ranks_per_host > 1)
    return bound.after_last;
  const double ranks = call.ranks, ports = network.ports == 0 ? ranks - 1 : network.ports,
               wire = static_cast<double>(call.bytes()) * network.beta_ns_per_byte / ports;
  double unsent = 0;
  for (Rank r = 0; r < call.ranks; ++r)
    unsent += std::max(0.0, wire - static_cast<double>(arrivals.last() - arrivals.arrival(r)));
  return std::max({bound.after_last, static_cast<Nanoseconds>(((ranks - 2) * wire + unsent) / ranks),
                   static_cast<Nanoseconds>(wire) + spreading_time(call.ranks, network)});
}

}  // namespace latecomer::core
