// SPDX-License-Identifier: BSD-3-Clause
// A long stream of mixed collectives: scatter, gather, bcast, reduce, allreduce and barriers of random sizes and roots
// on several temporary communicators, with random pauses. Every result is checked.
// Usage: mixed CALLS SEED [abort|leave|exit|finalize]
//
// With a third argument, all ranks leave after CALLS calls: rank 0 aborts, every rank ends without MPI_Finalize (with
// or without exit handlers), or all ranks call MPI_Finalize.
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

std::uint64_t shared_state = 1, own_state = 1;
std::uint64_t next(std::uint64_t& s) {
  s ^= s << 13;
  s ^= s >> 7;
  s ^= s << 17;
  return s;
}
int draw(int below) { return static_cast<int>(next(shared_state) % static_cast<unsigned>(below)); }
int own_draw(int below) { return static_cast<int>(next(own_state) % static_cast<unsigned>(below)); }

std::int32_t value(long call, int rank, int i) { return static_cast<std::int32_t>(call * 131 + rank * 7919 + i * 31); }

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int world, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long calls = argc > 1 ? std::atol(argv[1]) : 1000;
  shared_state = 88172645463325252ull + (argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0) * 977;
  own_state = shared_state + static_cast<unsigned>(world) * 1000003 + 7;
  const char* end = argc > 3 ? argv[3] : "";
  // Collectives of one set of ranks. All members draw the same stream.
  std::vector<MPI_Comm> comms = {MPI_COMM_WORLD};
  for (int k = 0; k < 2; ++k) {
    MPI_Comm made;
    MPI_Comm_split(MPI_COMM_WORLD, 0, k ? -world : world, &made);
    comms.push_back(made);
  }
  long wrong = 0;
  std::vector<std::int32_t> send, recv;
  for (long call = 0; call < calls; ++call) {
    const int c = draw(static_cast<int>(comms.size()));
    if (draw(3000) == 0 && c > 0) {
      MPI_Comm_free(&comms[static_cast<std::size_t>(c)]);
      MPI_Comm_split(MPI_COMM_WORLD, 0, draw(2) ? -world : world, &comms[static_cast<std::size_t>(c)]);
    }
    const MPI_Comm comm = comms[static_cast<std::size_t>(c)];
    const int op = draw(12), root = draw(size);
    const int n = draw(40) == 0 ? 5000 + draw(15000) : draw(10) == 0 ? 0 : 1 + draw(300);
    int rank;
    MPI_Comm_rank(comm, &rank);
    const auto all = static_cast<std::size_t>(n * size), one = static_cast<std::size_t>(n);
    if (own_draw(200) == 0) usleep(static_cast<unsigned>(own_draw(1500)));
    if (op < 4) {
      send.assign(all, 0);
      recv.assign(one, -1);
      for (int i = 0; rank == root && i < n * size; ++i) send[static_cast<std::size_t>(i)] = value(call, 0, i);
      MPI_Scatter(send.data(), n, MPI_INT, recv.data(), n, MPI_INT, root, comm);
      for (int i = 0; i < n; ++i) wrong += recv[static_cast<std::size_t>(i)] != value(call, 0, rank * n + i);
    } else if (op < 8) {
      send.assign(one, 0);
      recv.assign(all, -1);
      for (int i = 0; i < n; ++i) send[static_cast<std::size_t>(i)] = value(call, rank, i);
      MPI_Gather(send.data(), n, MPI_INT, recv.data(), n, MPI_INT, root, comm);
      for (int i = 0; rank == root && i < n * size; ++i)
        wrong += recv[static_cast<std::size_t>(i)] != value(call, i / n, i % n);
    } else if (op < 10) {
      recv.assign(one, -1);
      for (int i = 0; rank == root && i < n; ++i) recv[static_cast<std::size_t>(i)] = value(call, root, i);
      MPI_Bcast(recv.data(), n, MPI_INT, root, comm);
      for (int i = 0; i < n; ++i) wrong += recv[static_cast<std::size_t>(i)] != value(call, root, i);
    } else if (op == 10) {
      send.assign(one, rank + 1);
      recv.assign(one, -1);
      MPI_Reduce(send.data(), recv.data(), n, MPI_INT, MPI_SUM, root, comm);
      for (int i = 0; rank == root && i < n; ++i) wrong += recv[static_cast<std::size_t>(i)] != size * (size + 1) / 2;
    } else if (draw(2)) {
      send.assign(one, rank + 1);
      recv.assign(one, -1);
      MPI_Allreduce(send.data(), recv.data(), n, MPI_INT, MPI_SUM, comm);
      for (int i = 0; i < n; ++i) wrong += recv[static_cast<std::size_t>(i)] != size * (size + 1) / 2;
    } else {
      MPI_Barrier(comm);
    }
  }
  if (wrong) std::printf("rank %d: %ld wrong\n", world, wrong);
  if (std::strcmp(end, "abort") == 0) {
    if (world == 0) MPI_Abort(MPI_COMM_WORLD, 3);
    for (;;) usleep(1000);
  }
  if (std::strcmp(end, "leave") == 0) std::_Exit(wrong ? 1 : 0);
  if (std::strcmp(end, "exit") == 0) std::exit(wrong ? 1 : 0);
  if (std::strcmp(end, "finalize") != 0)
    for (std::size_t c = 1; c < comms.size(); ++c) MPI_Comm_free(&comms[c]);
  MPI_Finalize();
  if (world == 0 && !wrong) std::printf("right\n");
  return wrong != 0;
}
