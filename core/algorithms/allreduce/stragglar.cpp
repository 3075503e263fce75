// SPDX-License-Identifier: BSD-3-Clause
// allreduce/stragglar. A reduce-scatter of the early ranks, then one exchange of each of them with the late rank.
// Steps: The P - 1 ranks that arrive first scatter the sum of their contributions around a ring. In round r after the
// last arrival, the late rank and the owner of segment r exchange their shares, and both add. A finished segment
// spreads among the early ranks meanwhile. Each round serves the segment with the fewest copies first. A receiver is
// the rank that exchanges next with the late rank.
// Cost: one rank late: (P - 2 + log2 P) (alpha + N/(P-1) beta) with the publication's matching, for P ranks and N
// bytes. This matching takes 4, 10, 20, 39, 74 rounds on 4, 8, 16, 32, 64 ranks instead of 4, 9, 18, 35, 68. Operands:
// rotated order of arrival, so commutative operators only. Buffers: 2 segments of scratch. Source: Devraj et al. 2025
// (arXiv 2505.23523). A baseline. The rounds are found anew here.
#include <algorithm>

#include "core/algorithms/clairvoyant/walk.hpp"

namespace latecomer::core::algorithms::allreduce {
namespace {

using clairvoyant::kBoth, clairvoyant::kFinished, clairvoyant::kShare;

/// Rows of the plan. Owners and segments have the numbers of the early ranks' places.
std::vector<int> rows_of(const Instance& in) {
  const int early = in.call.ranks - 1;
  const auto at = [](auto& list, int i) -> auto& { return list[static_cast<std::size_t>(i)]; };
  std::vector<int> out;
  const auto add = [&](int round, int src, int dst, int segment, int kind) {
    const Rank from = at(in.order, src), to = at(in.order, dst), only = in.parameters.only;
    if (only < 0 || from == only || to == only) out.insert(out.end(), {round, from, to, segment, kind});
  };
  if (early == 1) {  // an exchange would add in two orders
    add(0, 0, 1, 0, kShare);
    add(1, 1, 0, 0, kFinished);
    return out;
  }
  const auto turn = [early](int x) { return (x % early + early) % early; };
  for (int q = 0; q < early - 1; ++q)
    for (int p = 0; p < early; ++p) add(q, p, turn(p + 1), turn(p - 1 - q), kShare);
  // [segment][place]: whether the place has the finished segment.
  std::vector<std::vector<char>> has(static_cast<std::size_t>(early), std::vector<char>(in.order.size(), 0));
  std::vector<int> copies(static_cast<std::size_t>(early), 0), live;
  for (int t = 0; t < early || !live.empty(); ++t) {
    const int round = early - 1 + t;
    std::vector<char> sends(in.order.size(), 0), receives = sends;
    if (t < early) {
      add(round, early, t, t, kBoth);
      at(sends, t) = at(receives, t) = at(sends, early) = 1;
    }
    std::stable_sort(live.begin(), live.end(), [&](int x, int y) { return at(copies, x) < at(copies, y); });
    for (const int j : live) {
      auto& mine = at(has, j);
      const std::vector<char> before = mine;
      int dst = t;
      for (int src = 0; src <= early; ++src) {
        if (!at(before, src) || at(sends, src)) continue;
        while (dst < t + early && (at(mine, turn(dst)) || at(receives, turn(dst)))) ++dst;
        if (dst == t + early) break;
        at(sends, src) = at(receives, turn(dst)) = at(mine, turn(dst)) = 1;
        ++at(copies, j);
        add(round, src, turn(dst), j, kFinished);
      }
    }
    std::erase_if(live, [&](int j) { return at(copies, j) == in.call.ranks; });
    if (t >= early) continue;
    at(at(has, t), t) = at(at(has, t), early) = 1;
    at(copies, t) = 2;
    live.push_back(t);
  }
  return out;
}

}  // namespace

Schedule stragglar(const Instance& instance, Rank me) {
  return clairvoyant::schedule_from_rows(
      instance, me,
      instance.call.ranks > 1 ? instance.shared([&] { return rows_of(instance); }) : std::span<const int>(),
      std::max(1, instance.call.ranks - 1));
}

}  // namespace latecomer::core::algorithms::allreduce
