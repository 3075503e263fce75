// SPDX-License-Identifier: BSD-3-Clause
// The benchmark of Proficz 2018 (section 5.1), Proficz 2020 (section 5) and Proficz and Ocetkiewicz 2021 (section 6).
// In every iteration all processes draw random data, pass two barriers, "compute" (sleep) with a delay, and call one
// collective, whose result is checked. In the middle of the computation each process makes an edge call
// (latecomer_edge).
//
// Usage: late_benchmark OP MODE ITERATIONS SIZES DELAYS [quiet]
//   OP          allreduce, reduce, scatter or gather
//   MODE        onelate (rank 1), rootlate (rank 0), randomlate (another rank in every iteration),
//               randlate (all, uniformly up to the delay)
//   SIZES       floats of the vector, comma-separated; for scatter and gather the total
//   DELAYS      ms, comma-separated
//   quiet       no edge calls
// Prints one line per size and delay: floats, delay, mean elapsed time and mean run time in ms, wrong results.
#include <latecomer.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

void compute(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

/// Values of a comma-separated list. An invalid value gives 0, which main() refuses as a size; a delay may be 0.
std::vector<double> numbers(const char* text) {
  std::vector<double> out;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) out.push_back(std::atof(part.c_str()));
  return out;
}

/// The delay of every rank in an iteration. All ranks use the same seed and get the same delays.
std::vector<double> delays(const std::string& mode, int size, double most, std::mt19937& random) {
  std::vector<double> out(static_cast<std::size_t>(size), 0);
  if (mode == "rootlate") out[0] = most;
  else if (mode == "onelate") out[static_cast<std::size_t>(1 % size)] = most;
  else if (mode == "randomlate") out[random() % static_cast<unsigned>(size)] = most;
  else
    for (double& d : out) d = most * static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string op = argc > 1 ? argv[1] : "", mode = argc > 2 ? argv[2] : "";
  const int iterations = argc > 3 ? std::atoi(argv[3]) : 0;
  const std::vector<double> sizes = numbers(argc > 4 ? argv[4] : ""), grid = numbers(argc > 5 ? argv[5] : "");
  const bool fits = (op == "allreduce" || op == "reduce" || op == "scatter" || op == "gather") &&
                    (mode == "onelate" || mode == "rootlate" || mode == "randomlate" || mode == "randlate") &&
                    iterations > 0 && !sizes.empty() && !grid.empty() &&
                    *std::min_element(sizes.begin(), sizes.end()) >= size;
  if (!fits) {
    if (rank == 0)
      std::fprintf(stderr,
                   "usage: late_benchmark allreduce|reduce|scatter|gather onelate|rootlate|randomlate|randlate "
                   "ITERATIONS FLOATS,... DELAY_MS,... [quiet]; at least a float per process\n");
    MPI_Finalize();
    return 2;
  }
  const bool says = argc <= 6 || std::string(argv[6]) != "quiet";
  int all_wrong = 0;
  for (const double floats : sizes)
    for (const double delay : grid) {
      const int block = static_cast<int>(floats) / size,
                count = op == "scatter" || op == "gather" ? block : static_cast<int>(floats);
      const auto whole =
          static_cast<std::size_t>(count) * (op == "scatter" || op == "gather" ? static_cast<std::size_t>(size) : 1);
      std::vector<float> in(whole), out(whole);
      std::mt19937 alike(static_cast<unsigned>(floats) + 31 * static_cast<unsigned>(delay));
      double elapsed = 0, run = 0;
      int wrong = 0;
      for (int iteration = 0; iteration < iterations; ++iteration) {
        // Small integers make sums independent of their order. Rank r's value at i is (r + i + salt) mod 8.
        const unsigned salt = alike() % 1000;
        const auto value = [salt](int r, std::size_t i) {
          return static_cast<float>((static_cast<unsigned>(r) + static_cast<unsigned>(i) + salt) % 8);
        };
        for (std::size_t i = 0; i < whole; ++i) in[i] = value(rank, i);
        const std::vector<double> late = delays(mode, size, delay, alike);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime(), work = 4 + late[static_cast<std::size_t>(rank)];
        compute(work / 2);
        if (says) latecomer_edge(0.5);
        compute(work / 2);
        const double arrived = MPI_Wtime();
        if (op == "allreduce") MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        else if (op == "reduce") MPI_Reduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        else if (op == "scatter")
          MPI_Scatter(in.data(), count, MPI_FLOAT, out.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        else MPI_Gather(in.data(), count, MPI_FLOAT, out.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        const double left = MPI_Wtime();
        // The end of the second barrier is the common time zero.
        double mine[3] = {left - start, -(arrived - start), left - arrived}, most[2], sum;
        MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&mine[2], &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        elapsed += 1e3 * sum / size / iterations;
        run += 1e3 * (most[0] + most[1]) / iterations;
        bool right = true;
        for (const std::size_t i :
             {std::size_t{0}, static_cast<std::size_t>(count) / 2, static_cast<std::size_t>(count) - 1}) {
          if (op == "scatter") {
            right &= out[i] == value(0, static_cast<std::size_t>(rank) * static_cast<std::size_t>(count) + i);
          } else if (op == "gather") {
            for (int r = 0; rank == 0 && r < size; ++r)
              right &= out[static_cast<std::size_t>(r) * static_cast<std::size_t>(count) + i] == value(r, i);
          } else if (op == "allreduce" || rank == 0) {
            float expected = 0;
            for (int r = 0; r < size; ++r) expected += value(r, i);
            right &= out[i] == expected;
          }
        }
        wrong += !right;
      }
      int sum_wrong = 0;
      MPI_Allreduce(&wrong, &sum_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      all_wrong += sum_wrong;
      if (rank == 0) {
        std::printf("%d floats, %g ms: elapsed %.3f ms, run %.3f ms, %d wrong\n", static_cast<int>(floats), delay,
                    elapsed, run, sum_wrong);
        std::fflush(stdout);
      }
    }
  MPI_Finalize();
  return all_wrong != 0;
}
