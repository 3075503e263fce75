// SPDX-License-Identifier: BSD-3-Clause
// Measures the figures of the network model between rank 0 of a communicator and up to eight others, and takes medians.
// Used by `latecomer calibrate`'s program, in MPI_Init for "network": "measure", and in MPI_Finalize. The template
// parameter Mpi gives the MPI functions, and the class Mpi::Wait: its again() waits a moment in a wait for a message,
// and returns false to give up.
//
// Each parameter of core/network/network.hpp comes from an experiment that shows it alone:
// - latency, eager and rendezvous: round trips;
// - beta: the slope between two large sizes that go both ways at once, as in collectives;
// - the eager threshold: the largest send that completes without a receive;
// - alpha and overhead: a train of small messages;
// - gamma and copy: local loops;
// - duplex: an exchange of large messages that one side posts later;
// - ranks per host: the hosts of all ranks. Rank 0 measures with ranks of other hosts, and inside its host with rank 1.
// The time is bounded on any network: a few messages show its speed, which gives the sizes and the numbers of rounds.
// Rank 0 chooses them and sends them to its partner, so both end every round together. Nothing is allocated, because a
// rank that failed alone would leave its partner waiting.
#pragma once

#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "core/network/network.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {

/// The exactness and the time of a measurement. All ranks use equal values.
struct Effort {
  double budget_ns;  ///< chooses the sizes and the rounds
  double most_ns;    ///< gives up on a network whose least sizes take longer
  int partners;      ///< on other hosts, or on the only one
  int hurry;         ///< divides the numbers of rounds
  double nap_ns;     ///< a partner sleeps so long while rank 0 tests whether a send completes
  int local_rounds;  ///< of reductions and copies
  bool yielding;     ///< waits give the core away
};
constexpr double kNoLimit = 1e18;
/// Derived: the median of eight partners is right while fewer than four of them are disturbed. A longer budget delays
/// the user, a shorter one has fewer rounds and less exact medians. A nap of 10 ms hides a late timer.
constexpr Effort thorough(bool yielding) { return {6e9, kNoLimit, 8, 1, 10e6, 15, yielding}; }
/// A quarter of the time, in MPI_Init. A shorter one leaves a single partner.
constexpr Effort at_start(bool yielding) { return {1.5e9, kNoLimit, 2, 4, 10e6, 15, yielding}; }
/// In MPI_Finalize. Derived: two partners have 30 ms each, which is 4 rounds of the largest messages at 5 GB/s; the
/// search for the eager threshold takes four naps. `most_ns`: what the job may spend, of which 0.6 are planned.
constexpr Effort at_end(bool yielding, double most_ns) {
  return {std::min(0.6 * most_ns, 60e6), most_ns, 2, 2, 1e6, 5, yielding};
}

template <typename Mpi>
class Measurement {
 public:
  /// The larger size of the slope. Derived: 2 MiB take 84 us at 25 GB/s, so an error of 0.1 us is 0.1%. An eager
  /// threshold beyond kMostEager, the smaller size of the slope, counts as kMostEager.
  static constexpr int kHalf = 1 << 21, kMostEager = 1 << 20, kMostPartners = 8;
  using Buffer = std::span<char, kHalf>;

  /// `hosts`: the number of each rank's host, in the order in which they first appear; equal on all ranks. After a wait
  /// that was given up, MPI may still use the buffers.
  Measurement(MPI_Comm comm, int rank, std::span<const int> hosts, const Effort& effort, Buffer buffer, Buffer other)
      : comm_(comm),
        rank_(rank),
        size_(static_cast<int>(hosts.size())),
        hosts_(hosts),
        effort_(effort),
        buffer_(buffer),
        other_(other) {}

  struct Answer {
    bool given_up = false;
    std::optional<core::Network> network;  ///< on rank 0, unless the network is too slow
    double factor = 1;                     ///< the most by which the median of equal small messages exceeds the least
  };

  /// Collective; at least two ranks.
  Answer run() try {
    Figures all[kMostPartners + 1];
    int pairs = 0;
    const double begin = now_ns(), most = effort_.budget_ns;
    const int per_host = ranks_per_host(), first = per_host < size_ ? per_host : 1;
    const bool inside = per_host > 1 && per_host < size_;  // measure a pair of one host, too
    // Partners spread over the other hosts, or over the only one. The others sleep, so that they do not take the cores.
    const int others = std::min({effort_.partners, kMostPartners, size_ - first}), partners = others + inside;
    bool slow = false;
    for (int i = 0; i < partners; ++i) {
      const int with = i == others ? 1 : first + static_cast<int>(static_cast<long>(i) * (size_ - first) / others);
      if (rank_ == 0 || rank_ == with) {
        peer_ = rank_ == 0 ? with : 0;
        // On a slow network, one partner is enough.
        const double left = most - (now_ns() - begin);
        if (agree_on(!slow && (i == 0 || i == others || left > most / partners))) {
          const std::optional<Figures> f = measure_pair(std::max(left, most / 2) / (partners - i));
          slow = !f;
          if (f) all[pairs++] = *f;
        }
      }
      MPI_Request request = MPI_REQUEST_NULL;
      Mpi::ibarrier(comm_, &request);
      typename Mpi::Wait wait(true);
      for (int done = 0; !done;) {
        Mpi::test(&request, &done);
        if (done) break;
        const timespec nap{0, 200'000};
        nanosleep(&nap, nullptr);
        if (!wait.again()) throw GivenUp();
      }
    }
    if (rank_ != 0 || slow) return {};
    core::Network out;
    if (inside) {
      out.ranks_per_host = per_host;
      --pairs;
      out.memory_beta_ns_per_byte = all[pairs].beta;
      out.memory_latency_ns = all[pairs].latency;
    }
    const auto of = [&](double Figures::*field) {
      Times values;
      for (int i = 0; i < pairs; ++i) values.add(all[i].*field);
      return values.median();
    };
    out.alpha_ns = of(&Figures::alpha);
    out.beta_ns_per_byte = of(&Figures::beta);
    out.overhead_ns = of(&Figures::overhead);
    out.latency_ns = of(&Figures::latency);
    out.rendezvous_latency_ns = of(&Figures::rendezvous);
    out.eager_bytes = static_cast<core::Bytes>(of(&Figures::eager_bytes));
    out.half_duplex = of(&Figures::turns) > 0.5;
    measure_local(out);
    // Repeated measurements agree in two digits.
    for (const core::NetworkTime& time : core::kNetworkTimes) {
      char text[32];
      std::snprintf(text, sizeof text, "%.4g", out.*time.value);
      out.*time.value = std::strtod(text, nullptr);
    }
    return {false, out, factor_};
  } catch (const GivenUp&) {
    return {true, {}};
  }

 private:
  struct GivenUp {};
  static constexpr std::size_t kMost = 200;  // rounds of an experiment, and messages of a train

  /// Consecutive ranks on each host; 1 if hosts do not hold blocks of one size.
  int ranks_per_host() const {
    const auto block =
        static_cast<int>(std::find_if(hosts_.begin(), hosts_.end(), [](int h) { return h != 0; }) - hosts_.begin());
    for (int r = 0; r < size_; ++r)
      if (hosts_[static_cast<std::size_t>(r)] != r / block) return 1;
    return block;
  }

  /// Times of repeated experiments. Callers use the median or the least.
  class Times {
   public:
    void add(double ns) {
      if (count_ < kMost) ns_[count_++] = ns;
    }
    double median() {
      std::sort(ns_, ns_ + count_);
      return ns_[count_ / 2];
    }
    double least() const { return *std::min_element(ns_, ns_ + count_); }

   private:
    double ns_[kMost];
    std::size_t count_ = 0;
  };

  /// The fewest rounds whose median excludes one disturbed round.
  static constexpr int kLeastRounds = 3;
  /// Messages of a train. Derived: the time of a train contains the latency of its first message and of the answer. For
  /// a latency of 2 us, they add 20 ns per message.
  static constexpr int kMessages = kMost;
  /// The sizes and rounds that fit into the time. At first the most: 200 round trips of 2 us take 0.4 ms, and a median
  /// of 9 rounds is right with 4 disturbed rounds.
  struct Pace {
    int small_rounds = 200, rounds = 9, trains = 9, half = kHalf, most_eager = kMostEager;
  };
  struct Figures {
    double latency = 0, rendezvous = 0, beta = 0, alpha = 0, overhead = 0, eager_bytes = 0,
           turns = 0;  ///< 1: large messages to each other take turns
  };

  static double now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
  }
  void finish_request(MPI_Request& request) {
    typename Mpi::Wait wait(effort_.yielding);
    for (int done = 0;;) {
      Mpi::test(&request, &done);
      if (done) return;
      if (!wait.again()) throw GivenUp();
    }
  }
  void send_bytes(int bytes, Channel channel) {
    MPI_Request request = MPI_REQUEST_NULL;
    Mpi::isend(buffer_.data(), bytes, peer_, channel, comm_, &request);
    finish_request(request);
  }
  void receive_bytes(int bytes, Channel channel) {
    MPI_Request request = MPI_REQUEST_NULL;
    Mpi::irecv(other_.data(), bytes, peer_, channel, comm_, &request);
    finish_request(request);
  }

  /// Gives rank 0's value to its partner.
  template <typename T>
  T agree_on(T value) {
    std::memcpy(buffer_.data(), &value, sizeof value);
    if (rank_ == 0) send_bytes(sizeof value, kMeasureAgreedChannel);
    else {
      receive_bytes(sizeof value, kMeasureAgreedChannel);
      std::memcpy(&value, other_.data(), sizeof value);
    }
    return value;
  }

  /// The sizes and rounds that fit into `budget` nanoseconds on this network. Nothing if the least ones take too long.
  std::optional<Pace> find_pace(double budget) {
    Pace out;
    // The probe sets the sizes only, so its time may err by a factor. A longer probe would be more exact, but slow on a
    // slow network: 8 KiB take 8 ms at 1 MB/s.
    constexpr int kProbe = 8192;
    one_way(1, kLeastRounds);  // connects
    const double small = one_way(1, kLeastRounds), large = one_way(kProbe, kLeastRounds);
    // The shares of the time: 0.1 for round trips, 0.1 for trains, 0.6 for large messages. The rest, 0.2, is for the
    // search for the eager threshold: its sizes add up to twice the largest.
    const auto rounds = [](double share, double each, int most) {
      return static_cast<int>(
          std::clamp(share / std::max(each, 1.0), static_cast<double>(kLeastRounds), static_cast<double>(most)));
    };
    out.small_rounds = rounds(0.1 * budget, 2 * small, out.small_rounds);
    out.trains = rounds(0.1 * budget, 2 * small + kMessages * 0.1 * large, out.trains);
    // The bytes of the fewest rounds with large messages, in units of the larger size. Derived: 5 round trips (2 to
    // warm up) and 4 exchanges (1 to warm up), each of 1 and of 1/2. 3 exchanges of 1/2 may take twice as long. 5 * (2
    // + 1) + 4 * (1 + 1/2) + 3 * 1 = 24.
    constexpr double kSizes = 24;
    const double per_byte = std::max(large - small, 0.02 * small) / kProbe,
                 fits = 0.6 * budget / (kSizes * std::max(per_byte, 1e-3));
    // The least sizes may exceed the budget on a slow network. Below 64 KiB, the slope would show the start-up time of
    // messages instead of the time per byte. The search finds any eager threshold up to 16 KiB.
    out.half = static_cast<int>(std::clamp(fits, 65536.0, static_cast<double>(kHalf))) & ~1;
    out.rounds = rounds(0.6 * budget, kSizes / 3 * per_byte * out.half, out.rounds);
    out.most_eager =
        static_cast<int>(std::clamp(0.1 * budget / std::max(per_byte, 1e-3), 16384.0, static_cast<double>(kMostEager)));
    const bool fit = kSizes * per_byte * out.half < 0.6 * effort_.most_ns;
    if (!agree_on(fit)) return {};
    return agree_on(out);
  }

  /// Half a round trip of messages of that size. Both ranks of the pair call it.
  double one_way(int bytes, int rounds) {
    Times ns;
    for (int i = -2; i < std::max(kLeastRounds, rounds / effort_.hurry); ++i) {
      const double begin = now_ns();
      if (rank_ == 0) {
        send_bytes(bytes, kMeasureRequestChannel);
        receive_bytes(bytes, kMeasureAnswerChannel);
      } else {
        receive_bytes(bytes, kMeasureRequestChannel);
        send_bytes(bytes, kMeasureAnswerChannel);
      }
      if (i >= 0) ns.add((now_ns() - begin) / 2);
    }
    const double out = ns.median();
    if (bytes == 1) factor_ = std::max(factor_, out / std::max(1.0, ns.least()));
    return out;
  }

  /// The least time of messages of that size both ways at once. In other rounds the two take turns, which takes twice
  /// as long. Medians may take one of two sizes from such rounds only, and then their slope is three times as steep, or
  /// 0.
  double both_ways(int bytes, int rounds) {
    Times ns;
    for (int i = -1; i < std::max(kLeastRounds, rounds / effort_.hurry); ++i) {
      meet_partner();
      const double begin = now_ns();
      exchange_bytes(bytes);
      if (i >= 0) ns.add(now_ns() - begin);
    }
    return ns.least();
  }
  /// Both ranks of the pair leave at about the same time.
  void meet_partner() {
    if (rank_ == 0) {
      send_bytes(0, kMeasureMeetingChannel);
      receive_bytes(0, kMeasureMeetingChannel);
    } else {
      receive_bytes(0, kMeasureMeetingChannel);
      send_bytes(0, kMeasureMeetingChannel);
    }
  }
  void exchange_bytes(int bytes) {
    MPI_Request out = MPI_REQUEST_NULL, in = MPI_REQUEST_NULL;
    Mpi::irecv(other_.data(), bytes, peer_, kMeasureExchangeChannel, comm_, &in);
    Mpi::isend(buffer_.data(), bytes, peer_, kMeasureExchangeChannel, comm_, &out);
    finish_request(in);
    finish_request(out);
  }

  /// Whether two messages of that size to each other take turns. `one`: the time of one. The partner posts its two a
  /// quarter of that later, while MPI makes progress. Measured, 128 KiB over TCP at 100 Mbit/s: 21.9 ms instead
  /// of 11.1; if both post at once, the messages share the time.
  bool take_turns(int bytes, double one) {
    Times ns;
    one = agree_on(one);
    for (int i = 0; i < kLeastRounds; ++i) {
      meet_partner();
      const double begin = now_ns();
      if (rank_ == 0) {
        exchange_bytes(bytes);
        ns.add(now_ns() - begin);
        send_bytes(0, kMeasureTurnChannel);
      } else {
        MPI_Request later = MPI_REQUEST_NULL;
        Mpi::irecv(other_.data(), 0, peer_, kMeasureTurnChannel, comm_, &later);
        for (int done = 0; now_ns() < begin + one / 4;) Mpi::test(&later, &done);
        exchange_bytes(bytes);
        finish_request(later);
      }
    }
    // Derived: the middle between 1.25, if the messages share the time, and 2.
    return agree_on(rank_ == 0 && ns.median() > 1.6 * one);
  }

  /// Whether a send of that size completes while the partner sleeps. The partner receives afterwards. Both ranks of the
  /// pair return the same value. The sender tests for a third of the sleep, so a late timer makes no difference.
  bool is_eager(int bytes) {
    int completed = 0;
    meet_partner();
    if (rank_ == 0) {
      MPI_Request request = MPI_REQUEST_NULL;
      const double begin = now_ns();
      Mpi::isend(buffer_.data(), bytes, peer_, kMeasureEagerChannel, comm_, &request);
      do Mpi::test(&request, &completed);
      while (!completed && now_ns() < begin + effort_.nap_ns / 3);
      if (!completed) finish_request(request);
      else if (now_ns() > begin + effort_.nap_ns / 2) completed = 0;  // the partner may have received
    } else {
      const timespec nap{0, static_cast<long>(effort_.nap_ns)};
      nanosleep(&nap, nullptr);
      receive_bytes(bytes, kMeasureEagerChannel);
    }
    return agree_on(completed) != 0;
  }

  /// The largest eager size: a power of two from 1 KiB to `most`, or 0.
  int find_eager_bytes(int most) {
    int eager_sizes = 0, sizes = 0;
    while ((1024 << sizes) <= most) ++sizes;
    while (eager_sizes < sizes) {
      const int middle = (eager_sizes + sizes + 1) / 2;
      // A disturbed send looks as if it waited, so only two of them say that it does.
      if (is_eager(512 << middle) || is_eager(512 << middle)) eager_sizes = middle;
      else sizes = middle - 1;
    }
    return eager_sizes == 0 ? 0 : 512 << eager_sizes;
  }

  /// Times per message of a train of small ones: `processor` of the sender's processor, `port` until it has arrived.
  void measure_train(int rounds, double& processor, double& port) {
    Times cpu, gap;
    MPI_Request requests[kMessages];
    std::fill_n(requests, kMessages, MPI_REQUEST_NULL);
    for (int round = 0; round < std::max(kLeastRounds, rounds / effort_.hurry); ++round) {
      if (rank_ == 0) {
        receive_bytes(0, kMeasureTrainBeginChannel);
        const double begin = now_ns();
        for (auto& r : requests) Mpi::isend(buffer_.data(), 8, peer_, kMeasureTrainChannel, comm_, &r);
        cpu.add((now_ns() - begin) / kMessages);
        for (auto& r : requests) finish_request(r);
        receive_bytes(0, kMeasureTrainEndChannel);
        gap.add((now_ns() - begin) / kMessages);
      } else {
        for (auto& r : requests) Mpi::irecv(other_.data(), 8, peer_, kMeasureTrainChannel, comm_, &r);
        send_bytes(0, kMeasureTrainBeginChannel);
        for (auto& r : requests) finish_request(r);
        send_bytes(0, kMeasureTrainEndChannel);
      }
    }
    if (rank_ != 0) return;
    processor = cpu.median();
    port = gap.median();
    factor_ = std::max(factor_, port / std::max(1.0, gap.least()));
  }

  std::optional<Figures> measure_pair(double budget) {
    const std::optional<Pace> fits = find_pace(budget);
    if (!fits) return {};
    const Pace& p = *fits;
    Figures f;
    f.eager_bytes = find_eager_bytes(p.most_eager);
    const double small = one_way(1, p.small_rounds), quarter = one_way(p.half / 2, p.rounds),
                 half = one_way(p.half, p.rounds);
    const int more = p.half - p.half / 2;
    f.beta = std::max(0.0, (both_ways(p.half, p.rounds) - both_ways(p.half / 2, p.rounds)) / more);
    // Both ways at once take at least the time of one way, and at most that of both in turn.
    if (const double alone = (half - quarter) / more; alone > 0) f.beta = std::clamp(f.beta, alone, 2 * alone);
    f.turns = take_turns(p.half / 2, quarter);
    measure_train(p.trains, f.overhead, f.alpha);
    // The latency: the time of a single small message without the overhead of both processors.
    f.latency = std::max(0.0, small - 2 * f.overhead);
    f.alpha = std::max(0.0, f.alpha - f.overhead);
    f.rendezvous = std::max(f.latency, quarter - (half - quarter) - 2 * f.overhead);
    return f;
  }

  void measure_local(core::Network& out) {
    Times gammas, copies;
    auto* a = reinterpret_cast<float*>(buffer_.data());
    auto* b = reinterpret_cast<float*>(other_.data());
    // Derived: 1 MiB per operand, half of a buffer, does not fit into a first-level cache.
    constexpr int kFloats = 1 << 18;
    for (int i = 0; i < kFloats; ++i) a[i] = b[i] = 1;
    for (int i = 0; i < effort_.local_rounds; ++i) {  // the median is right with less than half of them disturbed
      double begin = now_ns();
      Mpi::reduce_local(a, b, kFloats);
      gammas.add((now_ns() - begin) / (4.0 * kFloats));
      begin = now_ns();
      std::memcpy(b, a, 4 * kFloats);
      copies.add((now_ns() - begin) / (4.0 * kFloats));
    }
    out.gamma_ns_per_byte = gammas.median();
    out.copy_ns_per_byte = copies.median();
  }

  MPI_Comm comm_;
  int rank_, size_, peer_ = 0;
  std::span<const int> hosts_;
  const Effort effort_;
  double factor_ = 1;
  Buffer buffer_, other_;
};

}  // namespace latecomer::shim
