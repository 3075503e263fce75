// SPDX-License-Identifier: BSD-3-Clause
// Statements of Axtmann, Wiebigke and Sanders 2018 about figures 5 to 7, in the model. A range is created locally. For
// an MPI communicator the model has the least that MPICH 4 does. The members agree on a context by an allreduce of a
// mask, and each member writes a table of all members. MPI_Comm_split precedes this by an allgather of color and key
// over the parent.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "profiles/papers/modelled.hpp"
#include "profiles/papers/papers.hpp"

namespace latecomer::profiles::papers {
namespace {

constexpr int kRanks = 1 << 15;  // as in the paper
// In ns. A range is created by a few additions, which take less than 10 ns. A greater value makes ranges look worse.
constexpr double kRange = 10;
// Per member of a communicator's table. Looking up a process and writing its entry takes 2.4 ns (2^15 members, cold
// caches, a virtual machine), and the rest is for other work of MPICH. A greater value makes MPI look worse.
constexpr double kMember = 10;
constexpr core::Bytes kMask = 260;       // derived: 64 words of MPICH's mask of contexts and one flag
constexpr core::Bytes kColorAndKey = 8;  // two ints
constexpr core::Bytes kEnvelope = 40;    // in front of a range's message: shim/range/hub.hpp

struct RangeTimes {
  double all, root;  ///< ns until the last process is done, and until rank 0 is done
};
RangeTimes times(core::Collective op, std::string_view algorithm, int ranks, core::Bytes bytes) {
  static const core::Network net = network("fdr,overhead=0.3us");
  static std::map<std::tuple<core::Collective, int, core::Bytes>, RangeTimes> known;
  const auto [at, fresh] = known.try_emplace({op, ranks, bytes}, RangeTimes{});
  if (!fresh) return at->second;
  const auto found = modelled({op, ranks, 0, bytes, 1, false, true}, algorithm, {}, net);
  return at->second = {static_cast<double>(found.run_time), static_cast<double>(found.finish[0])};
}

double create_group(int members) {
  return times(core::Collective::allreduce, "recursive_doubling", members, kMask).all + kMember * members;
}
double split(int parents, int members) {
  return times(core::Collective::allgather, "recursive_doubling", parents, kColorAndKey).all + create_group(members);
}
/// Consecutive broadcasts: each begins as soon as the root has sent the one before.
double broadcasts_ns(int many, int ranks, core::Bytes bytes) {
  const RangeTimes one = times(core::Collective::bcast, "binomial", ranks, bytes);
  return one.all + (many - 1) * one.root;
}

/// The ratio of the times with MPI and with ranges, for creating the first half and `many` broadcasts there. Returns
/// the least and the greatest ratio over vectors of 1 to 2^10 doubles.
std::pair<double, double> broadcasts(int many, bool by_split) {
  const int half = kRanks / 2;
  const double creation = by_split ? split(kRanks, half) : create_group(half);
  double least = INFINITY, most = 0;
  for (const core::Bytes doubles : {1, 16, 256, 1024}) {
    const double ratio = (creation + broadcasts_ns(many, half, 8 * doubles)) /
                         (kRange + broadcasts_ns(many, half, 8 * doubles + kEnvelope));
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
  return {least, most};
}

}  // namespace

std::vector<Table> ranges() {
  auto tables = printed("004");
  const std::string conditions =
      ", 2^15 processes, fdr with 0.3 us of processor time per message and side; least communicator creation of "
      "MPICH 4";
  const std::string machine =
      "The printed factors contain the creation times of Intel MPI and IBM MPI, up to hundreds of times the least "
      "possible time. The model has the least possible time.";
  compute(tables, "figure 5", "ratios of creation times, both halves" + conditions, 2,
          machine + " Only the table of members, one part of the model's creation time, grows linearly.", [](Cell& c) {
            const int half = kRanks / 2;
            c.ours = c.row.starts_with("communicator")     ? create_group(half) / kRange
                     : c.row.starts_with("MPI_Comm_split") ? split(kRanks, half) / create_group(half)
                                                           : create_group(half) / create_group(half / 2);
          });
  compute(tables, "figure 6", "a chain of overlapping communicators of four: ratios of creation times" + conditions, 0,
          "", [](Cell& c) {
            // Cascaded: each communicator waits for its left neighbour. Alternating: a shared process creates two
            // communicators. A range costs each process two additions.
            const double one = create_group(4), chain = (kRanks - 1) / 3;
            c.ours = c.row.ends_with("ranges") ? chain * one / (2 * kRange) : chain * one / (2 * one);
          });
  compute(tables, "figure 7",
          "creation of the first half and broadcasts there, time with MPI over time with ranges" + conditions +
              " (Intel MPI: MPI_Comm_create_group, IBM MPI: MPI_Comm_split)",
          1, machine, [](Cell& c) {
            const auto [least, most] = broadcasts(static_cast<int>(leading_number(c.row)), c.row.ends_with("IBM MPI"));
            c.ours = c.column == "least" ? least : most;
          });
  compute(tables, "figure 8", "Janus Quicksort, time with MPI over time with ranges", 1,
          "Sorting moves real data, and this command does not. The program `ranges_cluster` of the build sorts on 2^15 "
          "modelled processes; docs/results/ranges.md has its figures.",
          [](Cell&) {});
  return tables;
}

}  // namespace latecomer::profiles::papers
