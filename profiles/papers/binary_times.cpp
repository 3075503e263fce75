// SPDX-License-Identifier: BSD-3-Clause
// The time of the best ordered binary tree in O(p^2), where arrivals and latency are zero and copying costs no more per
// byte than sending. Finds times only; core::trees::binary finds the tree, in O(p^3). Source: Träff 2019, the equations
// for binary trees.
//
// Let B(i,j), the least time over ranks i..j, grow under inclusion. A node with two children splits its range at some
// k. The first child's side then grows with k and the second child's falls. So a first k* exists where the first side
// is not the smaller one, and k* never falls with j. Below k* the second side counts, and the largest k is the best.
// From k* on the first side counts. There the smallest k is the best, except that
// - the second message costs no start-up where it is empty, which gives one more candidate, and
// - a root in the middle does not send its own block, which a monotone queue over the window from k* on takes into
// account. The program checks the growth of B for every range, and gives up where it does not hold.
#include "profiles/papers/binary_times.hpp"

#include <algorithm>
#include <deque>
#include <limits>

namespace latecomer::profiles::papers {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// k* of one kind of split: the first k with left(k) >= right(k). Moves forward with j.
struct Turn {
  int k;
  template <typename Left, typename Right>
  void move(int last, Left left, Right right) {
    while (k <= last && left(k) < right(k)) ++k;
  }
};

}  // namespace

std::optional<BinaryTimes> binary_times(const core::TreeProblem& p, core::Rank root) {
  const int n = p.ranks();
  if (!p.homogeneous() || p.gamma.size() != 1 || p.gamma[0] > p.beta[0] || p.latency != 0 || !p.arrivals.empty() ||
      p.whole)
    return std::nullopt;
  const double alpha = p.alpha[0], beta = p.beta[0], gamma = p.gamma[0];
  std::vector<double> sum{0};
  std::vector<int> zeros(
      at(n));  // where the run of empty blocks that ends here begins; one beyond, if this block is none
  for (int i = 0; i < n; ++i) {
    sum.push_back(sum.back() + p.sizes[at(i)]);
    zeros[at(i)] = p.sizes[at(i)] != 0 ? i + 1 : i > 0 ? zeros[at(i - 1)] : 0;
  }
  const auto message = [&](int a, int b) {
    const double size = sum[at(b + 1)] - sum[at(a)];
    return size == 0 ? 0 : alpha + beta * size;
  };
  std::vector<double> rows(at(n) * at(n), 0), columns(rows);  // B by rows, and by columns
  BinaryTimes out;
  for (int i = n - 1; i >= 0; --i) {
    double* const row = &rows[at(i) * at(n)];
    const double* const below = i + 1 < n ? row + n : row;
    const double own = gamma * p.sizes[at(i)];
    Turn first{i + 1}, middle{i + 1}, last{i};
    std::deque<int> window;
    const auto key = [&](int k) {
      return row[k - 1] + (sum[at(k)] != sum[at(i)] ? alpha : 0) - (beta - gamma) * p.sizes[at(k)];
    };
    for (int j = i + 1; j < n; ++j) {
      const double *const column = &columns[at(j) * at(n)], *const before = column - n;
      const double copy = gamma * p.sizes[at(j)];
      // The time with the root at the left end, at r, and at the right end, after two messages.
      const auto left_end = [&](int k) {
        return std::max(std::max(own, below[k]) + message(i + 1, k), column[k + 1]) + message(k + 1, j);
      };
      const auto inside = [&](int r) {
        return std::max(row[r - 1] + message(i, r - 1) + gamma * p.sizes[at(r)], column[r + 1]) + message(r + 1, j);
      };
      const auto right_end = [&](int k) {
        return std::max(row[k] + message(i, k), before[k + 1]) + message(k + 1, j - 1) + copy;
      };
      const double one_left = std::max(own, below[j]) + message(i + 1, j),
                   one_right = row[j - 1] + message(i, j - 1) + copy;
      double best = std::min(one_left, one_right);
      const auto consider = [&best](int from, int to, int k, const auto& time) {
        if (k >= from && k <= to) best = std::min(best, time(k));
      };
      const int empty = zeros[at(j)] - 1;  // the first k after which all blocks up to j are empty
      first.move(
          j - 1, [&](int k) { return std::max(own, below[k]) + message(i + 1, k); },
          [&](int k) { return column[k + 1]; });
      for (const int k : {first.k - 1, first.k, std::max(first.k, empty)}) consider(i + 1, j - 1, k, left_end);
      if (j - 1 > i) {
        while (!window.empty() && key(window.back()) >= key(j - 1)) window.pop_back();
        window.push_back(j - 1);
      }
      middle.move(
          j - 1, [&](int k) { return row[k - 1] + message(i, k - 1) + gamma * p.sizes[at(k)]; },
          [&](int k) { return column[k + 1]; });
      while (!window.empty() && window.front() < middle.k) window.pop_front();
      for (const int k : {middle.k - 1, std::max(middle.k, empty), std::max(middle.k, empty + 1)})
        consider(i + 1, j - 1, k, inside);
      if (!window.empty()) consider(i + 1, j - 1, window.front(), inside);
      last.move(
          j - 2, [&](int k) { return row[k] + message(i, k); }, [&](int k) { return before[k + 1]; });
      for (const int k : {last.k - 1, last.k, std::max(last.k, zeros[at(j - 1)] - 1)}) consider(i, j - 2, k, right_end);
      if (best < below[j] || best < row[j - 1]) return std::nullopt;
      if (i == 0 && j == n - 1) {
        out.free = best;
        best = std::numeric_limits<double>::infinity();
        if (root == i) {
          best = one_left;
          for (int k = i + 1; k < j; ++k) best = std::min(best, left_end(k));
        } else if (root == j) {
          best = one_right;
          for (int k = i; k < j - 1; ++k) best = std::min(best, right_end(k));
        } else {
          best = inside(root);
        }
        out.given = best;
      }
      row[j] = columns[at(j) * at(n) + at(i)] = best;
    }
  }
  return out;
}

}  // namespace latecomer::profiles::papers
