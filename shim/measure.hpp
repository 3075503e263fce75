// SPDX-License-Identifier: BSD-3-Clause
// Measures the figures of the network model between rank 0 of a communicator and up to eight others, and takes medians.
// Used by `latecomer calibrate`'s program and, for "network": "measure", in MPI_Init. The template parameter Mpi gives
// the MPI functions.
//
// Each parameter of core/network/network.hpp comes from an experiment that shows it alone:
// - latency, eager and rendezvous: round trips;
// - beta: the slope between two large sizes that go both ways at once, as in collectives;
// - the eager threshold: the largest send that completes without a receive;
// - alpha and overhead: a train of small messages;
// - gamma and copy: local loops;
// - duplex: an exchange of large messages that one side posts later;
// - ranks per host: MPI's names of the processors. Rank 0 measures with ranks of other hosts, and the figures inside a
//   host with rank 1.
// The time is bounded on any network: a few messages show its speed, which gives the sizes and the numbers of rounds.
// Rank 0 chooses them and sends them to its partner.
#pragma once

#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "core/network/network.hpp"

namespace latecomer::shim {

template <typename Mpi>
class Measurement {
 public:
  /// `yielding`: waits give the core away. `hurry`: 1 is thorough and takes about 6 s at most. A larger number divides
  /// the time, the rounds and the number of partners.
  Measurement(MPI_Comm comm, int rank, int size, bool yielding, int hurry)
      : comm_(comm), rank_(rank), size_(size), hurry_(hurry), yielding_(yielding), buffer_(kHalf), other_(kHalf) {}

  /// Collective; at least two ranks. The figures are valid on rank 0.
  core::Network run() {
    std::vector<Figures> all;
    const double begin = now_ns(), most = kMostSeconds * 1e9 / hurry_;
    const int per_host = ranks_per_host(), first = per_host < size_ ? per_host : 1;
    const bool inside = per_host > 1 && per_host < size_;  // measure a pair of one host, too
    // Partners spread over the other hosts, or over the only one. The others sleep, so that they do not take the cores.
    // Derived: a median of eight is right while fewer than four partners are disturbed.
    const int others = std::min(8 / hurry_, size_ - first), partners = others + inside;
    for (int i = 0; i < partners; ++i) {
      const int with = i == others ? 1 : first + static_cast<int>(static_cast<long>(i) * (size_ - first) / others);
      if (rank_ == 0 || rank_ == with) {
        peer_ = rank_ == 0 ? with : 0;
        // On a slow network, one partner is enough.
        const double left = most - (now_ns() - begin);
        if (agreed(i == 0 || i == others || left > most / partners)) {
          const Figures f = pair(std::max(left, most / 2) / (partners - i));
          if (rank_ == 0) all.push_back(f);
        }
      }
      MPI_Request request;
      Mpi::ibarrier(comm_, &request);
      for (int done = 0; !done;) {
        const timespec nap{0, 200'000};
        Mpi::test(&request, &done);
        if (!done) nanosleep(&nap, nullptr);
      }
    }
    core::Network out;
    if (rank_ != 0) return out;
    if (inside) {
      out.ranks_per_host = per_host;
      out.memory_beta_ns_per_byte = all.back().beta;
      out.memory_latency_ns = all.back().latency;
      all.pop_back();
    }
    const auto of = [&](double Figures::*field) {
      std::vector<double> v;
      v.reserve(all.size());
      for (const Figures& f : all) v.push_back(f.*field);
      return median(v);
    };
    out.alpha_ns = of(&Figures::alpha), out.beta_ns_per_byte = of(&Figures::beta),
    out.overhead_ns = of(&Figures::overhead);
    out.latency_ns = of(&Figures::latency), out.rendezvous_latency_ns = of(&Figures::rendezvous);
    out.eager_bytes = static_cast<core::Bytes>(of(&Figures::eager_bytes));
    out.half_duplex = of(&Figures::turns) > 0.5;
    local(out);
    return out;
  }

 private:
  /// Consecutive ranks on each host, by MPI's name of the processor; 1 if hosts do not hold blocks of one size.
  int ranks_per_host() {
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    Mpi::processor_name(name, &length);
    const std::uint64_t mine = std::hash<std::string_view>()({name, static_cast<std::size_t>(length)});
    std::vector<std::uint64_t> names(static_cast<std::size_t>(size_));
    Mpi::allgather(&mine, names.data(), sizeof mine, comm_);
    const auto block = std::find_if(names.begin(), names.end(), [&](auto n) { return n != names[0]; }) - names.begin();
    std::vector<std::uint64_t> hosts;
    for (std::size_t r = 0; r < names.size(); ++r) {
      const std::size_t first = r - r % static_cast<std::size_t>(block);
      if (r == first) hosts.push_back(names[r]);
      else if (names[r] != names[first]) return 1;
    }
    std::sort(hosts.begin(), hosts.end());
    return std::adjacent_find(hosts.begin(), hosts.end()) == hosts.end() ? static_cast<int>(block) : 1;
  }

  /// The larger size of the slope. Derived: 2 MiB take 84 us at 25 GB/s, so an error of 0.1 us is 0.1%. The two buffers
  /// take 4 MiB per rank. An eager threshold beyond kMostEager, the smaller size of the slope, counts as kMostEager.
  static constexpr int kHalf = 1 << 21, kMostEager = 1 << 20;
  /// The budget of time. A smaller one gives fewer rounds and less exact medians, a larger one delays the user. In
  /// MPI_Init, `hurry` reduces it to 1.5 s.
  static constexpr double kMostSeconds = 6;
  /// The fewest rounds whose median excludes one disturbed round.
  static constexpr int kLeastRounds = 3;
  /// Messages of a train. Derived: the time of a train contains the latency of its first message and of the answer. For
  /// a latency of 2 us, they add 20 ns per message.
  static constexpr int kMessages = 200;
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
  static double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  }
  void finish(MPI_Request& request) {
    for (int done = 0; !done;) {
      Mpi::test(&request, &done);
      if (!done && yielding_) sched_yield();
    }
  }
  void send(int bytes, int tag) {
    MPI_Request request;
    Mpi::isend(buffer_.data(), bytes, peer_, kTag + tag, comm_, &request);
    finish(request);
  }
  void receive(int bytes, int tag) {
    MPI_Request request;
    Mpi::irecv(other_.data(), bytes, peer_, kTag + tag, comm_, &request);
    finish(request);
  }

  /// Gives rank 0's value to its partner.
  template <typename T>
  T agreed(T value) {
    std::memcpy(buffer_.data(), &value, sizeof value);
    if (rank_ == 0) send(sizeof value, 4);
    else receive(sizeof value, 4), std::memcpy(&value, other_.data(), sizeof value);
    return value;
  }

  /// The sizes and rounds that fit into `budget` nanoseconds on this network.
  Pace pace(double budget) {
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
    return agreed(out);
  }

  /// Half a round trip of messages of that size. Both ranks of the pair call it.
  double one_way(int bytes, int rounds) {
    std::vector<double> ns;
    for (int i = -2; i < std::max(kLeastRounds, rounds / hurry_); ++i) {
      const double begin = now_ns();
      if (rank_ == 0) send(bytes, 1), receive(bytes, 2);
      else receive(bytes, 1), send(bytes, 2);
      if (i >= 0) ns.push_back((now_ns() - begin) / 2);
    }
    return median(ns);
  }

  /// Messages of that size both ways at once.
  double both_ways(int bytes, int rounds) {
    std::vector<double> ns;
    for (int i = -1; i < std::max(kLeastRounds, rounds / hurry_); ++i) {
      meet();
      const double begin = now_ns();
      exchange(bytes);
      if (i >= 0) ns.push_back(now_ns() - begin);
    }
    return median(ns);
  }
  /// Both ranks of the pair leave at about the same time.
  void meet() {
    if (rank_ == 0) send(0, 8), receive(0, 8);
    else receive(0, 8), send(0, 8);
  }
  void exchange(int bytes) {
    MPI_Request out, in;
    Mpi::irecv(other_.data(), bytes, peer_, kTag + 9, comm_, &in);
    Mpi::isend(buffer_.data(), bytes, peer_, kTag + 9, comm_, &out);
    finish(in), finish(out);
  }

  /// Whether two messages of that size to each other take turns. `one`: the time of one. The partner posts its two a
  /// quarter of that later, while MPI makes progress. Measured, 128 KiB over TCP at 100 Mbit/s: 21.9 ms instead
  /// of 11.1; if both post at once, the messages share the time.
  bool take_turns(int bytes, double one) {
    std::vector<double> ns;
    one = agreed(one);
    for (int i = 0; i < kLeastRounds; ++i) {
      meet();
      const double begin = now_ns();
      if (rank_ == 0) {
        exchange(bytes);
        ns.push_back(now_ns() - begin);
        send(0, 10);
      } else {
        MPI_Request later;
        Mpi::irecv(other_.data(), 0, peer_, kTag + 10, comm_, &later);
        for (int done = 0; now_ns() < begin + one / 4;) Mpi::test(&later, &done);
        exchange(bytes);
        finish(later);
      }
    }
    // Derived: the middle between 1.25, if the messages share the time, and 2.
    return agreed(rank_ == 0 && median(ns) > 1.6 * one);
  }

  /// Whether a send of that size completes while the partner sleeps. The partner receives afterwards. Both ranks of the
  /// pair return the same value. Derived: the sender tests for 3 ms of the partner's 10 ms of sleep, so a late timer
  /// makes no difference.
  bool eager(int bytes) {
    int completed = 0;
    if (rank_ == 0) {
      MPI_Request request;
      Mpi::isend(buffer_.data(), bytes, peer_, kTag + 3, comm_, &request);
      const double until = now_ns() + 3e6;
      while (!completed && now_ns() < until) Mpi::test(&request, &completed);
      if (!completed) finish(request);
    } else {
      const timespec nap{0, 10'000'000};
      nanosleep(&nap, nullptr);
      receive(bytes, 3);
    }
    return agreed(completed) != 0;
  }

  /// Times per message of a train of small ones: `processor` of the sender's processor, `port` until it has arrived.
  void train(int rounds, double& processor, double& port) {
    std::vector<double> cpu, gap;
    std::vector<MPI_Request> requests(kMessages);
    for (int round = 0; round < std::max(kLeastRounds, rounds / hurry_); ++round) {
      if (rank_ == 0) {
        receive(0, 5);
        const double begin = now_ns();
        for (auto& r : requests) Mpi::isend(buffer_.data(), 8, peer_, kTag + 6, comm_, &r);
        cpu.push_back((now_ns() - begin) / kMessages);
        for (auto& r : requests) finish(r);
        receive(0, 7);
        gap.push_back((now_ns() - begin) / kMessages);
      } else {
        for (auto& r : requests) Mpi::irecv(other_.data(), 8, peer_, kTag + 6, comm_, &r);
        send(0, 5);
        for (auto& r : requests) finish(r);
        send(0, 7);
      }
    }
    if (rank_ != 0) return;
    processor = median(cpu);
    port = median(gap);
  }

  Figures pair(double budget) {
    Figures f;
    const Pace p = pace(budget);
    for (int bytes = 1024; bytes <= p.most_eager && eager(bytes); bytes *= 2) f.eager_bytes = bytes;
    const double small = one_way(1, p.small_rounds), quarter = one_way(p.half / 2, p.rounds),
                 half = one_way(p.half, p.rounds);
    f.beta = std::max(0.0, (both_ways(p.half, p.rounds) - both_ways(p.half / 2, p.rounds)) / (p.half - p.half / 2));
    f.turns = take_turns(p.half / 2, quarter);
    train(p.trains, f.overhead, f.alpha);
    // The latency: the time of a single small message without the overhead of both processors.
    f.latency = std::max(0.0, small - 2 * f.overhead);
    f.alpha = std::max(0.0, f.alpha - f.overhead);
    f.rendezvous = std::max(f.latency, quarter - (half - quarter) - 2 * f.overhead);
    return f;
  }

  void local(core::Network& out) {
    std::vector<double> gammas, copies;
    auto* a = reinterpret_cast<float*>(buffer_.data());
    auto* b = reinterpret_cast<float*>(other_.data());
    // Derived: 1 MiB per operand, half of a buffer, does not fit into a first-level cache.
    constexpr int kFloats = 1 << 18;
    for (int i = 0; i < kFloats; ++i) a[i] = b[i] = 1;
    for (int i = 0; i < 15; ++i) {  // the median is right with 7 disturbed rounds
      double begin = now_ns();
      Mpi::reduce_local(a, b, kFloats);
      gammas.push_back((now_ns() - begin) / (4.0 * kFloats));
      begin = now_ns();
      std::memcpy(b, a, 4 * kFloats);
      copies.push_back((now_ns() - begin) / (4.0 * kFloats));
    }
    out.gamma_ns_per_byte = median(gammas), out.copy_ns_per_byte = median(copies);
  }

  static constexpr int kTag = 4064;  // in the context of MPI_COMM_WORLD, beyond the channels of shim/tags.hpp
  MPI_Comm comm_;
  int rank_, size_, hurry_, peer_ = 0;
  bool yielding_;
  std::vector<char> buffer_, other_;
};

}  // namespace latecomer::shim
