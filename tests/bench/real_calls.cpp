// SPDX-License-Identifier: BSD-3-Clause
// Prints the mean time in nanoseconds of calls on two ranks. Rank 0 measures. Without arguments, these are an allreduce
// of 8 B, a broadcast and a round trip of one message. tests/bench/overhead runs it natively and observed, in turns.
// tests/bench/budget names one kind of call.
// Usage: real_calls [KIND [CALLS]]
//   allreduce, bcast, barrier, message (a round trip), exchange (two non-blocking messages each way): tight loops, 8 B
//   sites: allreduces at a thousand sites in random order
//   uneven: allreduces at eight sites, before which each rank computes for a random time
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "sites.hpp"

namespace {

double in = 1, out = 0;
int rank = 0;

struct Allreduce {
  [[gnu::always_inline]] int operator()() const {
    return MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
};
struct Bcast {
  [[gnu::always_inline]] int operator()() const { return MPI_Bcast(&in, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
};
struct Barrier {
  [[gnu::always_inline]] int operator()() const { return MPI_Barrier(MPI_COMM_WORLD); }
};

void round_trip() {
  if (rank == 0) {
    MPI_Send(&in, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Request receive, send;
    MPI_Irecv(&in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Isend(&in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}

void exchange() {
  if (rank > 1) return;
  double there[2];
  MPI_Request requests[4];
  for (int i = 0; i < 2; ++i) MPI_Irecv(&there[i], 1, MPI_DOUBLE, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < 2; ++i) MPI_Isend(&in, 1, MPI_DOUBLE, 1 - rank, i, MPI_COMM_WORLD, &requests[2 + i]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

constexpr std::array<Site, kSites> sites = make_sites<Allreduce>();

void call_any_site() {
  static std::minstd_rand random(7);  // the same order on all ranks
  sites[random() % kSites]();
}

void compute(double seconds) {
  for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {
  }
}

/// Before site k, each rank computes for a mean of k microseconds, exponentially distributed. Before site 0 it computes
/// for 100 us in a thousandth of the calls.
void call_unevenly() {
  static std::minstd_rand random(static_cast<unsigned>(7 + rank));
  static unsigned turn = 0;
  const unsigned k = turn++ % 8;
  const double share = (random() - std::minstd_rand::min() + 0.5) / double(std::minstd_rand::max());
  compute(k > 0 ? -1e-6 * k * std::log(share) : share < 1e-3 ? 100e-6 : 0);
  sites[k]();
}

template <typename Call>
double time_calls(long calls, Call call) {
  constexpr long kWarm = 1000;  // chosen, not measured
  double begin = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = -kWarm; i < calls; ++i) {
    if (i == 0) begin = MPI_Wtime();
    call();
  }
  return 1e9 * (MPI_Wtime() - begin) / static_cast<double>(calls);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr long kCalls = 1000000, kTrips = 300000;  // chosen, not measured: less than a second each
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::map<std::string, double (*)(long)> kinds = {
      {"allreduce", [](long calls) { return time_calls(calls, site<Allreduce, kSites>); }},
      {"bcast", [](long calls) { return time_calls(calls, site<Bcast, kSites>); }},
      {"barrier", [](long calls) { return time_calls(calls, site<Barrier, kSites>); }},
      {"message", [](long calls) { return time_calls(calls, round_trip); }},
      {"exchange", [](long calls) { return time_calls(calls, exchange); }},
      {"sites", [](long calls) { return time_calls(calls, call_any_site); }},
      {"uneven", [](long calls) { return time_calls(calls, call_unevenly); }}};
  if (argc == 1) {
    const double allreduce = kinds.at("allreduce")(kCalls), bcast = kinds.at("bcast")(kCalls);
    const double trip = kinds.at("message")(kTrips);
    if (rank == 0) std::printf("%.0f %.0f %.0f\n", allreduce, bcast, trip);
  } else {
    const auto kind = kinds.find(argv[1]);
    const long calls = argc > 2 ? std::atol(argv[2]) : kCalls;
    if (kind == kinds.end() || calls < 1) MPI_Abort(MPI_COMM_WORLD, 2);
    const double mean = kind->second(calls);
    if (rank == 0) std::printf("%.2f\n", mean);
  }
  MPI_Finalize();
  return 0;
}
