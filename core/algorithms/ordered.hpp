// SPDX-License-Identifier: BSD-3-Clause
// A tree that fixes the rounding and the order of operands for any order of arrival. Node i of level l is the sum over
// ranks [i 2^l, (i + 1) 2^l): the sum of the left half, then that of the right half. Contributions may arrive in any
// order. Each is added upwards as far as the other operands are present. The last contribution takes at most log2 P
// additions.
#pragma once

namespace latecomer::core {

/// A node of the tree. Starts at the leaf of a rank and moves upwards.
class OrderedNode {
 public:
  OrderedNode(int rank, int ranks) : index_(rank), id_(rank), level_size_(ranks) {}
  /// Moves up to the next node that has a sibling. Returns false at the root, which is the sum over all ranks.
  bool climb() {
    while (level_size_ > 1 && (index_ ^ 1) >= level_size_) up();  // the last node of an odd level has no sibling
    return level_size_ > 1;
  }
  /// Moves to the parent, after the siblings have been added.
  void up() {
    first_of_level_ += level_size_;
    level_size_ = (level_size_ + 1) / 2, index_ /= 2;
    id_ = first_of_level_ + index_;
  }
  bool is_left() const { return index_ % 2 == 0; }
  int id() const { return id_; }
  int sibling() const { return first_of_level_ + (index_ ^ 1); }
  /// The number of ids; every id is below it.
  static int count(int ranks) {
    int all = 1;
    for (int level = ranks; level > 1; level = (level + 1) / 2) all += level;
    return all;
  }

 private:
  int index_, id_, level_size_, first_of_level_ = 0;
};

}  // namespace latecomer::core
