// SPDX-License-Identifier: BSD-3-Clause
// Range communicators and MPI communicators: creation, collectives on all ranks, and a broadcast on the created half.
// Prints medians of interleaved rounds; the time of a round is that of the slowest rank. Run it through
// tests/bench/ranges, which makes both sides yield. `ranges_bench messages`, with libcount_messages.so preloaded,
// prints the messages that each rank sends instead of times. `ranges_bench short` ends with vectors of 1 KiB.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <latecomer/range.hpp>
#include <string>
#include <vector>

namespace {

int rank, size;
latecomer::range::Comm world;

using Work = std::function<void()>;

/// The longest vectors.
int most_bytes = 1 << 20;

/// Medians of each way in microseconds per call, interleaved.
std::vector<double> compare(const std::vector<Work>& ways, int rounds, int calls) {
  std::vector<std::vector<double>> times(ways.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t k = 0; k < ways.size(); ++k) {
      const std::size_t way = (k + static_cast<std::size_t>(round)) % ways.size();
      MPI_Barrier(MPI_COMM_WORLD);
      const double before = MPI_Wtime();
      for (int i = 0; i < calls; ++i) ways[way]();
      double took = MPI_Wtime() - before, longest = 0;
      MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      times[way].push_back(longest * 1e6 / calls);
    }
  std::vector<double> out;
  for (auto& t : times) {
    std::nth_element(t.begin(), t.begin() + rounds / 2, t.end());
    out.push_back(t[static_cast<std::size_t>(rounds / 2)]);
  }
  return out;
}

long long (*messages_sent)() = nullptr;

/// Messages per call of each way: of the rank that sends most, and the mean.
struct Messages {
  long long most;
  double mean;
};
Messages count(const Work& way) {
  way();  // work that is done only once
  MPI_Barrier(MPI_COMM_WORLD);
  const long long before = messages_sent();
  way();
  const long long sent = messages_sent() - before;
  Messages out{};
  long long all = 0;
  MPI_Allreduce(&sent, &out.most, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&sent, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  out.mean = static_cast<double>(all) / size;
  return out;
}

void creation() {
  const int half = std::max(1, size / 2);
  const bool member = rank < half;
  MPI_Group all, some;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  int triple[1][3] = {{0, half - 1, 1}};
  MPI_Group_range_incl(all, 1, triple, &some);
  const auto drop = [](MPI_Comm c) {
    if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
  };
  volatile int sink = 0;
  const auto times = compare({[&] {
                                for (int i = 0; i < 1000; ++i) sink = sink + world.part(0, half - 1).size();
                              },
                              [&] {
                                MPI_Comm c = MPI_COMM_NULL;
                                MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, rank, &c);
                                drop(c);
                              },
                              [&] {
                                MPI_Comm c = MPI_COMM_NULL;
                                if (member) MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &c);
                                drop(c);
                              },
                              [&] {
                                MPI_Comm c = MPI_COMM_NULL;
                                MPI_Comm_create(MPI_COMM_WORLD, some, &c);
                                drop(c);
                              }},
                             15, 20);
  if (rank == 0)
    std::printf(
        "creation of the first half, us: range %.4f, Comm_split %.1f, Comm_create_group %.1f, Comm_create %.1f\n",
        times[0] / 1000, times[1], times[2], times[3]);
  for (const int calls : {1, 50}) {
    int value = rank;
    const auto both = compare({[&] {
                                 if (!member) return;
                                 const auto c = world.part(0, half - 1);
                                 for (int i = 0; i < calls; ++i) c.bcast(&value, 1, MPI_INT, 0);
                               },
                               [&] {
                                 if (!member) return;
                                 MPI_Comm c;
                                 MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &c);
                                 for (int i = 0; i < calls; ++i) MPI_Bcast(&value, 1, MPI_INT, 0, c);
                                 MPI_Comm_free(&c);
                               }},
                              25, 10);
    if (rank == 0)
      std::printf("creation of the first half and %d broadcasts of 4 B there, us: range %.1f, MPI %.1f (%.2fx)\n",
                  calls, both[0], both[1], both[0] / both[1]);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&some);
}

void collectives() {
  if (rank == 0 && messages_sent)
    std::printf("messages sent per call: of the rank that sends most (mean over ranks)\n%-22s %10s %16s %16s\n",
                "collective", "bytes", "range", "MPI");
  else if (rank == 0) std::printf("%-22s %10s %12s %12s %7s\n", "collective", "bytes", "range, us", "MPI, us", "ratio");
  const auto row = [](const char* name, int bytes, const std::vector<Work>& ways, int rounds, int calls) {
    if (messages_sent) {
      const Messages ours = count(ways[0]), theirs = count(ways[1]);
      if (rank == 0)
        std::printf("%-22s %10d %8lld (%5.2f) %8lld (%5.2f)\n", name, bytes, ours.most, ours.mean, theirs.most,
                    theirs.mean);
      return;
    }
    const auto t = compare(ways, rounds, calls);
    if (rank == 0) std::printf("%-22s %10d %12.1f %12.1f %7.2f\n", name, bytes, t[0], t[1], t[0] / t[1]);
  };
  row("barrier", 0, {[] { world.barrier(); }, [] { MPI_Barrier(MPI_COMM_WORLD); }}, 41, 50);
  for (const int bytes : {8, 1024, 65536, 1 << 20}) {
    if (bytes > most_bytes) break;
    const int n = bytes / 8,
              rounds = bytes > 65536  ? 7
                       : bytes > 1024 ? 15
                                      : 41,
              calls = bytes > 65536  ? 3
                      : bytes > 1024 ? 10
                                     : 50;
    std::vector<double> in(static_cast<std::size_t>(n) * static_cast<std::size_t>(size), 1.0), out(in.size());
    double *a = in.data(), *b = out.data();
    row("bcast", bytes,
        {[=] { world.bcast(a, n, MPI_DOUBLE, 0); }, [=] { MPI_Bcast(a, n, MPI_DOUBLE, 0, MPI_COMM_WORLD); }}, rounds,
        calls);
    row("reduce", bytes,
        {[=] { world.reduce(a, b, n, MPI_DOUBLE, MPI_SUM, 0); },
         [=] { MPI_Reduce(a, b, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); }},
        rounds, calls);
    row("allreduce", bytes,
        {[=] { world.allreduce(a, b, n, MPI_DOUBLE, MPI_SUM); },
         [=] { MPI_Allreduce(a, b, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }},
        rounds, calls);
    row("scan", bytes,
        {[=] { world.scan(a, b, n, MPI_DOUBLE, MPI_SUM); },
         [=] { MPI_Scan(a, b, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }},
        rounds, calls);
    row("exscan", bytes,
        {[=] { world.exscan(a, b, n, MPI_DOUBLE, MPI_SUM); },
         [=] { MPI_Exscan(a, b, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }},
        rounds, calls);
    // Elements of one block.
    const int each = std::max(1, n / size);
    row("gather", each * 8,
        {[=] { world.gather(a, each, MPI_DOUBLE, b, each, MPI_DOUBLE, 0); },
         [=] { MPI_Gather(a, each, MPI_DOUBLE, b, each, MPI_DOUBLE, 0, MPI_COMM_WORLD); }},
        rounds, calls);
    row("scatter", each * 8,
        {[=] { world.scatter(a, each, MPI_DOUBLE, b, each, MPI_DOUBLE, 0); },
         [=] { MPI_Scatter(a, each, MPI_DOUBLE, b, each, MPI_DOUBLE, 0, MPI_COMM_WORLD); }},
        rounds, calls);
    row("allgather", each * 8,
        {[=] { world.allgather(a, each, MPI_DOUBLE, b, each, MPI_DOUBLE); },
         [=] { MPI_Allgather(a, each, MPI_DOUBLE, b, each, MPI_DOUBLE, MPI_COMM_WORLD); }},
        rounds, calls);
    row("alltoall", each * 8,
        {[=] { world.alltoall(a, each, MPI_DOUBLE, b, each, MPI_DOUBLE); },
         [=] { MPI_Alltoall(a, each, MPI_DOUBLE, b, each, MPI_DOUBLE, MPI_COMM_WORLD); }},
        rounds, calls);
    row("reduce_scatter_block", each * 8,
        {[=] { world.reduce_scatter_block(a, b, each, MPI_DOUBLE, MPI_SUM); },
         [=] { MPI_Reduce_scatter_block(a, b, each, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }},
        rounds, calls);
  }
}

/// One call and its wait.
void non_blocking() {
  if (rank == 0) std::printf("%-22s %10s %12s %12s %7s\n", "non-blocking", "bytes", "range, us", "MPI, us", "ratio");
  std::vector<double> in(static_cast<std::size_t>(size), 1.0), out(in.size());
  double *a = in.data(), *b = out.data();
  latecomer::range::Request ours;
  MPI_Request theirs;
  const auto row = [&](const char* name, const Work& range, const Work& mpi) {
    const auto t = compare({[&] {
                              range();
                              latecomer_range_wait(&ours, MPI_STATUS_IGNORE);
                            },
                            [&] {
                              mpi();
                              MPI_Wait(&theirs, MPI_STATUS_IGNORE);
                            }},
                           25, 50);
    if (rank == 0) std::printf("%-22s %10d %12.1f %12.1f %7.2f\n", name, 8, t[0], t[1], t[0] / t[1]);
  };
  const MPI_Comm comm = MPI_COMM_WORLD;
  row(
      "ibarrier", [&] { world.ibarrier(&ours); }, [&] { MPI_Ibarrier(comm, &theirs); });
  row(
      "ibcast", [&] { world.ibcast(a, 1, MPI_DOUBLE, 0, &ours); },
      [&] { MPI_Ibcast(a, 1, MPI_DOUBLE, 0, comm, &theirs); });
  row(
      "ireduce", [&] { world.ireduce(a, b, 1, MPI_DOUBLE, MPI_SUM, 0, &ours); },
      [&] { MPI_Ireduce(a, b, 1, MPI_DOUBLE, MPI_SUM, 0, comm, &theirs); });
  row(
      "iallreduce", [&] { world.iallreduce(a, b, 1, MPI_DOUBLE, MPI_SUM, &ours); },
      [&] { MPI_Iallreduce(a, b, 1, MPI_DOUBLE, MPI_SUM, comm, &theirs); });
  row(
      "iscan", [&] { world.iscan(a, b, 1, MPI_DOUBLE, MPI_SUM, &ours); },
      [&] { MPI_Iscan(a, b, 1, MPI_DOUBLE, MPI_SUM, comm, &theirs); });
  row(
      "igather", [&] { world.igather(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, &ours); },
      [&] { MPI_Igather(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, comm, &theirs); });
  row(
      "iscatter", [&] { world.iscatter(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, &ours); },
      [&] { MPI_Iscatter(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, comm, &theirs); });
  row(
      "iallgather", [&] { world.iallgather(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, &ours); },
      [&] { MPI_Iallgather(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, comm, &theirs); });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  world.attach(MPI_COMM_WORLD);
  if (argc > 1 && std::string(argv[1]) == "short") most_bytes = 1024;
  if (argc > 1 && std::string(argv[1]) == "messages") {
    if (void* const counter = dlsym(RTLD_DEFAULT, "latecomer_bench_messages"))
      messages_sent = reinterpret_cast<long long (*)()>(counter);
    else {
      std::fprintf(stderr, "ranges_bench: 'messages' needs libcount_messages.so preloaded\n");
      return MPI_Abort(MPI_COMM_WORLD, 2);
    }
  } else {
    creation();
  }
  collectives();
  if (!messages_sent) non_blocking();
  MPI_Finalize();
  return 0;
}
