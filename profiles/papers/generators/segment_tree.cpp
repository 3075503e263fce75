// SPDX-License-Identifier: BSD-3-Clause
// Generator `segment_tree`: a segment tree over bit columns, one per process. An inner node is the OR of its children.
// The tree is an array with the root at 1. Leaves are in the order of places. A process whose place lies before the
// head's uses a second leaf, P places later. A process that has sent is cleared from the tree until the round ends.
// Then the tree is rebuilt once. The sink needs no pseudo-root: it is served first, and its own leaf is left out of the
// OR like any other. 5 bits per (process, segment): 4 in the tree, 1 in the columns beside it. Source: Proficz and
// Ocetkiewicz 2021, sections 5.2 to 5.6.
#include <bit>

#include "core/algorithms/clairvoyant/rounds.hpp"
#include "core/algorithms/clairvoyant/tables.hpp"
#include "profiles/papers/generators/generators.hpp"

namespace latecomer::core::clairvoyant {
namespace {

#define LATECOMER_INLINE __attribute__((always_inline)) inline

/// `Width` vectors per column, known to the compiler; 0: known at run time only.
template <std::size_t Width>
class SegmentTree {
 public:
  explicit SegmentTree(const Problem& problem)
      : ranks_(problem.ranks()),
        segments_(problem.segments),
        vectors_((words_for(segments_) + kVectorWords - 1) / kVectorWords),
        leaves_(std::bit_ceil(2 * static_cast<std::size_t>(ranks_))),
        places_(problem),
        leaf_(problem.arrivals.size(), 0),
        nodes_(static_cast<int>(2 * leaves_), bits()),
        columns_(ranks_, bits()),
        wanted_(1, bits()),
        holds_(leaf_.size(), segments_),
        sent_(leaf_.size(), 0) {
    for (Rank r = 0; r < ranks_; ++r) BitRows::fill(columns_[r], segments_);
  }

  LATECOMER_INLINE void begin_round(std::span<const Rank> group) {
    const int head = places_.of(group.front());
    for (const Rank r : group_) clear(leaf(r));  // those of the last round
    group_.assign(group.begin(), group.end());
    std::size_t low = 2 * leaves_, high = 0;
    for (const Rank r : group_) {
      const std::size_t at = leaves_ + static_cast<std::size_t>(places_.from(head, r));
      leaf_[static_cast<std::size_t>(r)] = at;
      low = std::min(low, at);
      high = std::max(high, at);
      for (std::size_t v = 0; v < width(); ++v) node(at)[v] = column(r)[v];
      sent_[static_cast<std::size_t>(r)] = 0;
    }
    low = std::min(low, low_);
    high = std::max(high, high_);  // the columns that were left are cleared on the way
    if (!group_.empty()) {
      low_ = leaf(group_.front());
      high_ = leaf(group_.back());
    }
    for (low /= 2, high /= 2; high > 0; low /= 2, high /= 2)
      for (std::size_t i = std::max<std::size_t>(low, 1); i <= high; ++i)
        for (std::size_t v = 0; v < width(); ++v) node(i)[v] = node(2 * i)[v] | node(2 * i + 1)[v];
    received_.clear();
  }

  LATECOMER_INLINE Found find(Rank p, bool sink) {
    const bool outside = sent_[static_cast<std::size_t>(p)] != 0;
    if (!sink) {
      // Nothing lower than the lowest that p holds can be found: if another process has that one, no sum is needed.
      const int j = first_bit(columns_[p], nullptr);
      if (j < 0) return {};
      const Rank from = outside ? (has(1, j) ? leftmost(1, j) : -1) : leftmost_without(leaf(p), j);
      if (from >= 0) return {from, j};
    }
    Vector* wanted = reinterpret_cast<Vector*>(wanted_[0]);
    if (outside) {
      for (std::size_t v = 0; v < width(); ++v) wanted[v] = node(1)[v];
    } else {
      for (std::size_t v = 0; v < width(); ++v) wanted[v] = node(leaf(p) ^ 1)[v];
      for (std::size_t i = leaf(p) / 2; i > 1; i /= 2)
        for (std::size_t v = 0; v < width(); ++v) wanted[v] |= node(i ^ 1)[v];
    }
    const int j = first_bit(wanted_[0], sink ? nullptr : columns_[p]);
    if (j < 0) return {};
    return {outside ? leftmost(1, j) : leftmost_without(leaf(p), j), j};
  }

  LATECOMER_INLINE bool move(Rank from, Rank to, int j) {
    sent_[static_cast<std::size_t>(from)] = 1;
    columns_.clear(from, j);
    --holds_[static_cast<std::size_t>(from)];
    clear(leaf(from));
    for (std::size_t i = leaf(from); i > 1; i /= 2) {
      Word changed = 0;
      for (std::size_t v = 0; v < width(); ++v) {
        const Vector sum = node(i)[v] | node(i ^ 1)[v], difference = sum ^ node(i / 2)[v];
        node(i / 2)[v] = sum;
        for (std::size_t w = 0; w < kVectorWords; ++w) changed |= difference[w];
      }
      if (!changed) break;
    }
    const bool held = columns_.test(to, j);
    columns_.clear(to, j);
    if (!held) ++holds_[static_cast<std::size_t>(to)];
    if (held && !sent_[static_cast<std::size_t>(to)]) {
      std::size_t i = leaf(to);
      do word_of(i, j) &= ~bit(j);
      while ((i /= 2) > 0 && !((word_of(2 * i, j) | word_of(2 * i + 1, j)) & bit(j)));
    }
    received_.emplace_back(to, j);
    return held;
  }
  void end_round() {
    for (const auto& [to, j] : received_) columns_.set(to, j);
  }
  int holds(Rank r) const { return holds_[static_cast<std::size_t>(r)]; }

 private:
  constexpr std::size_t width() const { return Width ? Width : vectors_; }
  int bits() const { return static_cast<int>(width() * kVectorWords * kWordBits); }
  LATECOMER_INLINE Vector* node(std::size_t i) { return reinterpret_cast<Vector*>(nodes_[0]) + i * width(); }
  LATECOMER_INLINE Word& word_of(std::size_t i, int j) { return reinterpret_cast<Word*>(node(i))[word(j)]; }
  Vector* column(Rank r) { return reinterpret_cast<Vector*>(columns_[r]); }
  std::size_t leaf(Rank r) const { return leaf_[static_cast<std::size_t>(r)]; }
  LATECOMER_INLINE bool has(std::size_t i, int j) { return (word_of(i, j) & bit(j)) != 0; }
  void clear(std::size_t i) {
    for (std::size_t v = 0; v < width(); ++v) node(i)[v] = Vector{};
  }
  LATECOMER_INLINE int first_bit(const Word* set, const Word* mask) const {
    for (std::size_t w = 0; w < words_for(segments_); ++w)
      if (const Word both = mask ? set[w] & mask[w] : set[w])
        return static_cast<int>(w) * kWordBits + std::countr_zero(both);
    return -1;
  }
  /// The first process below node i that has segment j.
  LATECOMER_INLINE Rank leftmost(std::size_t i, int j) {
    while (i < leaves_) i = 2 * i + !has(2 * i, j);
    const int place = static_cast<int>(i - leaves_);
    return places_.rank_at(place < ranks_ ? place : place - ranks_);
  }
  /// The same in the whole tree but for one leaf, or -1: left siblings on its way to the root, the highest first, then
  /// right ones, the lowest first.
  LATECOMER_INLINE Rank leftmost_without(std::size_t leaf, int j) {
    if (!has(1, j)) return -1;
    for (std::size_t at = leaves_ / 2; at > 0; at /= 2) {
      const std::size_t i = leaf / at;
      if (i % 2 == 1 && has(i - 1, j)) return leftmost(i - 1, j);
    }
    for (std::size_t i = leaf; i > 1; i /= 2)
      if (i % 2 == 0 && has(i + 1, j)) return leftmost(i + 1, j);
    return -1;
  }

  int ranks_, segments_;
  std::size_t vectors_, leaves_, low_ = SIZE_MAX, high_ = 0;  // leaves in use
  Places places_;
  std::vector<std::size_t> leaf_;
  BitRows nodes_, columns_, wanted_;
  std::vector<int> holds_;
  std::vector<char> sent_;
  std::vector<Rank> group_;
  std::vector<std::pair<Rank, int>> received_;
};

template <std::size_t Width>
LATECOMER_INLINE void emit_messages(const Problem& problem, const Emit& emit) {
  SegmentTree<Width> table(problem);
  run_reduce(problem, table, emit);
}

}  // namespace

LATECOMER_WIDEST void plan_segment_tree(const Problem& problem, const Emit& emit) {
  switch ((words_for(problem.segments) + kVectorWords - 1) / kVectorWords) {
    case 0:
    case 1:
      return emit_messages<1>(problem, emit);
    case 2:
      return emit_messages<2>(problem, emit);
    default:
      return emit_messages<0>(problem, emit);
  }
}

}  // namespace latecomer::core::clairvoyant
