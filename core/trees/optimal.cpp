// SPDX-License-Identifier: BSD-3-Clause
// The cheapest strongly ordered trees. Every node always holds one range of consecutive ranks that includes itself. One
// message joins the trees over two neighboring ranges. Source: Träff 2019 (IEEE TPDS 30), proposition 3, figures 5
// to 7. The symmetric form and the quadratic program are not in the paper.
//
// T(i,j), the least time to collect ranks i..j at one of them, is the least of
//   root i:       max(copy_i, T(i+1,j)) + c(i+1..j)
//   root j:       max(copy_j, T(i,j-1)) + c(i..j-1)
//   left sends:   max(T(i,k), T(k+1,j)) + c(i..k),    k = i .. j-2
//   right sends:  max(T(i,k), T(k+1,j)) + c(k+1..j),  k = i+1 .. j-1
// A receiver of one rank is a root that copies its own block first: these are the first two lines. A latency L is added
// to the sender's time and occupies no rank. The paper has no latency.
//
// O(p^2) suffices if T grows under inclusion: T(i,j) <= T(i,j+1) and T(i,j) <= T(i-1,j).
// - For fixed i and j, T(i,k) grows with k and T(k+1,j) falls. So a first k* has T(i,k) >= T(k+1,j). As j grows, k*
//   never falls. As i falls, k* never rises.
// - Left sends, k >= k*: the time is T(i,k) + c(i..k), which grows with k. The best k is k*.
// - Left sends, k < k*: the time is T(k+1,j) + beta P(k+1) plus a term without k, where P are the prefix sums. The best
//   time is a minimum over a window of column j. Both ends of the window move in one direction as i falls, so a
//   monotone queue gives the minimum in constant amortized time.
// - Right sends is the mirror image: k*-1, and a monotone queue per row.
// - A message of no bytes costs no start-up, so the formula with the start-up is too high for parts of size zero. These
//   parts add one candidate per side: the longest such part, because the other side is then the smallest.
// - A given root clips the windows, which stay monotone. With a latency, each sender has its own k*.
//
// T grows under inclusion if copy_i <= c(i) for every i, also with arrivals, where T(i,i) is the arrival of i. Proof:
// remove rank j+1 from a tree over i..j+1. If j+1 is a leaf, its message disappears and no other message is later.
// Otherwise let q be the sender of the first message to j+1. Rank q takes the place and all later messages of j+1. Rank
// q was ready when it sent that message. It has at most one more task than j+1 had: the copy of its own block. It saves
// the message, which takes at least as long as a message of q's own block, so at least as long as the copy. Ranges stay
// consecutive, because j+1 was at the end. So the tree over i..j is no slower. Tests compare with the cubic program.
#include <algorithm>
#include <limits>

#include "core/trees/tree.hpp"

namespace latecomer::core::trees {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// The least of f(first) ... f(last). Four independent minima shorten the chain of dependent comparisons.
template <typename F>
double least_of(int first, int last, F f) {
  double a = kNever, b = kNever, c = kNever, d = kNever;
  int k = first;
  for (; k + 3 <= last; k += 4) {
    const double fa = f(k), fb = f(k + 1), fc = f(k + 2), fd = f(k + 3);
    a = fa < a ? fa : a;
    b = fb < b ? fb : b;
    c = fc < c ? fc : c;
    d = fd < d ? fd : d;
  }
  for (; k <= last; ++k) a = std::min(a, f(k));
  return std::min(std::min(a, b), std::min(c, d));
}

/// [p + 1]: the sum of the block sizes before each rank, then of all.
std::vector<double> prefix_sums(const TreeProblem& problem) {
  std::vector<double> out{0};
  for (const double size : problem.sizes) out.push_back(out.back() + size);
  return out;
}

/// The state of the programs over ranges, for one alpha and one beta.
class Ranges {
 public:
  Ranges(const TreeProblem& problem, Rank root, TreeForm form)
      : problem_(problem),
        root_(root),
        form_(form),
        alpha_(problem.alpha[0]),
        beta_(problem.beta[0]),
        latency_(problem.latency),
        whole_(problem.whole ? problem.sizes[0] : 0),
        p_(problem.ranks()),
        times_(index(p_) * index(p_), kNever),
        sums_(prefix_sums(problem)) {
    for (int i = 0; i < p_; ++i) time(i, i) = problem.arrival(i);
  }
  double& time(int i, int j) { return times_[index(i) * index(p_) + index(j)]; }
  double time(int i, int j) const { return times_[index(i) * index(p_) + index(j)]; }
  /// A copy of time(i, j) in the lower triangle, so that the cubic program reads columns contiguously.
  double& mirror(int i, int j) { return times_[index(j) * index(p_) + index(i)]; }
  double sum(int i, int j) const { return sums_[index(j) + 1] - sums_[index(i)]; }
  double prefix(int i) const { return sums_[index(i)]; }
  double message(int i, int j) const {
    const double size = whole_ > 0 ? whole_ : sum(i, j);
    return alpha_ * (size != 0) + beta_ * size;  // branch-free
  }
  double lag(int i, int j) const { return latency_ * ((whole_ > 0 ? whole_ : sum(i, j)) != 0); }
  /// The time to join two neighboring ranges, if the left or the right one sends.
  double left_sends(double left, double right, int i, int k) const {
    return std::max(left + lag(i, k), right) + message(i, k);
  }
  double right_sends(double left, double right, int k, int j) const {
    return std::max(left, right + lag(k + 1, j)) + message(k + 1, j);
  }
  bool holds_root(int i, int j) const { return i <= root_ && root_ <= j; }
  int ranks() const { return p_; }
  Rank root() const { return root_; }

  double root_left(int i, int j) const {
    if (holds_root(i, j) && root_ != i) return kNever;
    return std::max(problem_.arrival(i) + problem_.copy(i), time(i + 1, j) + lag(i + 1, j)) + message(i + 1, j);
  }
  double root_right(int i, int j) const {
    if (holds_root(i, j) ? root_ != j : form_ == TreeForm::program && j == i + 1) return kNever;
    const double sent = time(i, j - 1) + lag(i, j - 1), message_in = message(i, j - 1);
    return form_ != TreeForm::exact ? std::max(problem_.arrival(j), sent) + message_in + problem_.copy(j)
                                    : std::max(problem_.arrival(j) + problem_.copy(j), sent) + message_in;
  }
  /// The largest k for which the left part may send, and the smallest k for which the right part may.
  int last_left(int i, int j) const { return holds_root(i, j) ? std::min(j - 2, root_ - 1) : j - 2; }
  int first_right(int i, int j) const { return holds_root(i, j) ? std::max(i + 1, root_) : i + 1; }

  /// Builds the tree from the times. Searches the cheapest division of each range again, in O(p) per node.
  RankTree tree() const {
    std::vector<Merge> merges;
    const Rank top = expand(0, p_ - 1, merges);
    RankTree out = tree_of(p_, top, merges);
    out.cost = time(0, p_ - 1);
    return out;
  }

 private:
  struct Division {
    double time = kNever;
    int k = 0;               ///< last rank of the left part
    bool leftwards = false;  ///< the right part sends
  };
  Division divide(int i, int j) const {
    Division best;
    const auto take = [&](double time, int k, bool leftwards) {
      if (time < best.time) best = {time, k, leftwards};
    };
    take(root_left(i, j), i, true);
    take(root_right(i, j), j - 1, false);
    for (int k = i; k <= last_left(i, j); ++k) take(left_sends(time(i, k), time(k + 1, j), i, k), k, false);
    for (int k = first_right(i, j); k < j; ++k) take(right_sends(time(i, k), time(k + 1, j), k, j), k, true);
    return best;
  }
  /// Appends the merges of a range in an order that keeps the order of each node's children. Returns the root.
  Rank expand(int first, int last, std::vector<Merge>& merges) const {
    // Post-order without recursion, because the tree may have p levels.
    struct Open {
      int i, j, stage;
      Division division;
      Rank left;
    };
    std::vector<Open> open{{first, last, 0, {}, -1}};
    Rank done = -1;
    while (!open.empty()) {
      Open& o = open.back();
      if (o.i == o.j) {
        done = o.i;
        open.pop_back();
        continue;
      }
      switch (o.stage++) {
        case 0: {
          o.division = divide(o.i, o.j);
          const int i = o.i, k = o.division.k;
          open.push_back({i, k, 0, {}, -1});
          break;
        }
        case 1: {
          o.left = done;
          const int k = o.division.k, j = o.j;
          open.push_back({k + 1, j, 0, {}, -1});
          break;
        }
        default: {
          const Rank left = o.left, right = done;
          merges.push_back(o.division.leftwards ? Merge{right, left} : Merge{left, right});
          done = o.division.leftwards ? left : right;
          open.pop_back();
        }
      }
    }
    return done;
  }

  const TreeProblem& problem_;
  const Rank root_;
  const TreeForm form_;
  const double alpha_, beta_, latency_, whole_;
  const int p_;
  std::vector<double> times_;
  std::vector<double> sums_;
};

/// A monotone queue: the minimum of a window whose ends move in one direction. Values grow from the oldest item on.
class Window {
 public:
  void add(int index, double value) {
    while (head_ < items_.size() && items_.back().value >= value) items_.pop_back();
    items_.push_back({index, value});
  }
  /// Removes the oldest items while they are outside the window.
  template <typename Outside>
  void forget(Outside outside) {
    while (head_ < items_.size() && outside(items_[head_].index)) ++head_;
    if (head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    }
  }
  double least() const { return head_ < items_.size() ? items_[head_].value : kNever; }

 private:
  struct Item {
    int index;
    double value;
  };
  std::vector<Item> items_;
  std::size_t head_ = 0;
};

}  // namespace

RankTree optimal_cubic(const TreeProblem& problem, Rank root, TreeForm form) {
  Ranges r(problem, root, form);
  const int p = r.ranks();
  for (int i = p - 1; i >= 0; --i)
    for (int j = i + 1; j < p; ++j) {
      double best = std::min(r.root_left(i, j), r.root_right(i, j));
      const double *row = &r.time(i, 0), *column = &r.mirror(0, j);
      best = std::min(best,
                      least_of(i, r.last_left(i, j), [&](int k) { return r.left_sends(row[k], column[k + 1], i, k); }));
      best = std::min(best, least_of(r.first_right(i, j), j - 1,
                                     [&](int k) { return r.right_sends(row[k], column[k + 1], k, j); }));
      r.time(i, j) = r.mirror(i, j) = best;
    }
  return r.tree();
}

bool quadratic_is_exact(const TreeProblem& problem) {
  for (Rank r = 0; r < problem.ranks(); ++r)
    if (problem.copy(r) > problem.message(r, r, problem.sizes[index(r)])) return false;
  return problem.homogeneous();
}

RankTree optimal_quadratic(const TreeProblem& problem, Rank root) {
  Ranges r(problem, root, TreeForm::exact);
  const int p = r.ranks();
  // In broadcasts and reductions, all messages have the same size.
  const double latency = problem.latency, alpha = problem.whole ? r.message(0, 0) : problem.alpha[0],
               beta = problem.whole ? 0 : problem.beta[0];
  std::vector<Window> columns(index(p));
  std::vector<int> zeros_from(index(p)),
      zeros_to(index(p));  // the other end of the run of empty blocks that begins, or ends, at a rank
  for (int i = p - 1; i >= 0; --i)
    zeros_from[index(i)] = problem.sizes[index(i)] > 0                     ? i - 1
                           : i + 1 < p && problem.sizes[index(i) + 1] == 0 ? zeros_from[index(i) + 1]
                                                                           : i;
  for (int j = 0; j < p; ++j)
    zeros_to[index(j)] = problem.sizes[index(j)] > 0                 ? j + 1
                         : j > 0 && problem.sizes[index(j) - 1] == 0 ? zeros_to[index(j) - 1]
                                                                     : j;
  for (int i = p - 1; i >= 0; --i) {
    Window row;
    int split = i, late_split = i;  // k* with the left part as sender, and as receiver; j if no k qualifies
    for (int j = i + 1; j < p; ++j) {
      while (split < j && r.time(i, split) + latency < r.time(split + 1, j)) ++split;
      while (late_split < j && r.time(i, late_split) < r.time(late_split + 1, j) + latency) ++late_split;
      double best = std::min(r.root_left(i, j), r.root_right(i, j));
      const auto left = [&](int k) { best = std::min(best, r.left_sends(r.time(i, k), r.time(k + 1, j), i, k)); };
      const auto right = [&](int k) { best = std::min(best, r.right_sends(r.time(i, k), r.time(k + 1, j), k, j)); };
      const int last = r.last_left(i, j), first = r.first_right(i, j);

      Window& column = columns[index(j)];
      if (i <= j - 2) column.add(i, r.time(i + 1, j) + beta * r.prefix(i + 1));
      column.forget([&](int k) { return k > last || k >= split; });
      best = std::min(best, column.least() + alpha - beta * r.prefix(i));
      if (split <= last) left(split);

      if (j - 1 > i) row.add(j - 1, r.time(i, j - 1) - beta * r.prefix(j));
      row.forget([&](int k) { return k < first || k < late_split; });
      best = std::min(best, row.least() + alpha + beta * r.prefix(j + 1));
      if (late_split - 1 >= first) right(late_split - 1);

      // The longest part of size zero on each side.
      if (const int k = std::min(zeros_from[index(i)], last); k >= i) left(k);
      if (const int k = std::max(zeros_to[index(j)] - 1, first); k < j && zeros_to[index(j)] <= j) right(k);
      r.time(i, j) = best;
    }
  }
  return r.tree();
}

namespace {

/// The times of trees over i..j by root: shape [i][j][root].
class ByRoot {
 public:
  explicit ByRoot(int p) : p_(p), times_(index(p) * index(p) * index(p), kNever) {}
  double& operator()(int i, int j, Rank r) { return times_[(index(i) * index(p_) + index(j)) * index(p_) + index(r)]; }

 private:
  int p_;
  std::vector<double> times_;
};

/// Calls visit(time, k, sender) for every division of i..j with receiver r.
template <typename Visit>
void divisions(const TreeProblem& p, ByRoot& t, const std::vector<double>& sums, int i, int j, Rank r, bool paper,
               Visit visit) {
  const auto size = [&](int a, int b) { return p.whole ? p.sizes[0] : sums[index(b) + 1] - sums[index(a)]; };
  for (int k = i; k < r; ++k)  // the left part sends
    for (Rank q = i; q <= k; ++q) {
      const double message = p.message(q, r, size(i, k)), sent = t(i, k, q) + p.lag(size(i, k));
      const bool leaf = k + 1 == r && r == j;
      if (leaf && paper) visit(std::max(p.arrival(r), sent) + message + p.copy(r), k, q);
      else visit(std::max(t(k + 1, j, r) + (leaf ? p.copy(r) : 0), sent) + message, k, q);
    }
  for (int k = r; k < j; ++k)
    for (Rank q = k + 1; q <= j; ++q)
      visit(std::max(t(i, k, r) + (i == k ? p.copy(r) : 0), t(k + 1, j, q) + p.lag(size(k + 1, j))) +
                p.message(q, r, size(k + 1, j)),
            k, q);
}

}  // namespace

RankTree optimal_nonhomogeneous(const TreeProblem& p, Rank root, bool paper) {
  const int n = p.ranks();
  const std::vector<double> sums = prefix_sums(p);
  ByRoot t(n);
  for (int i = 0; i < n; ++i) t(i, i, i) = p.arrival(i);
  for (int length = 2; length <= n; ++length)
    for (int i = 0, j = length - 1; j < n; ++i, ++j)
      for (Rank r = i; r <= j; ++r) {
        double best = kNever;
        divisions(p, t, sums, i, j, r, paper, [&](double time, int, Rank) { best = std::min(best, time); });
        t(i, j, r) = best;
      }
  Rank top = std::max(root, 0);
  for (Rank r = 0; root < 0 && r < n; ++r)
    if (t(0, n - 1, r) < t(0, n - 1, top)) top = r;
  std::vector<Merge> merges;
  const auto expand = [&](const auto& self, int i, int j, Rank r) -> void {
    if (i == j) return;
    double best = kNever;
    int division = i;
    Rank sender = r;
    divisions(p, t, sums, i, j, r, paper, [&](double time, int k, Rank q) {
      if (time < best) {
        best = time;
        division = k;
        sender = q;
      }
    });
    self(self, i, division, r <= division ? r : sender);
    self(self, division + 1, j, r <= division ? sender : r);
    merges.push_back({sender, r});
  };
  expand(expand, 0, n - 1, top);
  RankTree out = tree_of(n, top, merges);
  out.cost = t(0, n - 1, top);
  return out;
}

namespace {

/// A division of i..j under a root with at most two children. Either child may be missing.
struct Twig {
  double time = kNever;
  Rank root = -1;
  int split = -1;  ///< root at an end: last rank of the first child's part; -1: one child, or the root is inside
};

/// All divisions of i..j, or those with `root`, in the paper's order of cases. Calls each(first, last, f) per case,
/// where f(k) is the division at k.
template <typename Each>
[[gnu::always_inline]] inline void twigs(const TreeProblem& p, const std::vector<double>& times,
                                         const std::vector<double>& sums, int i, int j, Rank root, Each each) {
  const int n = p.ranks();
  const double *row = &times[index(i) * index(n)], *below = row + n, *column = &times[index(j) * index(n)],
               *before = column - n,
               *sum = sums.data();  // the lower triangle mirrors the upper one, so columns are contiguous
  const double alpha = p.alpha[0], beta = p.beta[0], whole = p.sizes[0];
  const bool all = p.whole;
  const double latency = p.latency;
  // The time when a node that is ready at `ready` has the message of its child over a..b, whose tree ends at `child`.
  const auto got = [=](double ready, double child, int a, int b) {
    const double size = all ? whole : sum[b + 1] - sum[a];
    return std::max(ready, child + latency * (size != 0)) + alpha * (size != 0) + beta * size;
  };
  if (root < 0 || root == i) {
    const double ready = p.arrival(i) + p.copy(i);
    each(j, j, [=](int) { return Twig{got(ready, below[j], i + 1, j), i, -1}; });
    each(i + 1, j - 1, [=](int k) { return Twig{got(got(ready, below[k], i + 1, k), column[k + 1], k + 1, j), i, k}; });
  }
  if (root < 0 || root == j) {
    const double here = p.arrival(j), copy = p.copy(j);
    each(j - 1, j - 1, [=](int) { return Twig{got(here, row[j - 1], i, j - 1) + copy, j, -1}; });
    each(i, j - 2, [=](int k) { return Twig{got(got(here, row[k], i, k), before[k + 1], k + 1, j - 1) + copy, j, k}; });
  }
  each(root < 0 ? i + 1 : std::max(root, i + 1), root < 0 ? j - 1 : std::min(root, j - 1), [&](Rank r) {
    return Twig{got(got(p.arrival(r), row[r - 1], i, r - 1) + p.copy(r), column[r + 1], r + 1, j), r, -1};
  });
}

}  // namespace

RankTree binary(const TreeProblem& p, Rank root) {
  const int n = p.ranks();
  const std::vector<double> sums = prefix_sums(p);
  std::vector<double> times(index(n) * index(n), kNever);
  for (int i = 0; i < n; ++i) times[index(i) * index(n) + index(i)] = p.arrival(i);
  for (int i = n - 1; i >= 0; --i)
    for (int j = i + 1; j < n; ++j) {
      double best = kNever;
      twigs(p, times, sums, i, j, i == 0 && j == n - 1 ? root : -1, [&](int first, int last, auto way) {
        best = std::min(best, least_of(first, last, [&](int k) { return way(k).time; }));
      });
      times[index(i) * index(n) + index(j)] = times[index(j) * index(n) + index(i)] = best;
    }
  RankTree out = tree_of(n, -1, {});
  out.cost = times[index(n) - 1];
  struct Open {
    int i, j;
    Rank parent;
  };
  // The stack gets a node's parts in reverse order, so that the first child is expanded first.
  std::vector<Open> open{{0, n - 1, -1}};
  while (!open.empty()) {
    const Open o = open.back();
    open.pop_back();
    if (o.i > o.j) continue;
    Twig twig;
    if (o.i == o.j) twig.root = o.i;
    else
      twigs(p, times, sums, o.i, o.j, o.parent < 0 ? root : -1, [&](int first, int last, auto way) {
        for (int k = first; k <= last; ++k)
          if (const Twig other = way(k); other.time < twig.time) twig = other;
      });
    const Rank r = twig.root;
    out.parent[index(r)] = o.parent;
    if (o.parent < 0) out.root = r;
    else out.children[index(o.parent)].push_back(r);
    if (twig.split >= 0) {
      const int from = r == o.i ? o.i + 1 : o.i, to = r == o.i ? o.j : o.j - 1;
      open.push_back({twig.split + 1, to, r});
      open.push_back({from, twig.split, r});
    } else {
      open.push_back({r + 1, o.j, r});
      open.push_back({o.i, r - 1, r});
    }
  }
  return out;
}

namespace {

/// Binary trees with costs for each pair of ranks: times by range and root, over the same five cases as twigs().
class PairwiseBinary {
 public:
  explicit PairwiseBinary(const TreeProblem& problem)
      : p_(problem), n_(problem.ranks()), sums_(prefix_sums(problem)), times_(n_) {
    for (int i = 0; i < n_; ++i) times_(i, i, i) = p_.arrival(i);
    for (int length = 2; length <= n_; ++length)
      for (int i = 0, j = length - 1; j < n_; ++i, ++j)
        for (Rank r = i; r <= j; ++r) times_(i, j, r) = divide(i, j, r).time;
  }

  RankTree tree(Rank root) {
    RankTree out = tree_of(n_, std::max(root, 0), {});
    for (Rank r = 0; root < 0 && r < n_; ++r)
      if (times_(0, n_ - 1, r) < times_(0, n_ - 1, out.root)) out.root = r;
    out.cost = times_(0, n_ - 1, out.root);
    struct Open {
      int i, j;
      Rank root;
    };
    std::vector<Open> open{{0, n_ - 1, out.root}};
    while (!open.empty()) {
      const Open o = open.back();
      open.pop_back();
      for (const Child& c : divide(o.i, o.j, o.root).children) {
        if (c.root < 0) continue;
        out.attach(c.root, o.root);
        open.push_back({c.i, c.j, c.root});
      }
    }
    return out;
  }

 private:
  struct Child {
    int i = 0, j = -1;
    Rank root = -1;  ///< -1: no child
  };
  struct Division {
    double time = kNever;
    Child children[2];  ///< in the order in which they send
  };

  /// The time when r, which is ready at `ready`, has the message of a subtree over i..j. Sets `child` to the best root
  /// of the subtree. A later `ready` never gives an earlier time, so the best first child is best for every second
  /// child.
  double got(double ready, Rank r, int i, int j, Child& child) {
    if (i > j) return ready;
    const double size = p_.whole ? p_.sizes[0] : sums_[index(j) + 1] - sums_[index(i)];
    double best = kNever;
    for (Rank q = i; q <= j; ++q)
      if (const double time = std::max(ready, times_(i, j, q) + p_.lag(size)) + p_.message(q, r, size); time < best) {
        best = time;
        child = {i, j, q};
      }
    return best;
  }

  Division divide(int i, int j, Rank r) {
    Division best;
    if (i == j) return {p_.arrival(r), {}};
    const double here = p_.arrival(r), copy = p_.copy(r);
    const auto take = [&](double ready, int a, int b, double between, int c, int d, double after) {
      Division other;
      const double first = got(ready, r, a, b, other.children[0]) + between;
      if (first >= best.time) return;
      other.time = got(first, r, c, d, other.children[1]) + after;
      if (other.time < best.time) best = other;
    };
    if (r == i)
      for (int k = j; k > i; --k) take(here + copy, i + 1, k, 0, k + 1, j, 0);
    else if (r == j)
      for (int k = j - 1; k >= i; --k) take(here, i, k, 0, k + 1, j - 1, copy);
    else take(here, i, r - 1, copy, r + 1, j, 0);
    return best;
  }

  const TreeProblem& p_;
  const int n_;
  const std::vector<double> sums_;
  ByRoot times_;
};

}  // namespace

RankTree binary_nonhomogeneous(const TreeProblem& p, Rank root) { return PairwiseBinary(p).tree(root); }

}  // namespace latecomer::core::trees
