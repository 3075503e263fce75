// SPDX-License-Identifier: BSD-3-Clause
// Items in the order of their counts, kept sorted while counts grow by one.
#pragma once

#include <numeric>
#include <utility>
#include <vector>

namespace latecomer::core::exchange {

/// Element `i` of a list, where `i` is a rank or another small number.
template <typename List>
auto& at(List& list, int i) {
  return list[static_cast<std::size_t>(i)];
}

/// Items in the order of their counts, the least first.
class Ranking {
 public:
  Ranking(int items, int most)
      : counts_(static_cast<std::size_t>(items), 0),
        order_(counts_.size()),
        position_(counts_.size()),
        ends_(static_cast<std::size_t>(most) + 1, items) {
    std::iota(order_.begin(), order_.end(), 0), std::iota(position_.begin(), position_.end(), 0);
  }
  int count(int item) const { return at(counts_, item); }
  /// Counts an item once more: it moves to the end of its equals, which then end before it.
  void add(int item) {
    const int last = --at(ends_, at(counts_, item)++), other = at(order_, last), mine = at(position_, item);
    std::swap(at(order_, last), at(order_, mine));
    at(position_, other) = mine, at(position_, item) = last;
  }
  const std::vector<int>& order() const { return order_; }
  /// The position after the last item with this count or a smaller one.
  int end_of(int count) const { return at(ends_, count); }

 private:
  std::vector<int> counts_, order_, position_, ends_;
};

}  // namespace latecomer::core::exchange
