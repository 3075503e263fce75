// SPDX-License-Identifier: BSD-3-Clause
// Implements the event loop of the simulation.
#include "core/model/simulate.hpp"

#include <algorithm>
#include <deque>
#include <queue>
#include <string>
#include <unordered_map>

#include "core/algorithms/irregular.hpp"
#include "core/base/logarithm.hpp"
#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

/// The transition of an operation that an event performs. `leaves`: of a message, whose number takes the place of the
/// operation.
enum class Moment : std::uint8_t { ready, posted, leaves, arrived, complete };

struct SimulatedEvent {
  Nanoseconds time;
  std::uint64_t sequence;  // breaks ties by the order of creation, so that runs are deterministic
  Rank rank;
  OpId op;
  Moment moment;
  bool operator>(const SimulatedEvent& o) const { return time != o.time ? time > o.time : sequence > o.sequence; }
};

struct Node {
  Operation op;
  int waiting = 0;
  bool started = false, done = false;
  std::int32_t first_edge = -1, last_edge = -1;
};

struct Edge {
  OpId dependent;
  std::int32_t next;
};

/// A posted send or receive that has no partner yet.
struct Pending {
  Rank from;
  std::int32_t channel;
  OpId op;                // the waiting operation
  Nanoseconds available;  // eager messages: time of the delivery
  bool is_send, eager;
};

/// A message that waits for its sender's port.
struct SimulatedMessage {
  Rank from, to;
  std::int32_t channel;
  OpId send, recv;       // recv: kNoOp for an eager message
  Nanoseconds busy = 0;  // of each port
  Nanoseconds flight = 0;
  bool memory = false;  // both ranks are on one host
};

class SimulationEngine {
 public:
  SimulationEngine(const Algorithm& algorithm, const Instance& instance, const Network& network,
                   const Pattern& arrivals, int lookahead, Jitter jitter)
      : instance_(instance),
        network_(network),
        arrivals_(arrivals),
        lookahead_(lookahead),
        jitter_(jitter),
        random_(jitter.seed) {
    const int ranks = instance.call.ranks;
    ranks_.reserve(static_cast<std::size_t>(ranks));
    for (Rank r = 0; r < ranks; ++r) ranks_.emplace_back(algorithm.build(instance, r));
    const Nanoseconds zero = arrivals.first();
    for (Rank r = 0; r < ranks; ++r) {
      at(r).finish = arrivals.arrival(r);
      at(r).cpu_free[0] = arrivals.arrival(r);
      at(r).cpu_free[1] = zero;
    }
    if (network.ports > 0) {
      send_ports_.assign(static_cast<std::size_t>(instance.hosts()) * static_cast<std::size_t>(network.ports), zero);
      recv_ports_ = send_ports_;
    }
    if (instance.hosts() < ranks) {
      send_memory_.assign(static_cast<std::size_t>(ranks), zero);
      recv_memory_ = send_memory_;
    }
  }

  Result<Simulation> run() {
    const int ranks = instance_.call.ranks;
    now_ = arrivals_.first();
    for (Rank r = 0; r < ranks; ++r) pull(r, now_);
    for (;;) {
      // Events of the current time bypass the heap.
      for (std::size_t i = 0; i < immediate_.size(); ++i) handle(SimulatedEvent(immediate_[i]));
      immediate_.clear();
      if (events_.empty()) break;
      const SimulatedEvent e = events_.top();
      events_.pop();
      now_ = e.time;
      handle(e);
    }
    Simulation out;
    out.messages = messages_;
    double elapsed = 0;
    Nanoseconds last = arrivals_.first();
    for (Rank r = 0; r < ranks; ++r) {
      if (!at(r).exhausted || !at(r).nodes.empty())
        return Error{"rank " + std::to_string(r) + " cannot finish: operation " + std::to_string(at(r).base) +
                     " never completes"};
      out.finish.push_back(at(r).finish);
      last = std::max(last, at(r).finish);
      elapsed += static_cast<double>(at(r).finish - arrivals_.arrival(r));
    }
    out.run_time = last - arrivals_.first();
    out.after_last = last - arrivals_.last();
    out.mean_elapsed = elapsed / ranks;
    return out;
  }

 private:
  struct RankState {
    explicit RankState(Schedule s) : schedule(std::move(s)) {}
    Schedule schedule;
    std::deque<Node> nodes;  // operations base, base + 1, ... that are not retired
    OpId base = 0;
    std::vector<Pending> waiting;  // unmatched sends to this rank and receives of this rank, oldest first
    int blocked = 0;               // number of operations that are generated and not started
    bool exhausted = false;
    Nanoseconds cpu_free[2] = {0, 0};  // per lane, because the background engine has its own thread
    Nanoseconds finish = 0;
  };

  RankState& at(Rank r) { return ranks_[static_cast<std::size_t>(r)]; }
  Node& node(Rank r, OpId id) { return at(r).nodes[static_cast<std::size_t>(id - at(r).base)]; }

  void handle(const SimulatedEvent& e) {
    switch (e.moment) {
      case Moment::ready:
        return start(e.rank, e.op, e.time);
      case Moment::posted:
        return exchange(e.rank, e.op, e.time);
      case Moment::leaves: {
        const SimulatedMessage m = messages_waiting_[static_cast<std::size_t>(e.op)];
        free_messages_.push_back(e.op);
        return enter(m, e.time);
      }
      case Moment::arrived:
        return post(compute(e.rank, node(e.rank, e.op).op.lane, e.time, network_.overhead_ns), e.rank, e.op,
                    Moment::complete);
      case Moment::complete:
        return complete(e.rank, e.op, e.time);
    }
  }

  void post(Nanoseconds time, Rank r, OpId op, Moment moment) {
    if (time <= now_) immediate_.push_back({time, 0, r, op, moment});
    else events_.push({time, sequence_++, r, op, moment});
  }

  void pull(Rank r, Nanoseconds now) {
    RankState& state = at(r);
    while (!state.exhausted && state.blocked < lookahead_) {
      const Operation* op = state.schedule.next();
      if (!op) {
        state.exhausted = true;
        return;
      }
      const OpId id = state.base + static_cast<OpId>(state.nodes.size());
      Node fresh;
      fresh.op = *op;
      for (int i = 0; i < op->dep_count; ++i) {
        if (op->deps[i] < state.base || node(r, op->deps[i]).done) continue;
        Node& before = node(r, op->deps[i]);
        std::int32_t edge;
        if (free_edges_ >= 0) {
          edge = free_edges_;
          free_edges_ = edges_[static_cast<std::size_t>(edge)].next;
        } else {
          edge = static_cast<std::int32_t>(edges_.size());
          edges_.push_back({});
        }
        // Dependents start in the order of generation.
        edges_[static_cast<std::size_t>(edge)] = {id, -1};
        (before.first_edge < 0 ? before.first_edge : edges_[static_cast<std::size_t>(before.last_edge)].next) = edge;
        before.last_edge = edge;
        ++fresh.waiting;
      }
      const bool free = fresh.waiting == 0;
      state.nodes.push_back(fresh);
      ++state.blocked;
      if (free) ready(r, id, now);
    }
  }

  void ready(Rank r, OpId id, Nanoseconds now) {
    const Operation& op = node(r, id).op;
    const Nanoseconds arrival = arrivals_.arrival(r);
    // The reaction time applies to operations without dependencies only: a working background engine stays awake.
    const Nanoseconds looks = op.dep_count == 0 ? now + static_cast<Nanoseconds>(network_.reaction_ns) : now;
    post(op.lane == Lane::foreground ? std::max(now, arrival) : std::max(now, std::min(looks, arrival)), r, id,
         Moment::ready);
  }

  /// Occupies the processor of r for `cost` from `now`, or from the time at which it is free. Returns the end.
  Nanoseconds compute(Rank r, Lane lane, Nanoseconds now, double cost) {
    if (cost <= 0) return now;
    Nanoseconds& free = at(r).cpu_free[static_cast<std::size_t>(lane)];
    free = std::max(free, now) + rounded_up(cost);
    return free;
  }

  /// A time with the noise of one transfer: the share `jitter` of it is exponentially distributed, with the same mean.
  Nanoseconds noisy(Nanoseconds time) {
    if (jitter_.share <= 0) return time;
    return rounded_up(static_cast<double>(time) *
                      (1 - jitter_.share - jitter_.share * logarithm(1 - random_.uniform())));
  }

  /// Sends a message: inside a host through memory, else through a send port and a receive port. Each port serves
  /// messages in the order in which they reach it. A busy receive port does not hold the sender's port: the network
  /// buffers.
  void transfer(SimulatedMessage m, Bytes bytes, Nanoseconds now) {
    m.memory = instance_.same_host(m.from, m.to);
    m.flight = rounded_up(m.memory ? network_.memory_latency_ns : network_.flight_ns(bytes));
    m.busy = noisy(m.memory ? rounded_up(network_.memory_beta_ns_per_byte * static_cast<double>(bytes))
                            : network_.port_ns(bytes));
    if (network_.ports == 0 && !m.memory) {
      Nanoseconds& free = link(m.from, m.to);
      free = std::max(free, now) + m.busy;
      return arrive(m, free, free);
    }
    Nanoseconds& out = m.memory ? send_memory_[static_cast<std::size_t>(m.from)] : free_port(send_ports_, m.from);
    if (network_.exclusive_ports) {
      Nanoseconds& in = receive_port(m);
      out = in = std::max({now, out, in}) + m.busy;
      return arrive(m, out, in);
    }
    Nanoseconds begin = std::max(out, now);
    if (network_.half_duplex && m.recv != kNoOp && !m.memory) {
      begin = std::max(begin, link(m.to, m.from));
      link(m.from, m.to) = begin + m.busy;
    }
    out = begin + m.busy;
    if (begin <= now) return enter(m, now);
    auto number = static_cast<OpId>(messages_waiting_.size());
    if (free_messages_.empty()) messages_waiting_.push_back(m);
    else {
      number = free_messages_.back();
      free_messages_.pop_back();
      messages_waiting_[static_cast<std::size_t>(number)] = m;
    }
    post(begin, m.from, number, Moment::leaves);
  }

  /// The time at which the connection between two ranks is free in that direction.
  Nanoseconds& link(Rank from, Rank to) {
    const auto key = (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
    return links_.try_emplace(key, arrivals_.first()).first->second;
  }

  /// The message reaches the receive port.
  void enter(const SimulatedMessage& m, Nanoseconds now) {
    Nanoseconds& in = receive_port(m);
    in = std::max(in, now) + m.busy;
    arrive(m, now + m.busy, in);
  }

  /// Completes both sides: the sender's port is free at `left`, and the last byte leaves the receive port at `in`.
  void arrive(const SimulatedMessage& m, Nanoseconds left, Nanoseconds in) {
    const Nanoseconds there = in + m.flight;
    if (m.recv != kNoOp) {
      post(there, m.from, m.send, Moment::complete);
      return deliver(m.to, m.recv, there);
    }
    post(left, m.from, m.send, Moment::complete);
    auto& queue = at(m.to).waiting;
    const auto match = std::find_if(queue.begin(), queue.end(), [&](const Pending& w) {
      return w.from == m.from && w.channel == m.channel && !w.is_send;
    });
    if (match == queue.end()) {
      queue.push_back({m.from, m.channel, m.send, there, true, true});
    } else {
      const OpId receive = match->op;
      queue.erase(match);
      deliver(m.to, receive, there);
    }
  }

  Nanoseconds& receive_port(const SimulatedMessage& m) {
    return m.memory ? recv_memory_[static_cast<std::size_t>(m.to)] : free_port(recv_ports_, m.to);
  }

  /// The port of the rank's host that is free first.
  Nanoseconds& free_port(std::vector<Nanoseconds>& ports, Rank r) {
    const auto begin = ports.begin() + static_cast<std::ptrdiff_t>(instance_.host(r)) * network_.ports;
    return *std::min_element(begin, begin + network_.ports);
  }

  Bytes bytes_of(Rank r, const Operation& op) const {
    return is_irregular(instance_.call.op) ? irregular_bytes(instance_, r, op.kind == OpKind::send ? op.src : op.dst)
                                           : op.count() * instance_.call.element_bytes;
  }

  void start(Rank r, OpId id, Nanoseconds now) {
    Node& n = node(r, id);
    if (!n.started) {
      n.started = true;
      --at(r).blocked;
      pull(r, now);
    }
    const Operation op = node(r, id).op;  // a copy: pull() may move nodes
    if (!op.communicates()) {
      const double per_byte = op.kind == OpKind::reduce ? network_.gamma_ns_per_byte : network_.copy_ns_per_byte;
      post(compute(r, op.lane, now, per_byte * static_cast<double>(bytes_of(r, op))), r, id, Moment::complete);
      return;
    }
    const Nanoseconds posted = op.kind == OpKind::send ? compute(r, op.lane, now, network_.overhead_ns) : now;
    if (posted <= now) exchange(r, id, now);
    else post(posted, r, id, Moment::posted);
  }

  /// Posts one side of a message. A message takes its sender's port in the order of posting.
  void exchange(Rank r, OpId id, Nanoseconds now) {
    const Operation op = node(r, id).op;
    const Bytes bytes = bytes_of(r, op);
    const bool is_send = op.kind == OpKind::send;
    if (is_send) ++messages_;
    const Rank from = is_send ? r : op.peer, to = is_send ? op.peer : r;
    if (is_send && network_.eager(bytes)) return transfer({from, to, op.channel, id, kNoOp}, bytes, now);
    auto& queue = at(to).waiting;
    const auto match = std::find_if(queue.begin(), queue.end(), [&](const Pending& w) {
      return w.from == from && w.channel == op.channel && w.is_send != is_send;
    });
    if (match == queue.end()) {
      queue.push_back({from, op.channel, id, now, is_send, false});
      return;
    }
    const Pending other = *match;
    queue.erase(match);
    if (other.eager) deliver(r, id, std::max(now, other.available));
    else transfer({from, to, op.channel, is_send ? id : other.op, is_send ? other.op : id}, bytes, now);
  }

  void deliver(Rank r, OpId id, Nanoseconds there) {
    // The overhead starts at the delivery. Until then the processor is free for other operations.
    post(there, r, id, network_.overhead_ns > 0 ? Moment::arrived : Moment::complete);
  }

  void complete(Rank r, OpId id, Nanoseconds now) {
    RankState& state = at(r);
    Node& n = node(r, id);
    n.done = true;
    // The process leaves after its foreground operations. Background operations do not delay its exit.
    if (n.op.lane == Lane::foreground) state.finish = std::max(state.finish, now);
    for (std::int32_t edge = n.first_edge; edge >= 0;) {
      const Edge e = edges_[static_cast<std::size_t>(edge)];
      if (--node(r, e.dependent).waiting == 0) ready(r, e.dependent, now);
      edges_[static_cast<std::size_t>(edge)].next = free_edges_;
      free_edges_ = edge;
      edge = e.next;
    }
    while (!state.nodes.empty() && state.nodes.front().done) {
      state.nodes.pop_front();
      ++state.base;
    }
  }

  const Instance& instance_;
  const Network& network_;
  const Pattern& arrivals_;
  int lookahead_;
  std::vector<RankState> ranks_;
  std::priority_queue<SimulatedEvent, std::vector<SimulatedEvent>, std::greater<>> events_;
  std::vector<SimulatedEvent> immediate_;
  Nanoseconds now_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<Edge> edges_;
  std::int32_t free_edges_ = -1;
  std::vector<Nanoseconds> send_ports_, recv_ports_;      // [hosts][ports]
  std::vector<Nanoseconds> send_memory_, recv_memory_;    // [ranks], of messages inside a host
  std::unordered_map<std::uint64_t, Nanoseconds> links_;  // ports=link, duplex=half
  std::vector<SimulatedMessage> messages_waiting_;
  std::vector<OpId> free_messages_;
  Jitter jitter_;
  SplitMix64 random_;
  std::int64_t messages_ = 0;
};

}  // namespace

Result<Simulation> simulate(const Algorithm& algorithm, const Instance& instance, const Network& network,
                            const Pattern& arrivals, int lookahead, Jitter jitter) {
  return SimulationEngine(algorithm, instance, network, arrivals, lookahead, jitter).run();
}

}  // namespace latecomer::core
