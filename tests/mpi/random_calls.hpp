// SPDX-License-Identifier: BSD-3-Clause
// Shared by the programs of random collectives: random numbers that agree on all ranks, communicators, and failures.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/mpi/native.hpp"

inline int failures = 0, rank_world = 0;

inline void fail(const std::string& what) {
  if (++failures < 10) std::printf("rank %d: %s\n", rank_world, what.c_str());
}

inline std::uint64_t drawn = 88172645463325252ull;  // the same on every rank: shapes must agree
inline std::uint64_t draw() {
  drawn ^= drawn << 13;
  drawn ^= drawn >> 7;
  drawn ^= drawn << 17;
  return drawn;
}
inline int draw(int below) { return static_cast<int>(draw() % static_cast<unsigned>(below)); }

inline std::uint64_t own_state = 1;  // different on each rank
inline int own_draw(int below) {
  own_state = own_state * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<int>(own_state >> 33) % below;
}

inline unsigned delay_us = 0;
inline void pause_at_random() {
  if (delay_us && own_draw(4) == 0) usleep(static_cast<unsigned>(own_draw(static_cast<int>(delay_us))));
}

constexpr std::int32_t kUntouched = -77;
/// The value at i of a rank's block or vector in a round. It may wrap.
inline std::int32_t value(int round, int rank, int i) {
  return static_cast<std::int32_t>(std::int64_t{round} * 1'000'003 + rank * 7919 + i * 31);
}

/// Calls MPI_Init. Arguments: [ROUNDS [DELAY_US]]. Returns the number of ranks.
inline int begin(int argc, char** argv, int& rounds) {
  MPI_Init(&argc, &argv);
  int size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_world);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  delay_us = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0;
  own_state = static_cast<std::uint64_t>(rank_world) * 977 + 3;
  return size;
}

/// The world, every other rank, the world reversed, and a duplicate of the world.
struct Communicators {
  std::vector<MPI_Comm> all{MPI_COMM_WORLD};
  Communicators() {
    MPI_Comm every_other, reversed, dup;
    MPI_Comm_split(MPI_COMM_WORLD, rank_world % 2, rank_world, &every_other);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank_world, &reversed);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    all.insert(all.end(), {every_other, reversed, dup});
  }
  void free() {
    for (std::size_t i = 1; i < all.size(); ++i) MPI_Comm_free(&all[i]);
  }
};

/// Prints the number of failures of all ranks and ends MPI. Returns the exit status.
inline int finish() {
  int total = 0;
  NATIVE(PMPI_Allreduce)(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank_world == 0) std::printf("%d failures\n", total);
  MPI_Finalize();
  return total != 0;
}
