// SPDX-License-Identifier: BSD-3-Clause
// latecomer/rbc.hpp: the names of RBC do what RBC documents. Two ranks or more.
#include <algorithm>
#include <cstdio>
#include <latecomer/rbc.hpp>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace {

int failures = 0;

void check(bool ok, const char* what) {
  if (ok) return;
  ++failures;
  std::fprintf(stderr, "rbc: %s is wrong\n", what);
}

void merge(void* begin1, void* end1, void* begin2, void* end2, void* out) {
  std::merge(static_cast<int*>(begin1), static_cast<int*>(end1), static_cast<int*>(begin2), static_cast<int*>(end2),
             static_cast<int*>(out));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  RBC::Comm world;
  check(RBC::Create_Comm_from_MPI(MPI_COMM_WORLD, &world) == MPI_SUCCESS, "the first communicator");
  int rank = -1, size = 0;
  RBC::Comm_rank(world, &rank);
  RBC::Comm_size(world, &size);

  // Every second rank, backwards in MPI's numbering there and back.
  RBC::Comm odd;
  RBC::Comm_create_group(world, &odd, 1, size - 1, 2);
  check(odd.isEmpty() == (rank % 2 == 0), "membership");
  if (!odd.isEmpty()) {
    check(odd.getMpiFirst() == 1 && odd.getStride() == (odd.getSize() > 1 ? 2 : 1) &&
              odd.RangeRankToMpiRank(odd.getRank()) == rank && odd.MpiRankToRangeRank(rank) == rank / 2 &&
              !odd.includesMpiRank(0),
          "the numbers of a range");
    // Two broadcasts with different tags, begun in different orders.
    int a = odd.getRank() == 0 ? 7 : -1, b = odd.getRank() == 0 ? 8 : -1;
    RBC::Request requests[2];
    for (int k = 0; k < 2; ++k)
      if ((k + odd.getRank()) % 2) RBC::Ibcast(&a, 1, MPI_INT, 0, odd, &requests[0], 1);
      else RBC::Ibcast(&b, 1, MPI_INT, 0, odd, &requests[1], 2);
    RBC::Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(a == 7 && b == 8, "broadcasts with tags");
    // The source of a status is MPI's rank.
    const int to = (odd.getRank() + 1) % odd.getSize(), from = (odd.getRank() + odd.getSize() - 1) % odd.getSize();
    int got = -1;
    MPI_Status status;
    RBC::Sendrecv(&rank, 1, MPI_INT, to, 5, &got, 1, MPI_INT, from, 5, odd, &status);
    check(got == odd.RangeRankToMpiRank(from) && status.MPI_SOURCE == got &&
              RBC::get_Rank_from_Status(odd, status) == from,
          "a status");
    RBC::Request receive;
    MPI_Request send;
    RBC::Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 6, odd, &receive);
    RBC::Isend(&to, 1, MPI_INT, to, 6, odd, &send);
    RBC::Wait(&receive, &status);
    RBC::Wait(&send, MPI_STATUS_IGNORE);
    check(got == odd.getRank() && RBC::get_Rank_from_Status(odd, status) == from, "a receive from any source");
  }

  // Rank r has r + 1 numbers. Merged, they are 0, 1, 2, ....
  std::vector<int> mine(static_cast<std::size_t>(rank) + 1);
  const int total = size * (size + 1) / 2;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    // The i-th number of rank r is the r-th that any rank with more than i numbers has in row i.
    int row = 0;
    for (int k = 0; k < static_cast<int>(i); ++k) row += size - k;
    mine[i] = row + rank - static_cast<int>(i);
  }
  std::vector<int> expected(static_cast<std::size_t>(total)), all(expected.size(), -1);
  std::iota(expected.begin(), expected.end(), 0);
  for (int root = 0; root < size; ++root) {
    std::fill(all.begin(), all.end(), -1);
    RBC::Gatherm(mine.data(), rank + 1, MPI_INT, all.data(), total, root, merge, world);
    check(rank != root || all == expected, "a gather that merges");
  }
  std::fill(all.begin(), all.end(), -1);
  RBC::Request request;
  RBC::Iallgatherm(mine.data(), rank + 1, MPI_INT, all.data(), total, merge, world, &request);
  RBC::Wait(&request, MPI_STATUS_IGNORE);
  check(all == expected, "a gather that merges for all");

  int upto = -1, sum = -1;
  RBC::ScanAndBcast(&rank, &upto, &sum, 1, MPI_INT, MPI_SUM, world);
  check(upto == rank * (rank + 1) / 2 && sum == size * (size - 1) / 2, "the scan with broadcast");
  std::vector<int> counts, places;
  for (int r = 0; r < size; ++r) {
    counts.push_back(r + 1);
    places.push_back(r * (r + 1) / 2);
  }
  std::fill(all.begin(), all.end(), -1);
  RBC::Iallgatherv(mine.data(), rank + 1, MPI_INT, all.data(), counts.data(), places.data(), MPI_INT, world, &request);
  RBC::Wait(&request, MPI_STATUS_IGNORE);
  check(std::equal(mine.begin(), mine.end(), all.begin() + places[static_cast<std::size_t>(rank)]) &&
            all.back() == total - 1,
        "blocks of different sizes");

  // The choices among algorithms.
  namespace optimized = RBC::_internal::optimized;
  std::fill(all.begin(), all.end(), -1);
  optimized::AllgathervDissemination(mine.data(), rank + 1, MPI_INT, all.data(), total, MPI_INT, world);
  check(std::equal(mine.begin(), mine.end(), all.begin() + places[static_cast<std::size_t>(rank)]) &&
            all.back() == total - 1,
        "blocks of sizes that only their ranks know");
  for (const auto gather : {optimized::Allgather, optimized::AllgatherDissemination, optimized::AllgatherHypercube,
                            optimized::AllgatherPipeline}) {
    std::fill(all.begin(), all.end(), -1);
    gather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, world);
    check(std::equal(all.begin(), all.begin() + size, expected.begin()), "an allgather");
  }
  for (const auto reduce : {optimized::Allreduce, optimized::AllreduceHypercube, optimized::AllreduceScatterAllgather,
                            optimized::AllreduceTwotree}) {
    sum = -1;
    reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world);
    check(sum == size * (size - 1) / 2, "an allreduce");
  }
  for (const auto scan : {optimized::Scan, optimized::ScanTwotree}) {
    scan(&rank, &upto, 1, MPI_INT, MPI_SUM, world);
    check(upto == rank * (rank + 1) / 2, "a scan");
  }
  for (const auto scan : {optimized::Exscan, optimized::ExscanTwotree}) {
    scan(&rank, &upto, 1, MPI_INT, MPI_SUM, world);
    check(rank == 0 || upto == rank * (rank - 1) / 2, "an exclusive scan");
  }
  for (const auto bcast :
       {optimized::Bcast, optimized::BcastBinomial, optimized::BcastScatterAllgather, optimized::BcastTwotree}) {
    int value = rank == size - 1 ? 9 : -1;
    bcast(&value, 1, MPI_INT, size - 1, world);
    check(value == 9, "a broadcast");
  }
  optimized::ReduceTwotree(&rank, &sum, 1, MPI_INT, MPI_MAX, 0, world);
  check(rank != 0 || sum == size - 1, "a reduction");
  optimized::ScanAndBcastTwotree(&rank, &upto, &sum, 1, MPI_INT, MPI_SUM, world);
  check(upto == rank * (rank + 1) / 2 && sum == size * (size - 1) / 2, "the other scan with broadcast");
  std::ostringstream text;
  text << world;
  check(text.str().find(", 0/" + std::to_string(size - 1) + "/1)") != std::string::npos, "the text of a communicator");

  int anywhere = 0;
  RBC::Allreduce(&failures, &anywhere, 1, MPI_INT, MPI_SUM, world);
  if (rank == 0 && anywhere == 0) std::printf("the names of RBC are right\n");
  RBC::Barrier(world);
  MPI_Finalize();
  return anywhere != 0;
}
