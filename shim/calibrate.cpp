// SPDX-License-Identifier: BSD-3-Clause
// latecomer-calibrate: an MPI program of its own that measures the figures of the network model between
// rank 0 and each of up to eight others, and prints the medians as the policy's `network` object. Started by
// `latecomer calibrate`. Links MPI; no part of the preload.
//
// Hockney's model with the rest of core/model/network.hpp, each figure from the experiment that shows it
// alone: latency and its rendezvous form from round trips, beta from the slope between two large sizes, the
// eager threshold from whether a send completes while nobody receives, alpha and overhead from a train of
// small messages, gamma and copy from local loops.
#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int rank, size, peer;
bool yielding;
std::vector<char> buffer, other;

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void finish(MPI_Request& request) {
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done && yielding) sched_yield();
  }
}
void send(int bytes, int tag) {
  MPI_Request request;
  MPI_Isend(buffer.data(), bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
  finish(request);
}
void receive(int bytes, int tag) {
  MPI_Request request;
  MPI_Irecv(other.data(), bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
  finish(request);
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Half a round trip of messages of that size; both ranks of the pair call it.
double one_way(int bytes, int rounds) {
  std::vector<double> ns;
  for (int i = -2; i < rounds; ++i) {
    const double begin = now_ns();
    if (rank == 0) send(bytes, 1), receive(bytes, 2);
    else receive(bytes, 1), send(bytes, 2);
    if (i >= 0) ns.push_back((now_ns() - begin) / 2);
  }
  return median(ns);
}

/// Whether a send of that size completes while the other side does nothing: it sleeps, then receives. Both
/// ranks of the pair return the same.
bool eager(int bytes) {
  int completed = 0;
  if (rank == 0) {
    MPI_Request request;
    MPI_Isend(buffer.data(), bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &request);
    const double until = now_ns() + 3e6;
    while (!completed && now_ns() < until) MPI_Test(&request, &completed, MPI_STATUS_IGNORE);
    const bool early = completed != 0;
    if (!early) finish(request);
    completed = early;
    MPI_Send(&completed, 1, MPI_INT, peer, 4, MPI_COMM_WORLD);
  } else {
    const timespec nap{0, 10'000'000};
    nanosleep(&nap, nullptr);
    receive(bytes, 3);
    MPI_Recv(&completed, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return completed != 0;
}

/// Time per message of a train of small ones, as long as it keeps the sender's processor, and as long as it
/// takes to arrive.
void train(double& processor, double& port) {
  constexpr int kMessages = 200;
  std::vector<double> cpu, gap;
  std::vector<MPI_Request> requests(kMessages);
  for (int round = 0; round < 9; ++round) {
    if (rank == 0) {
      receive(0, 5);
      const double begin = now_ns();
      for (auto& r : requests) MPI_Isend(buffer.data(), 8, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &r);
      cpu.push_back((now_ns() - begin) / kMessages);
      for (auto& r : requests) finish(r);
      receive(0, 7);
      gap.push_back((now_ns() - begin) / kMessages);
    } else {
      for (auto& r : requests) MPI_Irecv(other.data(), 8, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &r);
      send(0, 5);
      for (auto& r : requests) finish(r);
      send(0, 7);
    }
  }
  if (rank != 0) return;
  processor = median(cpu);
  port = median(gap);
}

struct Figures {
  double latency, rendezvous, beta, alpha, overhead;
  long eager_bytes;
};

Figures measure() {
  Figures f{};
  constexpr int kLarge = 1 << 22, kHalf = 1 << 21, kMost = 1 << 20;
  long last_eager = 0;
  for (int bytes = 1024; bytes <= kMost && eager(bytes); bytes *= 2) last_eager = bytes;
  const double small = one_way(1, 200), half = one_way(kHalf, 15), large = one_way(kLarge, 15);
  f.eager_bytes = last_eager;
  f.beta = std::max(0.0, (large - half) / (kLarge - kHalf));
  train(f.overhead, f.alpha);
  // A message in flight: what a lone small one takes beside the processors at both ends.
  f.latency = std::max(0.0, small - 2 * f.overhead);
  f.alpha = std::max(0.0, f.alpha - f.overhead);
  f.rendezvous = std::max(f.latency, half - f.beta * kHalf - 2 * f.overhead);
  return f;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  yielding = argc > 1 && std::strcmp(argv[1], "yield") == 0;
  buffer.resize(1 << 22), other.resize(1 << 22);
  if (size < 2) {
    if (rank == 0) std::fprintf(stderr, "latecomer-calibrate: needs at least two ranks\n");
    MPI_Finalize();
    return 2;
  }
  std::vector<Figures> all;
  // Partners spread over the job; the others sleep, so that they do not take the cores.
  const int partners = std::min(8, size - 1);
  for (int i = 0; i < partners; ++i) {
    const int with = 1 + static_cast<int>(static_cast<long>(i) * (size - 1) / partners);
    if (rank == 0 || rank == with) {
      peer = rank == 0 ? with : 0;
      const Figures f = measure();
      if (rank == 0) all.push_back(f);
    }
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
      const timespec nap{0, 1'000'000};
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (!done) nanosleep(&nap, nullptr);
    }
  }
  if (rank == 0) {
    const auto of = [&](double Figures::*field) {
      std::vector<double> v;
      for (const Figures& f : all) v.push_back(f.*field);
      return median(v);
    };
    std::vector<double> gammas, copies;
    auto* a = reinterpret_cast<float*>(buffer.data());
    auto* b = reinterpret_cast<float*>(other.data());
    constexpr int kFloats = 1 << 18;
    for (int i = 0; i < kFloats; ++i) a[i] = b[i] = 1;
    for (int i = 0; i < 15; ++i) {
      double begin = now_ns();
      MPI_Reduce_local(a, b, kFloats, MPI_FLOAT, MPI_SUM);
      gammas.push_back((now_ns() - begin) / (4.0 * kFloats));
      begin = now_ns();
      std::memcpy(b, a, 4 * kFloats);
      copies.push_back((now_ns() - begin) / (4.0 * kFloats));
    }
    std::vector<double> thresholds;
    for (const Figures& f : all) thresholds.push_back(static_cast<double>(f.eager_bytes));
    std::printf("{\"alpha_us\": %.3f, \"beta_ns_per_byte\": %.4f, \"gamma_ns_per_byte\": %.4f, \"copy_ns_per_byte\": %.4f, \"latency_us\": %.3f, "
                "\"rendezvous_latency_us\": %.3f, \"overhead_us\": %.3f, \"eager\": %ld, \"ports\": 1}\n",
                of(&Figures::alpha) / 1e3, of(&Figures::beta), median(gammas), median(copies), of(&Figures::latency) / 1e3, of(&Figures::rendezvous) / 1e3,
                of(&Figures::overhead) / 1e3, static_cast<long>(median(thresholds)));
  }
  MPI_Finalize();
  return 0;
}
