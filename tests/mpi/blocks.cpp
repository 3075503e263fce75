// SPDX-License-Identifier: BSD-3-Clause
// Hundreds of random scatters, gathers and broadcasts with results known by construction. Varies the root, in place,
// counts of zero and insignificant arguments. Each rank has another datatype of the same signature (with gaps, with
// more or fewer elements). Communicators include every other rank and the reversed ranks. Random delays let ranks run
// ahead.
// Usage: blocks ROUNDS [DELAY_US]
#include "tests/mpi/random_calls.hpp"

namespace {

/// Memory for `blocks` times n ints, in one of several datatypes.
struct Side {
  enum Kind { plain, gapped, triples, single, kinds };
  MPI_Datatype type = MPI_INT32_T;
  int count = 0;  // per block
  std::vector<std::int32_t> memory;
  int stride = 1;
  bool by_three = false;
  bool made = false;

  Side(int n, int blocks, int kind) : count(n) {
    if (kind == triples && n % 3 != 0) kind = gapped;
    if (kind == single && n == 0) kind = plain;
    switch (kind) {
      case gapped: {
        MPI_Type_create_resized(MPI_INT32_T, 0, 12, &type);
        stride = 3;
        made = true;
        break;
      }
      case triples: {  // ints 1, 3 and 4 of every six
        const int lengths[] = {1, 2}, places[] = {1, 3};
        MPI_Datatype three;
        MPI_Type_indexed(2, lengths, places, MPI_INT32_T, &three);
        MPI_Type_create_resized(three, 0, 24, &type);
        MPI_Type_free(&three);
        by_three = made = true;
        count = n / 3;
        break;
      }
      case single:
        MPI_Type_contiguous(n, MPI_INT32_T, &type);
        made = true;
        count = 1;
        break;
      default:
        break;
    }
    if (made) MPI_Type_commit(&type);
    memory.assign(static_cast<std::size_t>(n * blocks) * (by_three ? 2 : static_cast<std::size_t>(stride)) + 8,
                  kUntouched);
  }
  ~Side() {
    if (made) MPI_Type_free(&type);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  std::int32_t& at(int i) {
    static constexpr int kPlaces[] = {1, 3, 4};
    return memory[static_cast<std::size_t>(by_three ? i / 3 * 6 + kPlaces[i % 3] : i * stride)];
  }
  void* data() { return memory.data(); }
  /// Checks that the first n ints are `want(i)` and that no other memory has changed.
  template <typename Want>
  void check(int n, Want want, const std::string& where) {
    std::vector<std::int32_t> expected(memory.size(), kUntouched);
    memory.swap(expected);
    for (int i = 0; i < n; ++i) at(i) = want(i);
    if (memory != expected) fail(where + ": wrong result, or more was written than it");
    memory.swap(expected);
  }
};

void one(MPI_Comm comm, int round, int op, int n, int root, bool in_place) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const bool at_root = rank == root;
  static const char* kNames[] = {"scatter", "gather", "bcast"};
  const std::string where = std::string(kNames[op]) + " " + std::to_string(round) + ", " + std::to_string(n) +
                            " ints, root " + std::to_string(root) + (in_place ? ", in place" : "") + ", " +
                            std::to_string(rank) + " of " + std::to_string(size);
  const int kind = own_draw(Side::kinds), other_kind = own_draw(Side::kinds);
  pause_at_random();
  int rc = MPI_SUCCESS;
  if (op == 2) {
    Side side(n, 1, kind);
    for (int i = 0; at_root && i < n; ++i) side.at(i) = value(round, root, i);
    rc = MPI_Bcast(side.data(), side.count, side.type, root, comm);
    side.check(
        n, [&](int i) { return value(round, root, i); }, where);
  } else if (op == 0) {
    Side all(at_root ? n : 0, size, kind), mine(n, 1, other_kind);
    for (int i = 0; at_root && i < n * size; ++i) all.at(i) = value(round, 0, i);
    const auto before = all.memory;
    if (at_root)
      rc = MPI_Scatter(all.data(), all.count, all.type, in_place ? MPI_IN_PLACE : mine.data(),
                       in_place ? -1 : mine.count, in_place ? MPI_DATATYPE_NULL : mine.type, root, comm);
    else
      rc = MPI_Scatter(n % 2 ? nullptr : all.data(), -5, MPI_DATATYPE_NULL, mine.data(), mine.count, mine.type, root,
                       comm);
    if (all.memory != before) fail(where + ": the input was changed");
    if (!(at_root && in_place))
      mine.check(
          n, [&](int i) { return value(round, 0, rank * n + i); }, where);
  } else {
    Side all(at_root ? n : 0, size, kind), mine(n, 1, other_kind);
    for (int i = 0; i < n; ++i) mine.at(i) = value(round, rank, i);
    const auto before = mine.memory;
    if (at_root && in_place)
      for (int i = 0; i < n; ++i) all.at(rank * n + i) = value(round, rank, i);
    if (at_root)
      rc = MPI_Gather(in_place ? MPI_IN_PLACE : mine.data(), in_place ? -1 : mine.count,
                      in_place ? MPI_DATATYPE_NULL : mine.type, all.data(), all.count, all.type, root, comm);
    else
      rc = MPI_Gather(mine.data(), mine.count, mine.type, n % 2 ? nullptr : all.data(), -5, MPI_DATATYPE_NULL, root,
                      comm);
    if (mine.memory != before) fail(where + ": the input was changed");
    if (at_root)
      all.check(
          n * size, [&](int i) { return value(round, i / n, i % n); }, where);
  }
  if (rc != MPI_SUCCESS) fail(where + ": error " + std::to_string(rc));
}

}  // namespace

int main(int argc, char** argv) {
  int rounds;
  const int size = begin(argc, argv, rounds);
  Communicators comms;
  for (int round = 0; round < rounds; ++round)
    for (const MPI_Comm comm : comms.all) {
      int n, members;
      switch (draw(6)) {
        case 0:
          n = draw(3);
          break;
        case 1:
          n = 3 * draw(size + 1);
          break;
        case 2:
          n = 10'000 + draw(30'000);
          break;
        default:
          n = draw(700);
      }
      const int op = draw(3), root = draw(2 * size);
      const bool in_place = draw(3) == 0;
      MPI_Comm_size(comm, &members);
      one(comm, round, op, n, root % members, in_place);
      if (draw(8) == 0) MPI_Barrier(comm);  // identifies communicators and lets plans come into force
    }
  for (int root = 0; root < size; ++root)
    for (const int op : {0, 1, 2})
      for (const int n : {1, 300})
        for (const bool in_place : {false, true}) one(MPI_COMM_WORLD, root, op, n, root, in_place);
  comms.free();
  return finish();
}
