// SPDX-License-Identifier: BSD-3-Clause
// Generator `heaps`: a pairing heap per segment holds the ranks that may send it, in the order of the group. A rank
// that has sent leaves all heaps at once and returns when the round ends (the quicker of the two ways that the paper
// compares). Source: Proficz and Ocetkiewicz 2021, sections 4.1 and 5.7.
#include <boost/heap/pairing_heap.hpp>

#include "core/algorithms/clairvoyant/rounds.hpp"
#include "profiles/papers/generators/generators.hpp"

namespace latecomer::core::clairvoyant {
namespace {

class Heaps {
 public:
  explicit Heaps(const Problem& problem)
      : segments_(static_cast<std::size_t>(problem.segments)),
        places_(problem),
        key_(problem.arrivals.size(), -1),
        state_(key_.size() * segments_, kHeld),
        handles_(state_.size()),
        heaps_(segments_, Heap(Later{&key_})),
        holds_(key_.size(), problem.segments),
        present_(key_.size(), 0) {}

  void begin_round(std::span<const Rank> group) {
    // Keys only give the order, which never changes between the present ranks: a new rank gets a place in it.
    const int head = places_.of(group.front());
    for (const Rank r : group) key_[static_cast<std::size_t>(r)] = places_.from(head, r);
    group_.assign(group.begin(), group.end());
    for (const Rank r : group) insert(r);
    received_.clear();
  }

  Found find(Rank p, bool sink) {
    for (std::size_t j = 0; j < segments_; ++j) {
      if ((!sink && at(p, j) != kHeld) || heaps_[j].empty()) continue;
      Heap& heap = heaps_[j];
      if (heap.top() != p) return {heap.top(), static_cast<int>(j)};
      if (heap.size() == 1) continue;
      heap.pop();
      const Rank second = heap.top();
      handles_[cell(p, j)] = heap.push(p);
      return {second, static_cast<int>(j)};
    }
    return {};
  }

  bool move(Rank from, Rank to, int segment) {
    const auto j = static_cast<std::size_t>(segment);
    withdraw(from);
    at(from, j) = kSent;
    --holds_[static_cast<std::size_t>(from)];
    const bool held = at(to, j) == kHeld;
    if (held) {
      if (present_[static_cast<std::size_t>(to)]) heaps_[j].erase(handles_[cell(to, j)]);
    } else {
      ++holds_[static_cast<std::size_t>(to)];
    }
    at(to, j) = kPending;
    received_.emplace_back(to, j);
    return held;
  }
  void end_round() {
    for (const Rank r : group_)
      if (present_[static_cast<std::size_t>(r)]) withdraw(r);
    for (const auto& [to, j] : received_) at(to, j) = kHeld;
  }
  int holds(Rank r) const { return holds_[static_cast<std::size_t>(r)]; }

 private:
  enum State : char { kSent, kHeld, kPending };
  struct Later {
    const std::vector<int>* key;
    bool operator()(Rank x, Rank y) const {
      return (*key)[static_cast<std::size_t>(x)] > (*key)[static_cast<std::size_t>(y)];
    }
  };
  using Heap = boost::heap::pairing_heap<Rank, boost::heap::compare<Later>>;

  std::size_t cell(Rank r, std::size_t j) const { return static_cast<std::size_t>(r) * segments_ + j; }
  char& at(Rank r, std::size_t j) { return state_[cell(r, j)]; }
  void insert(Rank r) {
    present_[static_cast<std::size_t>(r)] = 1;
    for (std::size_t j = 0; j < segments_; ++j)
      if (at(r, j) == kHeld) handles_[cell(r, j)] = heaps_[j].push(r);
  }
  void withdraw(Rank r) {
    for (std::size_t j = 0; j < segments_; ++j)
      if (at(r, j) == kHeld) heaps_[j].erase(handles_[cell(r, j)]);
    present_[static_cast<std::size_t>(r)] = 0;
  }

  std::size_t segments_;
  Places places_;
  std::vector<int> key_;
  std::vector<char> state_;
  std::vector<Heap::handle_type> handles_;
  std::vector<Heap> heaps_;
  std::vector<int> holds_;
  std::vector<char> present_;  // in the heaps
  std::vector<Rank> group_;
  std::vector<std::pair<Rank, std::size_t>> received_;
};

}  // namespace

void plan_heaps(const Problem& problem, const Emit& emit) {
  Heaps table(problem);
  run_reduce(problem, table, emit);
}

}  // namespace latecomer::core::clairvoyant
