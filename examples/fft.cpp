// SPDX-License-Identifier: BSD-3-Clause
// The application of Proficz 2020, section 6: a parallel radix-2 FFT with decimation in frequency, with a master and
// slaves. Each iteration splits the master's vector: a process with a part computes the butterflies of its first stage,
// keeps the upper half and sends the lower half to another process. When each process has N/P points, all transform
// their parts, and a gather returns these to the master. The program measures its own times.
// Usage: fft [ITERATIONS [FLOATS]]   FLOATS: reals of the vector, two per point; a power of two
#include <mpi.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using Point = std::complex<float>;

/// One stage of decimation in frequency over n points: sums in the upper half, twiddled differences in the lower half.
void butterflies(Point* x, std::size_t n, const std::vector<Point>& roots) {
  const std::size_t half = n / 2, stride = roots.size() / half;
  for (std::size_t i = 0; i < half; ++i) {
    const Point a = x[i], b = x[i + half];
    x[i] = a + b;
    x[i + half] = (a - b) * roots[i * stride];
  }
}

std::size_t reversed(std::size_t i, int bits) {
  std::size_t out = 0;
  for (int b = 0; b < bits; ++b) out |= (i >> b & 1) << (bits - 1 - b);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 1000;
  const auto points = static_cast<std::size_t>(argc > 2 ? std::atoi(argv[2]) : 262144) / 2;
  if (!std::has_single_bit(static_cast<unsigned>(size)) || !std::has_single_bit(points) ||
      points < 2 * static_cast<std::size_t>(size)) {
    if (rank == 0)
      std::fprintf(stderr,
                   "fft: processes and points must be powers of two, with two points or more for each process\n");
    MPI_Finalize();
    return 2;
  }
  const int bits = std::countr_zero(points);
  const std::size_t part = points / static_cast<std::size_t>(size);
  const double pi = std::acos(-1.0);
  std::vector<Point> roots(points / 2);
  for (std::size_t i = 0; i < roots.size(); ++i)
    roots[i] = std::polar(1.0f, static_cast<float>(-2 * pi * static_cast<double>(i) / static_cast<double>(points)));
  std::vector<Point> signal, mine(points), result(rank == 0 ? points : 0);
  std::mt19937 random(1);
  if (rank == 0) {
    std::normal_distribution<float> normal;
    signal.resize(points);
    for (Point& p : signal) p = {normal(random), normal(random)};
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  double gathering = 0, left = start, second_half = 0;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    if (rank == 0) std::copy(signal.begin(), signal.end(), mine.begin());
    // Rank r receives its first part from the rank without r's lowest bit.
    const int low = rank == 0 ? size : rank & -rank;
    std::size_t n = part * static_cast<std::size_t>(low);
    if (rank != 0)
      MPI_Recv(mine.data(), static_cast<int>(2 * n), MPI_FLOAT, rank - low, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int below = low / 2; below > 0; below /= 2) {
      butterflies(mine.data(), n, roots);
      n /= 2;
      MPI_Send(mine.data() + n, static_cast<int>(2 * n), MPI_FLOAT, rank + below, 0, MPI_COMM_WORLD);
    }
    // In the middle of its transform each process makes an edge call (MPI_Pcontrol(5711, fraction), see latecomer.h).
    double middle = 0;
    for (int level = 0, levels = std::countr_zero(part); level < levels; ++level) {
      const std::size_t block = part >> level;
      if (level == levels / 2) {
        middle = MPI_Wtime();
        if (second_half > 0) MPI_Pcontrol(5711, (middle - left) / (middle - left + second_half));
      }
      for (std::size_t at = 0; at < part; at += block) butterflies(mine.data() + at, block, roots);
    }
    const double before = MPI_Wtime();
    second_half = before - middle;
    MPI_Gather(mine.data(), static_cast<int>(2 * part), MPI_FLOAT, result.data(), static_cast<int>(2 * part), MPI_FLOAT,
               0, MPI_COMM_WORLD);
    left = MPI_Wtime();
    gathering += left - before;
  }
  const double total = MPI_Wtime() - start;
  int wrong = 0;
  if (rank == 0) {
    // Check some frequencies by the definition, in double precision.
    for (int k = 0; k < 16; ++k) {
      const std::size_t frequency = k < 2 ? static_cast<std::size_t>(k) : random() % points;
      std::complex<double> sum = 0;
      for (std::size_t i = 0; i < points; ++i)
        sum += std::complex<double>(signal[i]) *
               std::polar(1.0, -2 * pi * static_cast<double>(i * frequency % points) / static_cast<double>(points));
      const std::complex<double> got(result[reversed(frequency, bits)]);
      if (std::abs(got - sum) > 1e-5 * static_cast<double>(bits) * std::sqrt(static_cast<double>(points))) ++wrong;
    }
  }
  double mean = 0;
  MPI_Reduce(&gathering, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf(
        "%d processes, %d iterations, %zu points: total %.3f s, gather %.6f s per call, %d of 16 frequencies wrong\n",
        size, iterations, points, total, mean / size / iterations, wrong);
  MPI_Finalize();
  return wrong != 0;
}
