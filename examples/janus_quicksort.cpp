// SPDX-License-Identifier: BSD-3-Clause
// Janus Quicksort on range communicators and on MPI communicators, in one program.
// Usage: janus_quicksort check            every shape of input, both kinds of communicators
//        janus_quicksort time [most]      times for n / P = 1, 4, ... elements per process, interleaved
#include "janus_quicksort.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace {

int rank, size;

/// A comparable type that is not a number.
struct Record {
  float key;
  int origin;
  bool operator<(const Record& o) const { return key < o.key || (key == o.key && origin < o.origin); }
};

std::uint64_t hash(const void* data, std::size_t bytes) {
  std::uint64_t h = 14695981039346656037u;
  for (std::size_t i = 0; i < bytes; ++i) h = (h ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  return h;
}

/// Whether the output is the sorted and balanced input. Collective.
template <typename T>
bool right(const std::vector<T>& in, const std::vector<T>& out) {
  std::uint64_t sums[2] = {0, 0}, all[2];
  for (const T& x : in) sums[0] += hash(&x, sizeof x);
  for (const T& x : out) sums[1] += hash(&x, sizeof x);
  MPI_Allreduce(sums, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  long long n = static_cast<long long>(in.size()), total = 0;
  MPI_Allreduce(&n, &total, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  bool ok = all[0] == all[1] && static_cast<long long>(out.size()) == total / size + (rank < total % size);
  ok = ok && std::is_sorted(out.begin(), out.end());
  // The last element of each preceding process.
  std::vector<T> ends(static_cast<std::size_t>(size) * 2);
  std::vector<int> have(static_cast<std::size_t>(size));
  const int any = !out.empty();
  T mine[2] = {};
  if (any) {
    mine[0] = out.front();
    mine[1] = out.back();
  }
  MPI_Allgather(mine, 2 * sizeof(T), MPI_BYTE, ends.data(), 2 * sizeof(T), MPI_BYTE, MPI_COMM_WORLD);
  MPI_Allgather(&any, 1, MPI_INT, have.data(), 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 1; r < size; ++r)
    if (have[static_cast<std::size_t>(r)])
      ok = ok && !(ends[static_cast<std::size_t>(2 * r)] < ends[static_cast<std::size_t>(2 * r - 1)]);
  int wrong = !ok, anywhere = 0;
  MPI_Allreduce(&wrong, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return anywhere == 0;
}

std::vector<double> input(const std::string& shape, long long n, unsigned seed) {
  std::mt19937_64 random(seed * 1000 + static_cast<unsigned>(rank));
  const long long mine = shape == "one_rank" ? (rank == 0 ? n : 0) : n / size + (rank < n % size),
                  before = rank * (n / size) + std::min<long long>(rank, n % size);
  std::vector<double> out;
  for (long long i = 0; i < mine; ++i)
    out.push_back(shape == "few"        ? static_cast<double>(random() % 4)
                  : shape == "constant" ? 7.0
                  : shape == "sorted"   ? static_cast<double>(before + i)
                  : shape == "reversed" ? static_cast<double>(n - before - i)
                  // The first half of the processes has few small elements, and the others have only small ones. In the
                  // order of the senders, the first receiver gets a message from all of the others.
                  : shape == "scattered"
                      ? static_cast<double>(random() >> 2) + (rank < (size + 1) / 2 && i % 16 != 0 ? 0x1p62 : 0.0)
                      : static_cast<double>(random()));
  return out;
}

int check(const latecomer::range::Comm& world) {
  int failures = 0, cases = 0, most[2] = {0, 0};
  const auto count = [&](bool ok, const char* kind, const std::string& shape, long long n) {
    ++cases;
    if (ok) return;
    ++failures;
    if (rank == 0) std::printf("%s: %s, n = %lld on %d ranks is wrong\n", kind, shape.c_str(), n, size);
  };
  using janus::Assignment;
  for (const char* shape : {"uniform", "few", "constant", "sorted", "reversed", "one_rank", "scattered"})
    for (const long long n :
         {0LL, 1LL, 3LL, static_cast<long long>(size), 100LL * size, 1000LL * size + 3, 7003LL, 700LL}) {
      const auto in = input(shape, n, static_cast<unsigned>(n));
      count(right(in, janus::Sorter<janus::MpiComms, double>::sort(MPI_COMM_WORLD, in)), "MPI communicators", shape, n);
      for (const Assignment assignment : {Assignment::greedy, Assignment::deterministic}) {
        janus::Statistics statistics;
        const bool greedy = assignment == Assignment::greedy;
        count(right(in, janus::Sorter<janus::Ranges, double>::sort(world, in, assignment, 1, &statistics)),
              greedy ? "ranges, greedy" : "ranges, deterministic", shape, n);
        int worst[3] = {statistics.most_received, statistics.over, statistics.most_sent};
        MPI_Allreduce(MPI_IN_PLACE, worst, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (std::string(shape) == "scattered" && n == 1000LL * size + 3) most[!greedy] = worst[0];
        if (!greedy) count(worst[1] == 0 && worst[2] <= 8, "more messages than promised", shape, n);
      }
    }
  std::vector<Record> records;
  records.reserve(static_cast<std::size_t>(500 + rank));
  std::mt19937 random(static_cast<unsigned>(rank));
  for (int i = 0; i < 500 + rank; ++i) records.push_back({static_cast<float>(random() % 50), rank});
  count(right(records, janus::Sorter<janus::Ranges, Record>::sort(world, records)), "ranges", "records", 0);
  if (rank == 0)
    std::printf("most messages of one part that a process received, scattered input: greedy %d, deterministic %d\n",
                most[0], most[1]);
  if (rank == 0 && failures == 0) std::printf("sorted and in balance: %d cases on %d ranks\n", cases, size);
  return failures != 0;
}

void time_both(const latecomer::range::Comm& world, long long most) {
  if (rank == 0)
    std::printf("Janus Quicksort, %d ranks, medians of interleaved runs\n%10s %14s %14s %14s %8s %8s\n", size, "n / P",
                "ranges, ms", "determ., ms", "MPI, ms", "ratio", "levels");
  for (long long each = 1; each <= most; each *= 4) {
    std::vector<double> times[3];
    janus::Statistics statistics;
    const int rounds = each <= 4096 ? 25 : each <= 262144 ? 9 : 5;
    for (int round = 0; round < rounds; ++round)
      for (const int kind : {round % 3, (round + 1) % 3, (round + 2) % 3}) {
        const auto in = input("uniform", each * size, static_cast<unsigned>(round));
        MPI_Barrier(MPI_COMM_WORLD);
        const double before = MPI_Wtime();
        const auto assignment = kind == 1 ? janus::Assignment::deterministic : janus::Assignment::greedy;
        const auto out = kind == 2 ? janus::Sorter<janus::MpiComms, double>::sort(MPI_COMM_WORLD, in)
                                   : janus::Sorter<janus::Ranges, double>::sort(world, in, assignment, 1, &statistics);
        double took = MPI_Wtime() - before, longest = 0;
        MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        times[kind].push_back(longest);
        if (!right(in, out)) {
          std::fprintf(stderr, "wrong\n");
          MPI_Abort(MPI_COMM_WORLD, 1);
        }
      }
    double medians[3];
    for (const int kind : {0, 1, 2}) {
      std::nth_element(times[kind].begin(), times[kind].begin() + rounds / 2, times[kind].end());
      medians[kind] = times[kind][static_cast<std::size_t>(rounds / 2)] * 1e3;
    }
    if (rank == 0)
      std::printf("%10lld %14.3f %14.3f %14.3f %8.2f %8d\n", each, medians[0], medians[1], medians[2],
                  medians[0] / medians[2], statistics.levels);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  latecomer::range::Comm world;
  world.attach(MPI_COMM_WORLD);
  const std::string what = argc > 1 ? argv[1] : "check";
  int result = 0;
  if (what == "check") result = check(world);
  else if (what == "time") time_both(world, argc > 2 ? std::atoll(argv[2]) : 16384);
  else if (rank == 0) {
    result = 2;
    std::fprintf(stderr, "janus_quicksort: unknown '%s'; valid: check time\n", what.c_str());
  }
  MPI_Finalize();
  return result;
}
