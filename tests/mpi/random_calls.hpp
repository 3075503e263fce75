// SPDX-License-Identifier: BSD-3-Clause
// What the programs of random collectives share: drawing alike on all ranks, the communicators, and counting failures.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

inline int failures = 0, rank_world = 0;

inline void fail(const std::string& what) {
  if (++failures < 10) std::printf("rank %d: %s\n", rank_world, what.c_str());
}

inline std::uint64_t drawn = 88172645463325252ull;  // the same on every rank: shapes must agree
inline std::uint64_t draw() { drawn ^= drawn << 13, drawn ^= drawn >> 7, drawn ^= drawn << 17; return drawn; }
inline int draw(int below) { return static_cast<int>(draw() % static_cast<unsigned>(below)); }

/// The world, every other rank, the world reversed, and its duplicate.
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

/// Says how many failures all ranks have together; ends MPI. Returns the exit status.
inline int finish() {
  int total = 0;
  PMPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank_world == 0) std::printf("%d failures\n", total);
  MPI_Finalize();
  return total != 0;
}
