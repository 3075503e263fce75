// SPDX-License-Identifier: BSD-3-Clause
// The cost of an observed call compared with a bare pass-through wrapper. Both wrap an allreduce that does nothing
// (null_collectives.c), and both are measured alternately in one run. Run it through tests/bench/overhead, which
// prepares it.
// Usage: overhead TITLE [tight]: tight loops, for a policy without epochs, instead of bursts after a pause
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "sites.hpp"

extern "C" __attribute__((weak)) int bare_allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
extern "C" __attribute__((weak)) int bare_rsend(const void*, int, MPI_Datatype, int, int, MPI_Comm);
extern "C" __attribute__((weak)) int bare_irsend(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
extern "C" __attribute__((weak)) int bare_waitany(int, MPI_Request*, int*, MPI_Status*);
extern "C" __attribute__((weak)) int least_allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

namespace {

double in = 1, out;

struct Observed {
  [[gnu::always_inline]] int operator()() const {
    return MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
};
struct Bare {
  [[gnu::always_inline]] int operator()() const {
    return bare_allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
};
struct Least {
  [[gnu::always_inline]] int operator()() const {
    return least_allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
};
constexpr Site least = site<Least, 1>;

double seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Nanoseconds per call through the sites of `order`, in sequence.
[[gnu::noinline]] double batch(const std::vector<Site>& order) {
  const double begin = seconds();
  for (const Site site : order) site();
  return (seconds() - begin) / static_cast<double>(order.size()) * 1e9;
}

/// Several batches from one place: a site may be several frames deep.
[[gnu::noinline]] std::vector<double> batches(const std::vector<const std::vector<Site>*>& orders) {
  std::vector<double> out;
  for (const auto* order : orders) out.push_back(batch(*order));
  return out;
}

/// The number of collectives so far. Epochs count these calls.
long n = 0;
void barrier() {
  MPI_Barrier(MPI_COMM_WORLD);
  ++n;
}

/// The ranks measure alternately, because hardware threads of one core slow each other down.
void wait_turn(int from) {
  for (int there = 0; !there;) {
    const timespec nap{0, 20'000};
    MPI_Iprobe(from, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    if (!there) nanosleep(&nap, nullptr);
  }
  MPI_Recv(nullptr, 0, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
void give_turn(int to) { MPI_Send(nullptr, 0, MPI_INT, to, 0, MPI_COMM_WORLD); }

double clock_pair() {
  double ns[2000], sink = 0;
  for (double& v : ns) {
    const double begin = seconds();
    for (int i = 0; i < 10; ++i) sink += seconds();
    v = (seconds() - begin) * 1e9 / 5;
  }
  asm volatile("" : : "r"(&sink));
  std::sort(std::begin(ns), std::end(ns));
  return ns[1000];
}

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1))];
}
double median(const std::vector<double>& v) { return quantile(v, 0.5); }

/// The difference between batches that were measured alternately. Where hardware threads share a core, other work
/// halves its speed for tenths of a second at a time. The tenth percentile shows the core without other work.
std::string added(const std::vector<double>& ours, const std::vector<double>& plain) {
  std::vector<double> more;
  for (std::size_t i = 0; i < ours.size(); ++i) more.push_back(ours[i] - plain[i]);
  char text[80];
  std::snprintf(text, sizeof text, "%6.1f ns (10%%: %6.1f, 90%%: %6.1f)", median(more), quantile(more, 0.1),
                quantile(more, 0.9));
  return text;
}

}  // namespace

MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
int first = 0;
int send() { return MPI_Rsend(&in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD); }
int send_bare() { return bare_rsend(&in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD); }
int start() { return MPI_Irsend(&in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, requests); }
int start_bare() { return bare_irsend(&in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, requests); }
int complete() { return MPI_Waitany(2, requests, &first, MPI_STATUS_IGNORE); }
int complete_bare() { return bare_waitany(2, requests, &first, MPI_STATUS_IGNORE); }

/// The time added to a blocking message, to the start of one and to a completion, in the same way as tight().
void messages(const char* title) {
  constexpr int kBatches = 2'000;  // chosen, not measured: less than a second
  for (const auto& [name, with, without] :
       {std::tuple{"message", &send, &send_bare}, std::tuple{"start", &start, &start_bare},
        std::tuple{"completion", &complete, &complete_bare}}) {
    const std::vector<Site> ours(2000, with), bare(2000, without);
    std::vector<double> observed_ns, bare_ns;
    for (int b = 0; b < kBatches; ++b) {
      observed_ns.push_back(batch(ours));
      bare_ns.push_back(batch(bare));
    }
    std::printf("%-10s %-10s wrapper %5.1f ns  added %s\n", title, name, median(bare_ns),
                added(observed_ns, bare_ns).c_str());
  }
}

/// Alternates for some seconds between a loop of 2,000 calls from one place and the same loop through the bare wrapper.
void tight(int rank, const char* title, Site with, Site without) {
  constexpr int kBatches = 20'000;  // chosen, not measured: some seconds
  const std::vector<Site> ours(2000, with), bare(2000, without), floor(2000, least);
  std::vector<double> observed_ns, bare_ns, floor_ns;
  if (rank == 1) wait_turn(0);
  for (int b = 0; b < kBatches; ++b) {
    observed_ns.push_back(batch(ours));
    bare_ns.push_back(batch(bare));
    floor_ns.push_back(batch(floor));
  }
  std::printf("%-10s %-7s tight loop  wrapper %5.1f ns  added %s; the least %s\n", title,
              rank == 0 ? "leader" : "member", median(bare_ns), added(observed_ns, bare_ns).c_str(),
              added(floor_ns, bare_ns).c_str());
  messages(title);
  std::fflush(stdout);
  if (rank == 0) give_turn(1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!bare_allreduce) MPI_Abort(MPI_COMM_WORLD, 3);
  const auto with = make_sites<Observed>(), without = make_sites<Bare>();
  if (argc > 2) {
    tight(rank, argv[1], with[0], without[0]);
    MPI_Finalize();
    return 0;
  }
  std::mt19937 random(7);
  if (rank == 0)
    std::printf("%-10s for scale: two readings of clock_gettime take %.1f ns here\n", argc > 1 ? argv[1] : "",
                clock_pair());
  for (const int sites : {1, kSites}) {
    // An epoch has 128 calls. 48 calls warm up after a pause, the median covers the next 64 between two ends of epochs,
    // and the mean also covers the 128th. That call sends the log to the leader, which processes it and writes the
    // snapshot.
    constexpr int kWarm = 48, kCalls = 64, kEpoch = 128, kBatches = 1500;
    std::vector<double> ours, plain, floor;
    double all_ours = 0, all_plain = 0;
    while (n % kEpoch != 4) barrier();
    for (int b = 0; b < kBatches; ++b) {
      std::vector<Site> warm, order_with, order_without, order_least(kCalls, least), rest;
      for (int i = 0; i < kEpoch - 1; ++i) {
        const auto pick = static_cast<std::size_t>(random() % static_cast<unsigned>(sites));
        (i < kWarm ? warm : i < kWarm + kCalls ? order_with : rest).push_back(with[pick]);
        if (i >= kWarm && i < kWarm + kCalls) order_without.push_back(without[pick]);
      }
      if (rank == 1 || b > 0) wait_turn(1 - rank);
      // Alternate the order of the bare wrapper and latecomer.
      const bool first = b % 2 != 0;
      const auto ns = first ? batches({&warm, &order_without, &order_with, &rest, &order_least})
                            : batches({&warm, &order_with, &rest, &order_without, &order_least});
      const double warm_ns = ns[0], with_ns = ns[first ? 2 : 1], rest_ns = ns[first ? 3 : 2],
                   without_ns = ns[first ? 1 : 3], least_ns = ns[4];
      n += kEpoch - 1;
      give_turn(1 - rank);
      if (rank == 0 && b == kBatches - 1) wait_turn(1);
      ++n;
      MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // the 128th
      if (b < kBatches / 4) continue;
      ours.push_back(with_ns);
      plain.push_back(without_ns);
      floor.push_back(least_ns);
      all_ours += (warm_ns * kWarm + with_ns * kCalls + rest_ns * (kEpoch - 1 - kCalls - kWarm)) / (kEpoch - 1) /
                  (kBatches - kBatches / 4);
      all_plain += without_ns / (kBatches - kBatches / 4);
    }
    for (int turn = 0; turn < 2; ++turn) {
      if (rank == turn) {
        std::printf(
            "%-10s %-7s %4d site%s  wrapper %5.1f ns  added %s; the least %s; mean with epochs: added %6.1f ns\n",
            argc > 1 ? argv[1] : "", rank == 0 ? "leader" : "member", sites, sites == 1 ? " " : "s", median(plain),
            added(ours, plain).c_str(), added(floor, plain).c_str(), all_ours - all_plain);
        std::fflush(stdout);
      }
      barrier();
    }
  }
  MPI_Finalize();
  return 0;
}
