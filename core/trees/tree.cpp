// SPDX-License-Identifier: BSD-3-Clause
// Implements the cost of trees, the kinds of trees that need no search, and plan_tree().
#include "core/trees/tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::string_view kTreeNames[] = {"linear",  "binary",    "binomial", "adaptive",
                                           "optimal", "two_block", "sorted"};

std::size_t at(Rank r) { return static_cast<std::size_t>(r); }

using trees::Block;

/// Joins two ranges: `sender` sends its blocks to `receiver`. A leaf as receiver copies its own block before the
/// message, or after it if `copies_last`.
Block joined(const TreeProblem& p, const Block& sender, const Block& receiver, bool copies_last) {
  const double copy = receiver.leaf ? receiver.copy : 0, size = p.whole ? p.sizes[0] : sender.size;
  const double message = p.message(sender.root, receiver.root, size), sent = sender.time + p.lag(size);
  const double time =
      copies_last ? std::max(receiver.time, sent) + message + copy : std::max(receiver.time + copy, sent) + message;
  return {receiver.root, time, sender.size + receiver.size, 0, false};
}

/// Builds a binomial tree bottom up over the places of `order`. Source: Träff 2019, proposition 1. Of two ranges, the
/// one with `root` receives. Otherwise the second receives, or, if `adaptive`, the one that is then complete earlier.
Block binomial_over(const TreeProblem& p, std::span<const Rank> order, Rank root, bool adaptive,
                    std::vector<trees::Merge>& merges) {
  std::vector<Block> blocks;
  std::vector<char> holds;
  for (const Rank r : order) {
    blocks.push_back({r, p.arrival(r), p.sizes[at(r)], p.copy(r), true});
    holds.push_back(r == root);
  }
  const std::size_t n = blocks.size();
  for (std::size_t d = 1; d < n; d *= 2)
    for (std::size_t i = 0; i + d < n; i += 2 * d) {
      const Rank left = blocks[i].root, right = blocks[i + d].root;
      bool leftwards = false;
      blocks[i] = trees::join(p, blocks[i], blocks[i + d], holds[i], holds[i + d], adaptive, leftwards);
      merges.push_back(leftwards ? trees::Merge{right, left} : trees::Merge{left, right});
      holds[i] = holds[i] || holds[i + d];
    }
  return blocks[0];
}

std::vector<Rank> rank_order(int ranks) {
  std::vector<Rank> out(at(ranks));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

RankTree binomial(const TreeProblem& p, Rank root, bool adaptive) {
  const auto order = rank_order(p.ranks());
  RankTree best;
  best.cost = kNever;
  for (Rank r = root < 0 ? 0 : root; r <= (root < 0 ? p.ranks() - 1 : root); ++r) {
    std::vector<trees::Merge> merges;
    const double cost = binomial_over(p, order, r, adaptive, merges).time;
    if (cost >= best.cost) continue;
    best = trees::tree_of(p.ranks(), r, merges);
    best.cost = cost;
  }
  return best;
}

RankTree star(const TreeProblem& p, Rank root) {
  std::vector<trees::Merge> merges;
  for (Rank r = 0; r < p.ranks(); ++r)
    if (r != root) merges.push_back({r, root});
  RankTree out = trees::tree_of(p.ranks(), root, merges);
  out.cost = completion(p, out);
  return out;
}

RankTree linear(const TreeProblem& p, Rank root) {
  if (root >= 0) return star(p, root);
  if (!p.homogeneous() || !p.arrivals.empty() || p.whole) {
    RankTree best = star(p, 0);
    for (Rank r = 1; r < p.ranks(); ++r)
      if (RankTree other = star(p, r); other.cost < best.cost) best = std::move(other);
    return best;
  }
  Rank best = 0;
  const auto saved = [&](Rank r) { return p.message(r, r, p.sizes[at(r)]) - p.copy(r); };
  for (Rank r = 1; r < p.ranks(); ++r)
    if (saved(r) > saved(best)) best = r;
  return star(p, best);
}

/// Lemma 2 of Träff 2019, extended to any sizes: the largest ratio of consecutive sizes separates small from large.
RankTree two_block(const TreeProblem& p, Rank root) {
  std::vector<Rank> by_size = rank_order(p.ranks());
  const auto size = [&](Rank r) { return p.sizes[at(r)]; };
  std::stable_sort(by_size.begin(), by_size.end(), [&](Rank a, Rank b) { return size(a) < size(b); });
  std::size_t cut = 0;
  double widest = 1;
  for (std::size_t i = 1; i < by_size.size(); ++i) {
    const double low = size(by_size[i - 1]), high = size(by_size[i]);
    const double ratio = high == low ? 1 : low == 0 ? kNever : high / low;
    if (ratio > widest) {
      widest = ratio;
      cut = i;
    }
  }
  std::vector<Rank> classes[2] = {{by_size.begin(), by_size.begin() + static_cast<std::ptrdiff_t>(cut)},
                                  {by_size.begin() + static_cast<std::ptrdiff_t>(cut), by_size.end()}};
  for (auto& c : classes) std::sort(c.begin(), c.end());
  if (cut == 0) return binomial(p, root, true);
  RankTree best;
  best.cost = kNever;
  for (const int receiver : {0, 1}) {
    // A root of the sending class joins the receiving class, so that large blocks are not sent twice.
    std::vector<Rank> to = classes[receiver], from = classes[1 - receiver];
    if (const auto root_at = std::find(from.begin(), from.end(), root); root_at != from.end()) {
      from.erase(root_at);
      to.insert(std::lower_bound(to.begin(), to.end(), root), root);
    }
    if (from.empty()) continue;
    std::vector<trees::Merge> merges;
    const Block sends = binomial_over(p, from, -1, true, merges);
    const Block receives = binomial_over(p, to, root, true, merges);
    merges.push_back({sends.root, receives.root});
    const double cost = joined(p, sends, receives, false).time;
    if (cost >= best.cost) continue;
    best = trees::tree_of(p.ranks(), receives.root, merges);
    best.cost = cost;
  }
  return best;
}

RankTree optimal(const TreeProblem& p, const TreeOptions& o) {
  if (!p.homogeneous()) return trees::optimal_nonhomogeneous(p, o.root, o.form != TreeForm::exact);
  return o.plain || o.form != TreeForm::exact || !trees::quadratic_is_exact(p) ? trees::optimal_cubic(p, o.root, o.form)
                                                                               : trees::optimal_quadratic(p, o.root);
}

/// The problem with its ranks in another order.
TreeProblem reordered(const TreeProblem& p, std::span<const Rank> order) {
  TreeProblem out = p;
  for (std::size_t i = 0; i < order.size(); ++i) {
    out.sizes[i] = p.sizes[at(order[i])];
    if (!p.arrivals.empty()) out.arrivals[i] = p.arrivals[at(order[i])];
    if (p.gamma.size() > 1) out.gamma[i] = p.gamma[at(order[i])];
  }
  return out;
}

/// Tries orders in which late ranks and large blocks are close to the root, and returns the cheapest tree. Source:
/// Träff 2004, as cited in Träff 2019, section 5.1, for sizes. The orders by arrival are not in the paper.
RankTree sorted(const TreeProblem& p, const TreeOptions& o) {
  const auto size = [&](Rank r) { return p.sizes[at(r)]; };
  const auto ready = [&](Rank r) { return p.arrival(r) + p.message(r, r, p.sizes[at(r)]); };
  std::vector<std::vector<Rank>> orders(4, rank_order(p.ranks()));
  std::stable_sort(orders[1].begin(), orders[1].end(), [&](Rank a, Rank b) { return size(a) > size(b); });
  std::stable_sort(orders[2].begin(), orders[2].end(),
                   [&](Rank a, Rank b) { return std::pair(p.arrival(a), size(b)) < std::pair(p.arrival(b), size(a)); });
  std::stable_sort(orders[3].begin(), orders[3].end(), [&](Rank a, Rank b) { return ready(a) < ready(b); });
  for (std::size_t i = 0; i < 4 && o.root >= 0; ++i) {  // the same orders with the root first
    std::vector<Rank> order = orders[i];
    std::rotate(order.begin(), std::find(order.begin(), order.end(), o.root),
                std::find(order.begin(), order.end(), o.root) + 1);
    orders.push_back(std::move(order));
  }
  RankTree best;
  best.cost = kNever;
  for (auto order = orders.begin(); order != orders.end(); ++order) {
    if (std::find(orders.begin(), order, *order) != order) continue;  // without arrivals, some orders are equal
    const auto rank = [&](Rank place) { return (*order)[at(place)]; };
    TreeOptions options = o;
    if (o.root >= 0) options.root = static_cast<Rank>(std::find(order->begin(), order->end(), o.root) - order->begin());
    const RankTree tree = optimal(reordered(p, *order), options);
    if (tree.cost >= best.cost) continue;
    best.cost = tree.cost;
    best.root = rank(tree.root);
    best.parent.assign(at(p.ranks()), -1);
    best.children.assign(at(p.ranks()), {});
    for (Rank i = 0; i < p.ranks(); ++i) {
      if (tree.parent[at(i)] >= 0) best.parent[at(rank(i))] = rank(tree.parent[at(i)]);
      for (const Rank c : tree.children[at(i)]) best.children[at(rank(i))].push_back(rank(c));
    }
  }
  return best;
}

std::string problem_with(const TreeProblem& p, const TreeOptions& o, TreeKind kind) {
  const std::size_t n = p.sizes.size();
  const auto of = [&](const std::vector<double>& v, std::string_view name, std::size_t many) {
    if (v.size() != 1 && v.size() != many)
      return std::string(name) + ": expected 1 or " + std::to_string(many) + " numbers, got " +
             std::to_string(v.size());
    for (const double x : v)
      if (!(x >= 0) || x == kNever) return std::string(name) + ": expected finite numbers >= 0";
    return std::string();
  };
  if (n == 0) return "no sizes";
  for (const auto& said : {of(p.alpha, "alpha", n * n), of(p.beta, "beta", n * n), of(p.gamma, "gamma", n),
                           of(p.arrivals.empty() ? p.gamma : p.arrivals, "arrivals", n)})
    if (!said.empty()) return said;
  for (const double x : p.sizes)
    if (!(x >= 0) || x == kNever) return "sizes: expected finite numbers >= 0";
  if (!(p.latency >= 0) || p.latency == kNever) return "latency: expected a finite number >= 0";
  if (!p.arrivals.empty() && p.arrivals.size() != n)
    return "arrivals: expected " + std::to_string(n) + " numbers, one per rank, got " +
           std::to_string(p.arrivals.size());
  if (o.root >= p.ranks())
    return "root " + std::to_string(o.root) + ": the last of " + std::to_string(n) + " ranks is " +
           std::to_string(n - 1);
  if (!p.homogeneous() && kind == TreeKind::sorted)
    return "sorted: supports one alpha and one beta only; optimal takes matrices";
  // Both take 4 s of processor time at their limit (random sizes and matrices, one core of an Intel Xeon, one run).
  constexpr std::size_t kMostOptimal = 160, kMostBinary = 256;
  if (!p.homogeneous() && kind == TreeKind::optimal && n > kMostOptimal)
    return "optimal: supports matrices up to " + std::to_string(kMostOptimal) +
           " ranks (the time grows as p^5); adaptive has no limit";
  if (!p.homogeneous() && kind == TreeKind::binary && n > kMostBinary)
    return "binary: supports matrices up to " + std::to_string(kMostBinary) +
           " ranks (the time grows as p^4); adaptive has no limit";
  if (o.form != TreeForm::exact && kind != TreeKind::optimal) return "only optimal has the paper's forms";
  return "";
}

}  // namespace

std::string_view name_of(TreeKind kind) { return kTreeNames[static_cast<int>(kind)]; }

Result<TreeKind> parse_tree_kind(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kTreeNames); ++i)
    if (kTreeNames[i] == name) return static_cast<TreeKind>(i);
  return Error{"unknown kind of tree '" + std::string(name) + "'" + suggestion(name, kTreeNames)};
}

void RankTree::attach(Rank child, Rank above) {
  parent[at(child)] = above;
  children[at(above)].push_back(child);
}

std::vector<Rank> RankTree::preorder() const {
  std::vector<Rank> out, open{root};
  while (!open.empty()) {
    const Rank r = open.back();
    open.pop_back();
    out.push_back(r);
    open.insert(open.end(), children[at(r)].rbegin(), children[at(r)].rend());
  }
  return out;
}

std::vector<Rank> RankTree::senders() const {
  // Lists nodes in reverse: a node, then the subtrees of its children, from the last child to the first.
  std::vector<Rank> out, open{root};
  while (!open.empty()) {
    const Rank r = open.back();
    open.pop_back();
    if (r != root) out.push_back(r);
    open.insert(open.end(), children[at(r)].begin(), children[at(r)].end());
  }
  std::reverse(out.begin(), out.end());
  return out;
}

trees::Block trees::join(const TreeProblem& p, const Block& left, const Block& right, bool root_in_left,
                         bool root_in_right, bool adaptive, bool& leftwards) {
  const Block to_left = joined(p, right, left, false), to_right = joined(p, left, right, true);  // as in the paper
  leftwards = root_in_left || (!root_in_right && adaptive && to_left.time < to_right.time);
  return leftwards ? to_left : to_right;
}

RankTree trees::tree_of(int ranks, Rank root, const std::vector<Merge>& merges) {
  RankTree out;
  out.root = root;
  out.parent.assign(at(ranks), -1);
  out.children.assign(at(ranks), {});
  for (const Merge& m : merges) out.attach(m.from, m.to);
  return out;
}

double completion(const TreeProblem& p, const RankTree& tree) {
  const auto order = tree.preorder();
  std::vector<double> time(order.size()), size(p.sizes);
  for (auto next = order.rbegin(); next != order.rend(); ++next) {
    const Rank r = *next;
    const auto& children = tree.children[at(r)];
    // before: the time without the copy of the own block; after: the least time with the copy.
    double before = p.arrival(r), after = before + p.copy(r);
    for (const Rank c : children) {
      const double moved = p.whole ? p.sizes[0] : size[at(c)], message = p.message(c, r, moved),
                   sent = time[at(c)] + p.lag(moved);
      before = std::max(before, sent) + message;
      after = std::min(std::max(after, sent) + message, before + p.copy(r));
      size[at(r)] += size[at(c)];
    }
    time[at(r)] = children.empty() ? before : after;
  }
  return time[at(tree.root)];
}

Result<RankTree> plan_tree(TreeKind kind, const TreeProblem& given, const TreeOptions& options) {
  if (const std::string said = problem_with(given, options, kind); !said.empty()) return Error{said};
  TreeProblem whole = given;
  if (given.whole)
    std::fill(whole.sizes.begin(), whole.sizes.end(), *std::max_element(given.sizes.begin(), given.sizes.end()));
  const TreeProblem& p = given.whole ? whole : given;
  if (p.ranks() == 1) {
    RankTree alone = trees::tree_of(1, 0, {});
    alone.cost = p.arrival(0);
    return alone;
  }
  switch (kind) {
    case TreeKind::linear:
      return linear(p, options.root);
    case TreeKind::binary:
      return p.homogeneous() ? trees::binary(p, options.root) : trees::binary_nonhomogeneous(p, options.root);
    case TreeKind::binomial:
      return binomial(p, options.root, false);
    case TreeKind::adaptive:
      return binomial(p, options.root, true);
    case TreeKind::optimal:
      return optimal(p, options);
    case TreeKind::two_block:
      return two_block(p, options.root);
    case TreeKind::sorted:
      return sorted(p, options);
  }
  return Error{"unknown kind of tree"};
}

}  // namespace latecomer::core
