// SPDX-License-Identifier: BSD-3-Clause
// Range communicators: the acceptance tests (by number, on their numbers of ranks), and every collective on random
// ranges compared with MPI on a communicator of the same ranks. Usage: range [rounds]
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latecomer/range.hpp>
#include <random>
#include <thread>
#include <vector>

using latecomer::range::Comm;
using latecomer::range::Request;

namespace {

int world_rank, world_size, failures = 0;
Comm world;

void check(bool ok, const char* format, ...) __attribute__((format(printf, 2, 3)));
void check(bool ok, const char* format, ...) {
  if (ok) return;
  ++failures;
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "rank %d of %d: ", world_rank, world_size);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}
void good(int rc, const char* what) { check(rc == MPI_SUCCESS, "%s: error class %d", what, rc); }
double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
void nap(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

using Pair = std::array<long long, 2>;
constexpr long long kModulus = 1000003;
void affine(void* in, void* inout, int* n, MPI_Datatype*) {
  auto *a = static_cast<Pair*>(in), *b = static_cast<Pair*>(inout);
  for (int i = 0; i < *n; ++i) b[i] = {a[i][0] * b[i][0] % kModulus, (a[i][1] * b[i][0] + b[i][1]) % kModulus};
}
MPI_Datatype pair_type;
MPI_Op affine_op;

void members() {  // 1
  const Comm odd = world.part(1, 7, 2);
  check(odd.size() == 4 && odd.to_mpi(0) == 1 && odd.to_mpi(3) == 7, "(1,7,2)");
  const Comm inner = odd.part(1, 3, 2);
  check(inner.size() == 2 && inner.to_mpi(0) == 3 && inner.to_mpi(1) == 7 && inner.from_mpi(7) == 1 &&
            inner.from_mpi(5) == MPI_UNDEFINED && inner.get()->stride == 4,
        "(1,3,2) of it");
  check(inner.rank() == (world_rank == 3 ? 0 : world_rank == 7 ? 1 : MPI_UNDEFINED), "own rank there");
  const Comm cut = world.part(1, 6, 2);
  check(cut.size() == 3 && cut.to_mpi(2) == 5, "(1,6,2)");
  const Comm back = world.part(7, 0, -1);
  check(back.rank() == 7 - world_rank, "(7,0,-1)");
  int sum = -1;
  const int mine = back.rank();
  good(back.scan(&mine, &sum, 1, MPI_INT, MPI_SUM), "scan backwards");
  check(sum == mine * (mine + 1) / 2, "scan backwards gives %d", sum);
  Comm none;
  check(world.create(0, 3, 0, &none) == MPI_ERR_ARG, "stride 0");
  check(world.create(2, 13, 1, &none) == MPI_ERR_RANK, "beyond the parent");
  check(world.create(3, 2, 1, &none) == MPI_ERR_ARG && world.create(-1, 2, 1, &none) == MPI_ERR_RANK,
        "empty, negative");
  check(none.barrier() == MPI_ERR_COMM && (inner.member() || inner.barrier() == MPI_ERR_COMM), "not a member");
}

void many() {  // 2: tests/mpi/range.py checks that no MPI call is made
  if (world_rank == 3) {
    std::vector<double> each;
    long long kept = 0;
    for (int round = 0; round < 100; ++round) {
      const double before = seconds();
      for (int i = 0; i < 10000; ++i) {
        Comm c;
        world.create(2, 5, 1, &c);
        kept += c.rank();
        asm volatile("" : : "r,m"(c.get()) : "memory");
      }
      each.push_back((seconds() - before) / 10000);
    }
    check(kept == 1000000, "a million times the same");
    std::nth_element(each.begin(), each.begin() + 50, each.end());
    std::printf("creation: %.1f ns\n", each[50] * 1e9);
  }
  // A hundred thousand live ranges at once, numbered by their contexts.
  std::vector<Comm> live;
  for (int i = 0; i < 100000; ++i) live.push_back(world.part(2, 5).with_context(i));
  if (live[0].member()) {
    for (int i = 0; i < 100000; i += 9973) {
      int sum = 0;
      good(live[static_cast<std::size_t>(i)].allreduce(&i, &sum, 1, MPI_INT, MPI_SUM), "allreduce");
      check(sum == 4 * i, "live communicator %d", i);
    }
  }
}

void two_halves() {  // 3
  const Comm mine = world_rank < 3 ? world.part(0, 2) : world.part(3, 6);
  int value = 100 + world_rank;
  Request request;
  good(mine.ibcast(&value, 1, MPI_INT, 0, &request), "ibcast");
  good(latecomer_range_wait(&request, MPI_STATUS_IGNORE), "wait");
  check(value == (world_rank < 3 ? 100 : 103), "broadcast gives %d", value);
}

void noncommutative() {  // 4
  const Pair mine{world_rank + 2, 3 * world_rank + 1}, all{362880, 567337}, four{120, 185};
  for (int root = 0; root < 8; ++root) {
    Pair out{};
    good(world.reduce(&mine, &out, 1, pair_type, affine_op, root), "reduce");
    check(world_rank != root || out == all, "reduce to %d gives %lld %lld", root, out[0], out[1]);
  }
  Pair out{};
  good(world.allreduce(&mine, &out, 1, pair_type, affine_op), "allreduce");
  check(out == all, "allreduce gives %lld %lld", out[0], out[1]);
  good(world.scan(&mine, &out, 1, pair_type, affine_op), "scan");
  check((world_rank != 7 || out == all) && (world_rank != 3 || out == four), "scan gives %lld %lld", out[0], out[1]);
  good(world.exscan(&mine, &out, 1, pair_type, affine_op), "exscan");
  check(world_rank != 4 || out == four, "exscan gives %lld %lld", out[0], out[1]);
}

void overlapping() {  // 5
  const Comm a = world.part(0, 3), b = world.part(1, 4);
  for (int round = 0; round < 20; ++round) {
    int x = 0, y = 0;
    if (a.member()) {
      if (a.rank() == 3) {
        x = 1000;
        nap(20);
      }
      good(a.bcast(&x, 1, MPI_INT, 3), "bcast on A");
      check(x == 1000, "A gives %d", x);
    }
    if (b.member()) {
      if (b.rank() == 0) y = 2000;
      good(b.bcast(&y, 1, MPI_INT, 0), "bcast on B");
      check(y == 2000, "B gives %d", y);
    }
  }
}

void any_source() {  // 6
  const Comm two = world.part(1, 2);
  if (world_rank == 0) {
    const int x = 100;
    good(world.send(&x, 1, MPI_INT, 1, 5), "send");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 2) {
    const int x = 200;
    good(two.send(&x, 1, MPI_INT, 0, 5), "send");
  }
  if (world_rank == 1) {
    int x = 0;
    MPI_Status status;
    good(two.recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 5, &status), "recv");
    check(x == 200 && status.MPI_SOURCE == 1 && status.MPI_TAG == 5, "on the part: %d from %d", x, status.MPI_SOURCE);
    good(world.recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, &status), "recv");
    check(x == 100 && status.MPI_SOURCE == 0, "on all: %d from %d", x, status.MPI_SOURCE);
  }
}

void probing() {  // 7
  const Comm l = world.part(0, 2), q = world.part(2, 4);
  int x = world_rank;
  if (world_rank == 3) good(q.send(&x, 1, MPI_INT, 0, 9), "send");
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 1) good(l.send(&x, 1, MPI_INT, 2, 9), "send");
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank != 2) return;
  int flag = 0, count = 0;
  MPI_Status status;
  const double before = seconds();
  while (!flag && seconds() - before < 10) good(l.iprobe(MPI_ANY_SOURCE, 9, &flag, &status), "iprobe");
  MPI_Get_count(&status, MPI_INT, &count);
  check(flag && status.MPI_SOURCE == 1 && count == 1, "a probe on L");
  latecomer_range_message message;
  good(q.improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, &flag, &message, &status), "improbe");
  check(flag && status.MPI_SOURCE == 1, "an improbe on Q");
  int again = 0;
  good(q.iprobe(MPI_ANY_SOURCE, 9, &again, &status), "iprobe");
  check(!again, "what improbe took is still there");
  good(latecomer_range_mrecv(&x, 1, MPI_INT, &message, &status), "mrecv");
  check(x == 3 && status.MPI_SOURCE == 1, "mrecv gives %d from %d", x, status.MPI_SOURCE);
  good(l.recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_STATUS_IGNORE), "recv");
  check(x == 1, "recv gives %d", x);
}

void zero_counts() {  // 8
  std::vector<MPI_Count> counts{1, 1, 0, 1, 0, 1, 0, 1};
  std::vector<MPI_Aint> places{0, 1, 2, 2, 3, 3, 4, 4};
  std::vector<int> out(16, -1);
  Request request;
  good(world.igatherv(&world_rank, counts[static_cast<std::size_t>(world_rank)], MPI_INT, out.data(), counts.data(),
                      places.data(), MPI_INT, 0, &request),
       "igatherv");
  good(latecomer_range_wait(&request, MPI_STATUS_IGNORE), "wait");
  if (world_rank == 0)
    check(std::vector<int>(out.begin(), out.begin() + 5) == std::vector<int>{0, 1, 3, 5, 7}, "gatherv with zeros");
  std::fill(out.begin(), out.end(), -1);
  for (int i = 0; i < 8; ++i) {
    counts[static_cast<std::size_t>(i)] = 1;
    places[static_cast<std::size_t>(i)] = 2 * (7 - i);
  }
  const int mine = world_rank + 1;
  good(world.igatherv(&mine, MPI_Count{1}, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT, 0, &request),
       "igatherv");
  good(latecomer_range_wait(&request, MPI_STATUS_IGNORE), "wait");
  for (int i = 0; i < 8 && world_rank == 0; ++i)
    check(out[static_cast<std::size_t>(2 * (7 - i))] == i + 1 && out[static_cast<std::size_t>(2 * i + 1)] == -1,
          "gatherv into every other place");
}

void late_ranks() {  // 10: an operation that must not wait for a late rank would wait forever
  if (world_size == 4) {
    int one = 1, sum = 0;
    const Comm all = world;
    Request request;
    // The leaf has called, and does nothing until the root has finished.
    good(all.ireduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, &request), "ireduce");
    if (world_rank == 3) MPI_Recv(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    good(latecomer_range_wait(&request, MPI_STATUS_IGNORE), "wait");
    if (world_rank == 0) {
      check(sum == 4, "a leaf that had called: %d", sum);
      MPI_Send(nullptr, 0, MPI_INT, 3, 1, MPI_COMM_WORLD);
    }
    // A send and a receive with MPI_PROC_NULL.
    MPI_Status status;
    int x = 7, flag = 0;
    good(world.send(&x, 1, MPI_INT, MPI_PROC_NULL, 0), "send to MPI_PROC_NULL");
    good(world.recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, &status), "recv from MPI_PROC_NULL");
    check(x == 7 && status.MPI_SOURCE == MPI_PROC_NULL, "MPI_PROC_NULL");
    good(world.iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, &flag, &status), "iprobe");
    check(!flag, "a message from nowhere");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (world_size == 10) {
    const Comm chain[3] = {world.part(0, 3), world.part(3, 6), world.part(6, 9)};
    int mine = world_rank, sums[3] = {-1, -1, -1};
    std::vector<Request> requests;
    // Rank 9 arrives after ranks 0 to 2 have finished.
    for (int r = 0; r < 3 && world_rank == 9; ++r)
      MPI_Recv(nullptr, 0, MPI_INT, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int c = 0; c < 3; ++c)
      if (chain[c].member()) {
        requests.push_back(nullptr);
        good(chain[c].iscan(&mine, &sums[c], 1, MPI_INT, MPI_SUM, &requests.back()), "iscan");
      }
    good(latecomer_range_waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "waitall");
    if (world_rank < 3) MPI_Send(nullptr, 0, MPI_INT, 9, 1, MPI_COMM_WORLD);
    for (int c = 0; c < 3; ++c)
      if (chain[c].member()) {
        int expected = 0;
        for (int r = 3 * c; r <= world_rank; ++r) expected += r;
        check(sums[c] == expected, "scan of chain %d gives %d", c, sums[c]);
      }
  }
}

/// A blocking collective on one range advances a broadcast on another, for which its partner waits.
void crossed() {
  if (world_size < 3) return;

  const Comm first = world.part(0, 1), second = world.part(1, 2), all = world.part(0, 2);
  for (int round = 0; round < 20; ++round) {
    int value = world_rank == 0 ? round : -1, other = world_rank;
    Request request = nullptr;
    if (!all.member()) continue;
    // The sum needs a message of rank 1 after rank 1 has got one of rank 0, which comes late.
    if (world_rank == 0) nap(1);
    int sum = 0;
    good(all.iscan(&world_rank, &sum, MPI_Count{1}, MPI_INT, MPI_SUM, &request), "iscan");
    if (world_rank == 1) {
      good(second.bcast(&other, 1, MPI_INT, 1), "bcast");  // its root waits for the scan first
      check(other == 200 + round, "the blocking broadcast gives %d", other);
    }
    good(latecomer_range_wait(&request, MPI_STATUS_IGNORE), "wait");
    check(sum == world_rank * (world_rank + 1) / 2, "the scan gives %d", sum);
    if (world_rank == 2) {
      other = 200 + round;
      good(second.bcast(&other, 1, MPI_INT, 1), "bcast");
    }
    if (first.member()) good(first.bcast(&value, 1, MPI_INT, 0), "bcast");
    check(world_rank > 1 || value == round, "the next broadcast gives %d", value);
  }
}

/// Counts from 1 on, every collective straight: the size class of a line and its end.
void lengths() {
  for (int n = 0; n < 2100; n += 1 + n / 16) {
    std::vector<long long> mine(static_cast<std::size_t>(n) + 1, world_rank + 1), sum(mine.size(), -1),
        blocks(mine.size() * static_cast<std::size_t>(world_size), -1);
    const long long expected = world_size * (world_size + 1) / 2;
    good(world.allreduce(mine.data(), sum.data(), n, MPI_LONG_LONG, MPI_SUM), "allreduce");
    check(n == 0 ? sum[0] == -1
                 : sum[0] == expected && sum[static_cast<std::size_t>(n) - 1] == expected && sum.back() == -1,
          "an allreduce of %d", n);
    good(world.gather(mine.data(), n, MPI_LONG_LONG, blocks.data(), n, MPI_LONG_LONG, world_size - 1), "gather");
    for (int r = 0; r < world_size && n > 0 && world_rank == world_size - 1; ++r)
      check(
          blocks[static_cast<std::size_t>(r * n)] == r + 1 && blocks[static_cast<std::size_t>(r * n + n - 1)] == r + 1,
          "a gather of %d", n);
    good(world.bcast(mine.data(), n, MPI_LONG_LONG, n % world_size), "bcast");
    check(n == 0 || mine[static_cast<std::size_t>(n) - 1] == n % world_size + 1, "a broadcast of %d", n);
    check(mine.back() == world_rank + 1, "a broadcast of %d writes behind its data", n);
  }
  // A receiver with less room than the message has bytes.
  if (world_size < 2) return;
  const Comm two = world.part(0, 1);
  for (const int n : {3, 100, 5000}) {
    if (!two.member()) continue;
    std::vector<long long> data(static_cast<std::size_t>(n), world_rank);
    const int rc = two.bcast(data.data(), world_rank == 0 ? n : 2, MPI_LONG_LONG, 0);
    check(world_rank == 0 ? rc == MPI_SUCCESS : rc == MPI_ERR_TRUNCATE && data[2] == 1,
          "a broadcast into too little room: error class %d", rc);
    good(two.barrier(), "barrier");
  }
}

/// Further details of the interface.
void details() {
  const int next = (world_rank + 1) % world_size, before = (world_rank + world_size - 1) % world_size;
  MPI_Status status;
  // Tags beyond MPI's own limits. Long, synchronous and short messages keep their order.
  std::vector<int> big(300000, world_rank), got(300000);
  int small = world_rank, small_got = -1;
  Request requests[4];
  good(world.isend(big.data(), MPI_Count{300000}, MPI_INT, next, 2147483647, &requests[0]), "isend");
  good(world.isend(&small, MPI_Count{1}, MPI_INT, next, 2147483647, &requests[1]), "isend");
  good(world.irecv(got.data(), MPI_Count{300000}, MPI_INT, before, MPI_ANY_TAG, &requests[2]), "irecv");
  good(world.irecv(&small_got, MPI_Count{1}, MPI_INT, before, MPI_ANY_TAG, &requests[3]), "irecv");
  MPI_Status statuses[4];
  good(latecomer_range_waitall(4, requests, statuses), "waitall");
  int count = 0;
  MPI_Get_count(&statuses[2], MPI_INT, &count);
  check(got[299999] == before && small_got == before && count == 300000 && statuses[2].MPI_TAG == 2147483647 &&
            statuses[2].MPI_SOURCE == before,
        "long and short in order");
  good(world.sendrecv(&world_rank, 1, MPI_INT, next, 3, &small_got, 1, MPI_INT, before, 3, &status), "sendrecv");
  check(small_got == before && status.MPI_SOURCE == before, "sendrecv");
  good(world.issend(&small, MPI_Count{1}, MPI_INT, next, 4, &requests[0]), "issend");
  int flag = 1;
  for (int i = 0; i < 50 && world_size > 1; ++i) {
    good(latecomer_range_test(&requests[0], &flag, &status), "test");
    check(!flag, "a synchronous send completes before its receive");
  }
  if (world_size > 1) MPI_Barrier(MPI_COMM_WORLD);
  good(world.recv(&small_got, 1, MPI_INT, before, 4, &status), "recv");
  good(latecomer_range_wait(&requests[0], &status), "wait");
  // Errors as classes.
  check(world.send(&small, 1, MPI_INT, world_size, 0) == MPI_ERR_RANK &&
            world.send(&small, 1, MPI_INT, 0, -3) == MPI_ERR_TAG &&
            world.send(&small, -1, MPI_INT, 0, 0) == MPI_ERR_COUNT &&
            world.send(&small, 1, MPI_DATATYPE_NULL, 0, 0) == MPI_ERR_TYPE &&
            world.bcast(&small, 1, MPI_INT, -1) == MPI_ERR_ROOT &&
            world.allreduce(&small, &count, 1, MPI_INT, MPI_OP_NULL) == MPI_ERR_OP,
        "error classes");
  for (const MPI_Count n : {2, 20000}) {
    good(world.isend(big.data(), n, MPI_INT, next, 6, &requests[0]), "isend");
    got[1] = -1;
    check(world.recv(got.data(), n - 1, MPI_INT, before, 6, &status) == MPI_ERR_TRUNCATE, "truncation is an error");
    good(latecomer_range_wait(&requests[0], MPI_STATUS_IGNORE), "wait");
  }
  // The program frees a type while its receive waits. Gaps keep their content.
  for (const int blocks : {3, 5000}) {
    MPI_Datatype gaps;
    MPI_Type_vector(blocks, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    std::fill(got.begin(), got.end(), -7);
    good(world.irecv(got.data(), MPI_Count{1}, gaps, before, 8, &requests[0]), "irecv");
    MPI_Type_free(&gaps);
    good(world.send(big.data(), blocks, MPI_INT, next, 8), "send");
    good(latecomer_range_wait(&requests[0], &status), "wait");
    for (int i = 0; i < blocks; ++i)
      check(got[static_cast<std::size_t>(2 * i)] == before &&
                (i + 1 == blocks || got[static_cast<std::size_t>(2 * i + 1)] == -7),
            "a vector with gaps");
  }
  // Requests of MPI, mixed with requests of ranges.
  int ours = -1, theirs = -1, sum = 0;
  MPI_Request mixed[3];
  good(world.irecv(&ours, MPI_Count{1}, MPI_INT, before, 11, &requests[0]), "irecv");
  good(latecomer_range_to_mpi_request(&requests[0], &mixed[0]), "to_mpi_request");
  MPI_Irecv(&theirs, 1, MPI_INT, before, 11, MPI_COMM_WORLD, &mixed[1]);
  good(world.iallreduce(&world_rank, &sum, MPI_Count{1}, MPI_INT, MPI_SUM, &requests[0]), "iallreduce");
  good(latecomer_range_to_mpi_request(&requests[0], &mixed[2]), "to_mpi_request");
  good(world.isend(&world_rank, MPI_Count{1}, MPI_INT, next, 11, &requests[1]), "isend");
  MPI_Send(&world_rank, 1, MPI_INT, next, 11, MPI_COMM_WORLD);
  MPI_Status three[3];
  MPI_Waitall(3, mixed, three);
  check(ours == before && theirs == before && sum == world_size * (world_size - 1) / 2 &&
            three[0].MPI_SOURCE == before && three[0].MPI_TAG == 11,
        "a mixed MPI_Waitall: %d %d %d", ours, theirs, sum);
  good(latecomer_range_wait(&requests[1], MPI_STATUS_IGNORE), "wait");
  // waitany and waitsome with NULL requests.
  Request list[3] = {nullptr, nullptr, nullptr};
  int index = -1, indices[3], values[2] = {-1, -1};
  good(latecomer_range_waitany(3, list, &index, &status), "waitany");
  check(index == MPI_UNDEFINED, "waitany of nothing");
  good(world.irecv(&values[0], MPI_Count{1}, MPI_INT, before, 21, &list[0]), "irecv");
  good(world.irecv(&values[1], MPI_Count{1}, MPI_INT, before, 22, &list[2]), "irecv");
  good(world.send(&world_rank, 1, MPI_INT, next, 22), "send");
  good(latecomer_range_waitany(3, list, &index, &status), "waitany");
  check(index == 2 && values[1] == before && !list[2] && list[0] && status.MPI_TAG == 22, "waitany gives %d", index);
  MPI_Barrier(MPI_COMM_WORLD);
  good(world.send(&world_rank, 1, MPI_INT, next, 21), "send");
  int done = 0;
  good(latecomer_range_waitsome(3, list, &done, indices, MPI_STATUSES_IGNORE), "waitsome");
  check(done == 1 && indices[0] == 0 && values[0] == before, "waitsome");
  // MPI communicators over ranges.
  MPI_Comm real = MPI_COMM_NULL;
  Request creation;
  good(world.icomm_create(0, &real, &creation), "icomm_create");
  good(latecomer_range_wait(&creation, MPI_STATUS_IGNORE), "wait");
  int size = 0;
  MPI_Comm_size(real, &size);
  check(size == world_size, "icomm_create of all");
  MPI_Comm_free(&real);
  int level = 0;
  MPI_Query_thread(&level);
  if (world_size >= 4) {
    // Two overlapping communicators, created in different orders, while messages of ranges arrive.
    const Comm low = world.part(0, 2), high = world.part(3, 1, -1);
    MPI_Comm made[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
    Request both[2] = {nullptr, nullptr};
    for (int k = 0; k < 2; ++k) {
      const int which = world_rank % 2 ? k : 1 - k;
      const Comm& c = which ? high : low;
      if (c.member()) {
        const int rc = c.icomm_create(which, &made[which], &both[which]);
        check(rc == (level == MPI_THREAD_MULTIPLE ? MPI_SUCCESS : MPI_ERR_UNSUPPORTED_OPERATION),
              "icomm_create of a part: %d", rc);
      }
      // Time for MPI's own messages of the creation. A receive of the ranges must not take them.
      if (k == 0 && level == MPI_THREAD_MULTIPLE) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (k == 0) good(world.barrier(), "barrier");
    }
    good(latecomer_range_waitall(2, both, MPI_STATUSES_IGNORE), "waitall");
    for (int which = 0; which < 2; ++which)
      if (made[which] != MPI_COMM_NULL) {
        int rank = -1;
        MPI_Comm_rank(made[which], &rank);
        check(rank == (which ? high : low).rank(), "rank in the new communicator");
        MPI_Comm_free(&made[which]);
      }
  }
}

/// Operations as requests of MPI that only MPI waits for, while other operations of ranges go on.
void exported() {
  const int next = (world_rank + 1) % world_size, before = (world_rank + world_size - 1) % world_size;
  const MPI_Count n = 300000;
  std::vector<int> out(static_cast<std::size_t>(n), world_rank), in(out.size(), -1);
  Request request;
  MPI_Request late, sent, freed, sum_known;
  MPI_Status status;
  int small = -1, sum = 0, again = 0, flag = 0, count = 0;
  good(world.irecv(in.data(), n, MPI_INT, before, 31, &request), "irecv");
  good(latecomer_range_to_mpi_request(&request, &late), "to_mpi_request");
  good(world.irecv(&small, MPI_Count{1}, MPI_INT, before, 32, &request), "irecv");
  good(latecomer_range_to_mpi_request(&request, &freed), "to_mpi_request");
  MPI_Request_free(&freed);
  good(world.iallreduce(&world_rank, &sum, MPI_Count{1}, MPI_INT, MPI_SUM, &request), "iallreduce");
  good(latecomer_range_to_mpi_request(&request, &sum_known), "to_mpi_request");
  good(world.allreduce(&world_rank, &again, 1, MPI_INT, MPI_SUM), "allreduce");
  good(world.send(&world_rank, 1, MPI_INT, next, 32), "send");
  if (world_rank == 0) nap(20);
  good(world.isend(out.data(), n, MPI_INT, next, 31, &request), "isend");
  good(latecomer_range_to_mpi_request(&request, &sent), "to_mpi_request");
  MPI_Wait(&late, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  check(
      in.front() == before && in.back() == before && count == n && status.MPI_SOURCE == before && status.MPI_TAG == 31,
      "a long message that only MPI_Wait waits for: %d, %d items from %d", in.back(), count, status.MPI_SOURCE);
  while (!flag) MPI_Test(&sent, &flag, MPI_STATUS_IGNORE);
  MPI_Wait(&sum_known, MPI_STATUS_IGNORE);
  check(sum == world_size * (world_size - 1) / 2 && again == sum, "sums %d and %d", sum, again);
  // The operation of a freed request goes on.
  for (int i = 0; i < 10000 && small != before; ++i) {
    good(world.iprobe(before, 99, &flag, MPI_STATUS_IGNORE), "iprobe");
    sched_yield();
  }
  check(small == before, "a receive whose request was freed: %d", small);
}

/// Every collective on random ranges compared with MPI, several at once.
void random_collectives(int rounds) {
  std::mt19937 random(42);  // the same on all ranks
  std::minstd_rand own(static_cast<unsigned>(world_rank) + 1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  MPI_Datatype strided;  // two ints, a gap after each
  MPI_Type_vector(2, 1, 2, MPI_INT, &strided);
  MPI_Datatype resized;
  MPI_Type_create_resized(strided, 0, 20, &resized);
  MPI_Type_commit(&resized);
  for (int round = 0; round < rounds; ++round) {
    int first = below(world_size), last = below(world_size);
    const int stride = first <= last ? 1 + below(2) : -1 - below(2);
    const Comm mine = world.part(first, last, stride).with_context(below(2));
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, mine.member() ? 0 : MPI_UNDEFINED, mine.member() ? mine.rank() : 0, &comm);
    const int count = std::array{0, 1, 5, 700, 9000}[static_cast<std::size_t>(below(5))];
    const int root = below(mine.size()), op = below(3);
    const bool gappy = below(3) == 0, in_place = below(3) == 0;
    const int late = below(world_size), delay = below(3) == 0 ? below(2000) : 0;
    if (!mine.member()) continue;
    if (world_rank == late) std::this_thread::sleep_for(std::chrono::microseconds(delay));
    const int p = mine.size(), me = mine.rank();
    const MPI_Datatype type = gappy ? resized : MPI_INT;
    const int ints = gappy ? 5 : 1;
    const auto size = [&](int n) { return static_cast<std::size_t>(n * std::max(ints, 2) * p + 64); };
    std::vector<int> in(size(count)), a(size(count)), b;
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] =
          static_cast<int>(i * 7919 + static_cast<std::size_t>(me) * 104729 + static_cast<std::size_t>(round)) % 1000;
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<int>(i * 31 + static_cast<std::size_t>(me) * 17) % 1000;
    b = a;
    const MPI_Op mpi_op = op == 0 ? MPI_SUM : op == 1 ? MPI_MAX : MPI_BXOR;
    std::vector<MPI_Count> counts(static_cast<std::size_t>(p)), other(static_cast<std::size_t>(p));
    std::vector<MPI_Aint> places(static_cast<std::size_t>(p)), other_places(static_cast<std::size_t>(p));
    std::vector<int> counts4, places4, other4, other_places4;
    for (int r = 0; r < p; ++r) {
      // Block sizes of a matrix that all ranks know: rank i sends block(i, j) to j.
      const auto block = [&](int i, int j) { return count == 0 ? 0 : (i * 3 + j * 5 + round) % (count + 1); };
      counts[static_cast<std::size_t>(r)] = block(r, me);
      other[static_cast<std::size_t>(r)] = block(me, r);
      places[static_cast<std::size_t>(r)] = (p - 1 - r) * count;
      other_places[static_cast<std::size_t>(r)] = r * count;
    }
    const int kind = round % 17;
    const void* const send = in_place ? MPI_IN_PLACE : static_cast<const void*>(in.data());
    // Gatherv and similar collectives: the size of a block does not depend on the receiver.
    if (kind == 11 || kind == 12 || kind == 13)
      for (int r = 0; r < p; ++r)
        counts[static_cast<std::size_t>(r)] = other[static_cast<std::size_t>(r)] =
            count == 0 ? 0 : (r * 3 + round) % (count + 1);
    if (kind == 14 && in_place)
      for (int r = 0; r < p; ++r)
        counts[static_cast<std::size_t>(r)] = other[static_cast<std::size_t>(r)] =
            count == 0 ? 0 : (r + me + round) % (count + 1);
    for (int r = 0; r < p; ++r) {
      counts4.push_back(static_cast<int>(counts[static_cast<std::size_t>(r)]));
      places4.push_back(static_cast<int>(places[static_cast<std::size_t>(r)]));
      other4.push_back(static_cast<int>(other[static_cast<std::size_t>(r)]));
      other_places4.push_back(static_cast<int>(other_places[static_cast<std::size_t>(r)]));
    }
    const MPI_Count n = count;
    const void* const rooted_send = in_place && me == root ? MPI_IN_PLACE : static_cast<const void*>(in.data());
    void* const rooted_a = in_place && me == root ? MPI_IN_PLACE : static_cast<void*>(a.data());
    void* const rooted_b = in_place && me == root ? MPI_IN_PLACE : static_cast<void*>(b.data());
    Request request = nullptr, beside = nullptr;
    int one = 1, members = 0;
    if (round % 2) good(mine.iallreduce(&one, &members, MPI_Count{1}, MPI_INT, MPI_SUM, &beside), "beside");
    int rc = MPI_SUCCESS;
    // In two of three rounds, each rank chooses by itself between the forms. The ranks that block run straight while
    // nothing is beside. The others wait before they call MPI, which would not advance their collective.
    const bool mixed = round % 3 != 0, blocking = mixed && own() % 2;
    const auto settle = [&](int code) {
      return mixed && code == MPI_SUCCESS ? latecomer_range_wait(&request, MPI_STATUS_IGNORE) : code;
    };
#define LATECOMER_EITHER(name, ...) (blocking ? mine.name(__VA_ARGS__) : settle(mine.i##name(__VA_ARGS__, &request)))
    // Messages that the straight receives must keep for others.
    const bool foreign = round % 4 == 0 && p > 1;
    if (foreign) good(mine.send(&me, 1, MPI_INT, (me + 1) % p, 77), "send");
    switch (kind) {
      case 0:
        rc = blocking ? mine.barrier() : settle(mine.ibarrier(&request));
        break;
      case 1:
        rc = LATECOMER_EITHER(bcast, a.data(), n, type, root);
        MPI_Bcast(b.data(), count, type, root, comm);
        break;
      // MPICH 4.0.2 crashes in a reduce in place to a root other than 0 (more than 2 KiB). Do not use in place then.
      case 2:
        rc = LATECOMER_EITHER(reduce, in.data(), a.data(), n, MPI_INT, mpi_op, root);
        MPI_Reduce(in.data(), b.data(), count, MPI_INT, mpi_op, root, comm);
        break;
      case 3:
        rc = LATECOMER_EITHER(allreduce, send, a.data(), n, MPI_INT, mpi_op);
        MPI_Allreduce(send, b.data(), count, MPI_INT, mpi_op, comm);
        break;
      case 4:
        rc = LATECOMER_EITHER(scan, send, a.data(), n, MPI_INT, mpi_op);
        MPI_Scan(send, b.data(), count, MPI_INT, mpi_op, comm);
        break;
      case 5:
        rc = LATECOMER_EITHER(exscan, send, a.data(), n, MPI_INT, mpi_op);
        MPI_Exscan(send, b.data(), count, MPI_INT, mpi_op, comm);
        break;
      case 6:
        rc = LATECOMER_EITHER(reduce_scatter_block, send, a.data(), n, MPI_INT, mpi_op);
        MPI_Reduce_scatter_block(send, b.data(), count, MPI_INT, mpi_op, comm);
        break;
      case 7:
        rc = LATECOMER_EITHER(gather, rooted_send, n, type, a.data(), n, type, root);
        MPI_Gather(rooted_send, count, type, b.data(), count, type, root, comm);
        break;
      case 8:
        rc = LATECOMER_EITHER(scatter, in.data(), n, type, rooted_a, n, type, root);
        MPI_Scatter(in.data(), count, type, rooted_b, count, type, root, comm);
        break;
      case 9:
        rc = LATECOMER_EITHER(allgather, send, n, type, a.data(), n, type);
        MPI_Allgather(send, count, type, b.data(), count, type, comm);
        break;
      case 10:
        rc = LATECOMER_EITHER(alltoall, send, n, type, a.data(), n, type);
        MPI_Alltoall(send, count, type, b.data(), count, type, comm);
        break;
      case 11:
        rc = LATECOMER_EITHER(gatherv, rooted_send, counts[static_cast<std::size_t>(me)], type, a.data(), counts.data(),
                              places.data(), type, root);
        MPI_Gatherv(rooted_send, counts4[static_cast<std::size_t>(me)], type, b.data(), counts4.data(), places4.data(),
                    type, root, comm);
        break;
      case 12:
        rc = LATECOMER_EITHER(scatterv, in.data(), counts.data(), places.data(), type, rooted_a,
                              counts[static_cast<std::size_t>(me)], type, root);
        MPI_Scatterv(in.data(), counts4.data(), places4.data(), type, rooted_b, counts4[static_cast<std::size_t>(me)],
                     type, root, comm);
        break;
      case 13:
        rc = LATECOMER_EITHER(allgatherv, send, counts[static_cast<std::size_t>(me)], type, a.data(), counts.data(),
                              places.data(), type);
        MPI_Allgatherv(send, counts4[static_cast<std::size_t>(me)], type, b.data(), counts4.data(), places4.data(),
                       type, comm);
        break;
      case 14:
        rc = LATECOMER_EITHER(alltoallv, send, other.data(), other_places.data(), type, a.data(), counts.data(),
                              places.data(), type);
        MPI_Alltoallv(send, other4.data(), other_places4.data(), type, b.data(), counts4.data(), places4.data(), type,
                      comm);
        break;
      // Different types of one signature on both sides.
      case 15:
        rc = LATECOMER_EITHER(gather, in.data(), 2 * n, MPI_INT, a.data(), n, gappy ? resized : MPI_2INT, root);
        MPI_Gather(in.data(), 2 * count, MPI_INT, b.data(), count, gappy ? resized : MPI_2INT, root, comm);
        break;
      default: {  // MPI cannot reduce a type with gaps by itself: use pairs, in order
        std::vector<Pair> x(static_cast<std::size_t>(count) + 1, Pair{me + 2, 3 * me + 1}), y(x.size()), z(x.size());
        rc = LATECOMER_EITHER(reduce, x.data(), y.data(), n, pair_type, affine_op, root);
        good(latecomer_range_wait(&request, MPI_STATUS_IGNORE), "wait");
        MPI_Reduce(x.data(), z.data(), count, pair_type, affine_op, root, comm);
        for (int i = 0; i < count && me == root; ++i)
          check(y[static_cast<std::size_t>(i)] == z[static_cast<std::size_t>(i)], "round %d: a reduction in order",
                round);
      }
    }
#undef LATECOMER_EITHER
    if (foreign) {
      int from = -1;
      good(mine.recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_STATUS_IGNORE), "recv");
      check(from == (me + p - 1) % p, "round %d: a message from %d", round, from);
    }
    good(rc, "a collective");
    Request both[2] = {request, beside};
    rc = latecomer_range_waitall(2, both, MPI_STATUSES_IGNORE);
    check(rc == MPI_SUCCESS, "round %d, kind %d: error class %d", round, kind, rc);
    if (round % 2) check(members == p, "round %d: beside: %d", round, members);
    const bool undefined = kind == 5 && me == 0;  // exscan on rank 0
    if (kind == 6 && in_place) {                  // MPI may leave any value after these
      a.resize(static_cast<std::size_t>(count));
      b.resize(static_cast<std::size_t>(count));
    }
    if (!undefined && a != b) {
      std::size_t at = 0;
      while (a[at] == b[at]) ++at;
      check(false, "round %d, kind %d, %d of %d ranks (%d..%d by %d), count %d%s%s, root %d: [%zu] is %d, natively %d",
            round, kind, me, p, first, last, stride, count, gappy ? ", gaps" : "", in_place ? ", in place" : "", root,
            at, a[at], b[at]);
    }
    MPI_Comm_free(&comm);
  }
  MPI_Type_free(&strided);
  MPI_Type_free(&resized);
}

/// More than 2 GiB in one message, if the machine has the memory.
void large() {
  const MPI_Count bytes = (MPI_Count{1} << 31) + 4097;
  std::vector<char> data(static_cast<std::size_t>(bytes), static_cast<char>(world_rank));
  MPI_Status status;
  if (world_rank == 0) {
    data.back() = 77;
    good(world.send(data.data(), bytes, MPI_CHAR, 1, 1), "a long send");
  }
  if (world_rank == 1) {
    good(world.recv(data.data(), bytes, MPI_CHAR, 0, 1, &status), "a long receive");
    MPI_Count got = 0;
    MPI_Get_elements_x(&status, MPI_CHAR, &got);
    check(data.back() == 77 && data.front() == 0 && got == bytes, "a long message");
  }
}

/// Threads, each with its own context.
void threads() {
  int level = 0;
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE) return;
  std::vector<std::thread> all;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    all.emplace_back([t, &wrong] {
      const Comm mine = world.with_context(100 + t);
      for (int i = 0; i < 40; ++i) {
        int in = world_rank + t, sum = 0, got = -1;
        const int next = (world_rank + 1) % world_size, before = (world_rank + world_size - 1) % world_size;
        if (mine.allreduce(&in, &sum, 1, MPI_INT, MPI_SUM) != MPI_SUCCESS ||
            sum != world_size * (world_size - 1) / 2 + t * world_size)
          ++wrong;
        if (mine.sendrecv(&in, 1, MPI_INT, next, 0, &got, 1, MPI_INT, before, 0, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
            got != before + t)
          ++wrong;
      }
    });
  // The threads hold the library while MPI waits here, and MPI the core while they wait.
  const int next = (world_rank + 1) % world_size, before = (world_rank + world_size - 1) % world_size;
  for (int i = 0; i < 40; ++i) {
    int got = -1;
    Request request;
    MPI_Request handle;
    good(world.irecv(&got, MPI_Count{1}, MPI_INT, before, 40, &request), "irecv");
    good(latecomer_range_to_mpi_request(&request, &handle), "to_mpi_request");
    good(world.send(&world_rank, 1, MPI_INT, next, 40), "send");
    MPI_Wait(&handle, MPI_STATUS_IGNORE);
    if (got != before) ++wrong;
  }
  for (auto& t : all) t.join();
  check(wrong == 0, "%d wrong in threads", wrong.load());
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  const bool threaded = argc > 2 && std::strcmp(argv[2], "threads") == 0;
  MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Type_contiguous(2, MPI_LONG_LONG, &pair_type);
  MPI_Type_commit(&pair_type);
  MPI_Op_create(affine, 0, &affine_op);
  good(world.attach(MPI_COMM_WORLD), "attach");
  check(Comm().attach(MPI_COMM_NULL) == MPI_ERR_COMM, "attach to nothing");
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  if (argc > 2 && std::strcmp(argv[2], "large") == 0) {
    large();
  } else {
    if (world_size == 8) {
      members();
      many();
      noncommutative();
      zero_counts();
    }
    if (world_size == 7) two_halves();
    if (world_size == 5) {
      overlapping();
      probing();
    }
    if (world_size == 4) any_source();
    late_ranks();
    crossed();
    lengths();
    details();
    exported();
    random_collectives(rounds);
    if (threaded) threads();
    // Frees a communicator of the program with an unreceived message.
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    Comm on_own;
    good(on_own.attach(own), "attach");
    if (world_rank == 0) good(on_own.send(&level, 1, MPI_INT, world_size - 1, 0), "send");
    good(on_own.barrier(), "barrier");
    MPI_Comm_free(&own);
    check(on_own.barrier() == MPI_ERR_COMM, "a range of a communicator that is gone");
  }
  MPI_Type_free(&pair_type);
  MPI_Op_free(&affine_op);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0 && all == 0) std::printf("ranges are right\n");
  // A message sent before MPI_Finalize arrives. Its size is near the limit above which MPI waits for the receiver.
  std::vector<char> last(8192, static_cast<char>(world_rank));
  if (world_size > 1 && world_rank == 0)
    good(world.send(last.data(), 8192, MPI_CHAR, world_size - 1, 1), "a last send");
  if (world_size > 1 && world_rank == world_size - 1) {
    nap(300);
    good(world.recv(last.data(), 8192, MPI_CHAR, 0, 1, MPI_STATUS_IGNORE), "a last receive");
    check(last[8191] == 0, "the last message");
    all += failures;
  }
  MPI_Finalize();
  return all != 0;
}
