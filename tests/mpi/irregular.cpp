// SPDX-License-Identifier: BSD-3-Clause
// Hundreds of random gathervs and scattervs with results known by construction. Varies the root, in place, sizes of
// several distributions, counts of zero, displacements with gaps and in another order, and insignificant arguments.
// Each rank has another datatype of the same signature. Uses int and MPI_Count forms, communicators of every other rank
// and of the reversed ranks, and random delays.
// Usage: irregular ROUNDS [DELAY_US]
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tests/mpi/random_calls.hpp"

namespace {

/// Ints in every `stride`-th place: a datatype with gaps for stride > 1, and two ints per item for `pairs`.
struct Ints {
  MPI_Datatype type = MPI_INT32_T;
  int stride = 1, per_item = 1;
  bool made = false;
  Ints(int kind, bool even) {
    if (kind == 1) {
      MPI_Type_create_resized(MPI_INT32_T, 0, 12, &type);
      stride = 3;
      made = true;
    }
    if (kind == 2 && even) {
      MPI_Type_vector(2, 1, 2, MPI_INT32_T,
                      &type);  // ints 0 and 2; resized, because the next item begins at 3 and would overlap
      MPI_Datatype wide;
      MPI_Type_create_resized(type, 0, 16, &wide);
      MPI_Type_free(&type);
      type = wide;
      stride = 2;
      per_item = 2;
      made = true;
    }
    if (made) MPI_Type_commit(&type);
  }
  ~Ints() {
    if (made) MPI_Type_free(&type);
  }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;
};

/// Sizes in ints, the same on all ranks.
std::vector<int> sizes_for(int ranks, bool even) {
  std::vector<int> out(static_cast<std::size_t>(ranks));
  const int kind = draw(6), mean = 1 + draw(draw(4) == 0 ? 3000 : 200);
  for (int r = 0; r < ranks; ++r) {
    int n = mean;
    switch (kind) {
      case 1:
        n = draw(2 * mean);
        break;
      case 2:
        n = draw(4) == 0 ? 5 * mean : 1;
        break;
      case 3:
        n = r == 0 || r == ranks - 1 ? ranks * mean / 2 : 0;
        break;
      case 4:
        n = 2 * mean * (ranks - r) / ranks;
        break;
      case 5:
        n = draw(3) == 0 ? 0 : draw(mean);
        break;
      default:
        break;
    }
    out[static_cast<std::size_t>(r)] = even ? 2 * n : n;
  }
  return out;
}

void one(MPI_Comm comm, int round, bool scatters, int root, bool in_place, bool large, const std::vector<int>& sizes,
         bool even) {
  large = large && kLargeCounts;
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const bool at_root = rank == root;
  const auto size_of = [&](int r) { return sizes[static_cast<std::size_t>(r)]; };
  const std::string where = std::string(scatters ? "scatterv " : "gatherv ") + std::to_string(round) + ", root " +
                            std::to_string(root) + (in_place ? ", in place" : "") + (large ? ", large" : "") + ", " +
                            std::to_string(rank) + " of " + std::to_string(ranks);
  const Ints all_type(own_draw(3), even), own_type(own_draw(3), even);
  // The root's blocks: in another order, with gaps, counted in items of its datatype.
  std::vector<int> order(static_cast<std::size_t>(ranks)), counts(order.size()), places(order.size());
  std::iota(order.begin(), order.end(), 0);
  if (own_draw(2)) std::reverse(order.begin(), order.end());
  if (own_draw(2)) std::rotate(order.begin(), order.begin() + ranks / 2, order.end());
  int next = own_draw(3);
  for (const int r : order) {
    counts[static_cast<std::size_t>(r)] = size_of(r) / all_type.per_item;
    places[static_cast<std::size_t>(r)] = next;
    next += counts[static_cast<std::size_t>(r)] + own_draw(3);
  }
  const auto all_at = [&](int r, int i) {
    return static_cast<std::size_t>((places[static_cast<std::size_t>(r)] * all_type.per_item + i) * all_type.stride);
  };
  const auto own_at = [&](int i) { return static_cast<std::size_t>(i * own_type.stride); };
  std::vector<std::int32_t> all(
      at_root ? static_cast<std::size_t>((next + 1) * all_type.per_item * all_type.stride + 4) : 0, kUntouched);
  std::vector<std::int32_t> own(static_cast<std::size_t>(size_of(rank) * own_type.stride + 4), kUntouched);
  auto all_wanted = all, own_wanted = own;
  for (int r = 0; r < ranks && at_root; ++r)
    for (int i = 0; i < size_of(r); ++i) all_wanted[all_at(r, i)] = value(round, r, i);
  for (int i = 0; i < size_of(rank); ++i) own_wanted[own_at(i)] = value(round, rank, i);
  pause_at_random();
  std::vector<MPI_Count> large_counts(counts.begin(), counts.end());
  std::vector<MPI_Aint> large_places(places.begin(), places.end());
  const int own_count = size_of(rank) / own_type.per_item;
  int rc;
  if (scatters) {
    all = all_wanted;
    void* const into = at_root && in_place ? MPI_IN_PLACE : own.data();
    if (large)
      rc = MPI_Scatterv_c(all.data(), at_root ? large_counts.data() : nullptr, at_root ? large_places.data() : nullptr,
                          at_root ? all_type.type : MPI_DATATYPE_NULL, into, own_count, own_type.type, root, comm);
    else
      rc = MPI_Scatterv(all.data(), at_root ? counts.data() : nullptr, at_root ? places.data() : nullptr,
                        at_root ? all_type.type : MPI_DATATYPE_NULL, into, own_count, own_type.type, root, comm);
    if (at_root && in_place) own_wanted = own;
  } else {
    own = own_wanted;
    if (at_root && in_place)
      for (int i = 0; i < size_of(rank); ++i) all[all_at(rank, i)] = value(round, rank, i);
    const void* const from = at_root && in_place ? MPI_IN_PLACE : own.data();
    if (large)
      rc = MPI_Gatherv_c(from, own_count, own_type.type, all.data(), at_root ? large_counts.data() : nullptr,
                         at_root ? large_places.data() : nullptr, at_root ? all_type.type : MPI_DATATYPE_NULL, root,
                         comm);
    else
      rc = MPI_Gatherv(from, own_count, own_type.type, all.data(), at_root ? counts.data() : nullptr,
                       at_root ? places.data() : nullptr, at_root ? all_type.type : MPI_DATATYPE_NULL, root, comm);
  }
  if (rc != MPI_SUCCESS) fail(where + ": error " + std::to_string(rc));
  if (at_root && all != all_wanted) fail(where + ": the root's blocks are wrong, or more was written than they");
  if (own != own_wanted) fail(where + ": the own block is wrong, or more was written than it");
}

}  // namespace

int main(int argc, char** argv) {
  int rounds;
  const int size = begin(argc, argv, rounds);
  Communicators comms;
  // Some sizes stay for many calls, so that plans contain them. Others belong to one call.
  std::vector<int> steady;
  for (int round = 0; round < rounds; ++round)
    for (const MPI_Comm comm : comms.all) {
      int members;
      MPI_Comm_size(comm, &members);
      const bool even = draw(2);
      // Every other rank: two halves, which may differ by one rank. Both must draw the same values.
      std::vector<int> sizes = sizes_for(size, even);
      // The sizes stay for most of the run. Trees that are planned from sizes are not candidates if the calls differ.
      if (round == 0 || (round % 20 == 0 && 4 * round > 3 * rounds)) steady = sizes_for(size, true);
      const bool keep = draw(6) != 0;
      one(comm, round, draw(2), draw(2 * size) % members, draw(3) == 0, draw(3) == 0, keep ? steady : sizes,
          keep || even);
      if (draw(4) == 0) {
        int there = 1, all = 0;  // plans come into force after a call that depends on all ranks
        MPI_Allreduce(&there, &all, 1, MPI_INT, MPI_SUM, comm);
        if (all != members) fail("allreduce");
      }
    }
  for (int root = 0; root < size; ++root)
    for (const bool scatters : {false, true})
      for (const bool in_place : {false, true})
        one(MPI_COMM_WORLD, root, scatters, root, in_place, false, steady, true);
  comms.free();
  return finish();
}
