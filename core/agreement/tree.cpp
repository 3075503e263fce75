// SPDX-License-Identifier: BSD-3-Clause
// Divides the ranks of a communicator, in the order of their hosts, among the nodes of the tree.
#include "core/agreement/tree.hpp"

#include <algorithm>
#include <numeric>

namespace latecomer::core {
namespace {

struct Span {
  std::size_t begin, end;  ///< positions in the order of hosts; the first rank is the node, the others are below it
  std::size_t size() const { return end - begin; }
};

/// The number of ranks of the largest tree of `depth` levels below its root.
std::size_t capacity(int depth) {
  std::size_t ranks = 1;
  for (int level = 0; level < depth; ++level) ranks = 1 + kFanOut * ranks;
  return ranks;
}

int least_depth(std::size_t ranks) {
  int depth = 0;
  while (capacity(depth) < ranks) ++depth;
  return depth;
}

/// Splits `all` into parts of nearly equal size, so many that nodes of all levels have about as many children.
void split_evenly(Span all, int depth, std::vector<Span>& out) {
  const std::size_t most = capacity(depth - 1);
  // The number of parts is the least whose power `depth` is at least the number of ranks.
  const auto reaches = [&](std::size_t parts) {
    std::size_t ranks = 1;
    for (int level = 0; level < depth; ++level) ranks *= parts;
    return ranks >= all.size();
  };
  std::size_t parts = (all.size() + most - 1) / most;
  while (parts < std::min(kFanOut, all.size()) && !reaches(parts)) ++parts;
  for (std::size_t i = 0; i < parts; ++i)
    out.push_back({all.begin + all.size() * i / parts, all.begin + all.size() * (i + 1) / parts});
}

class TreeDivision {
 public:
  explicit TreeDivision(std::span<const int> hosts) : hosts_(hosts), order_(hosts.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    const int first = hosts.empty() ? 0 : hosts[0];
    // The leader's host comes first, so the leader is the root.
    std::ranges::stable_sort(order_, {}, [&](Rank r) {
      const int host = hosts_[static_cast<std::size_t>(r)];
      return std::pair(host != first, host);
    });
  }

  /// Calls place_of(rank) for all ranks of `part`, and fills the place that it returns, if any. Returns the greatest
  /// level.
  template <typename PlaceOf>
  int visit(Span part, int level, Rank parent, PlaceOf place_of) const {
    const Rank node = order_[part.begin];
    const std::vector<Span> below = divide(part);
    if (TreePlace* place = place_of(node)) {
      place->parent = parent;
      place->level = level;
      for (const Span& one : below) place->children.push_back(order_[one.begin]);
    }
    int depth = level;
    for (const Span& one : below) depth = std::max(depth, visit(one, level + 1, node, place_of));
    return depth;
  }

 private:
  int host(std::size_t at) const { return hosts_[static_cast<std::size_t>(order_[at])]; }

  std::vector<Span> divide(Span part) const {
    const int depth = least_depth(part.size());
    if (depth == 0) return {};
    const Span rest{part.begin + 1, part.end};
    Span mine{rest.begin, rest.begin};  // the ranks of the node's own host
    while (mine.end < rest.end && host(mine.end) == host(part.begin)) ++mine.end;
    std::vector<Span> hosts;
    for (std::size_t at = mine.end; at < rest.end;) {
      Span one{at, at};
      while (one.end < rest.end && host(one.end) == host(at)) ++one.end;
      hosts.push_back(one);
      at = one.end;
    }
    // First choice: each rank of the node's own host and one rank of each other host are children of the node. Second
    // choice: fewer children on the own host, and several hosts below one child.
    std::vector<Span> out;
    for (const bool single : {true, false}) {
      out.clear();
      if (mine.size() > 0 && single)
        for (std::size_t at = mine.begin; at < mine.end; ++at) out.push_back({at, at + 1});
      else if (mine.size() > 0) split_evenly(mine, depth, out);
      if (out.size() + (hosts.empty() ? 0 : 1) > kFanOut) continue;
      const std::size_t groups = std::min(hosts.size(), kFanOut - out.size());
      for (std::size_t g = 0; g < groups; ++g)
        out.push_back({hosts[hosts.size() * g / groups].begin, hosts[hosts.size() * (g + 1) / groups - 1].end});
      if (std::ranges::all_of(out, [&](const Span& one) { return one.size() <= capacity(depth - 1); })) return out;
    }
    out.clear();
    split_evenly(rest, depth, out);
    return out;
  }

  std::span<const int> hosts_;
  std::vector<Rank> order_;
};

}  // namespace

TreePlace place_in_tree(std::span<const int> hosts, Rank rank) {
  TreePlace place;
  if (hosts.empty()) return place;
  place.depth =
      TreeDivision(hosts).visit({0, hosts.size()}, 0, -1, [&](Rank r) { return r == rank ? &place : nullptr; });
  return place;
}

std::vector<TreePlace> places_in_tree(std::span<const int> hosts) {
  std::vector<TreePlace> places(hosts.size());
  if (hosts.empty()) return places;
  const int depth =
      TreeDivision(hosts).visit({0, hosts.size()}, 0, -1, [&](Rank r) { return &places[static_cast<std::size_t>(r)]; });
  for (TreePlace& place : places) place.depth = depth;
  return places;
}

}  // namespace latecomer::core
