// SPDX-License-Identifier: BSD-3-Clause
// The tree by which contributions are added where neither rounding nor the order of operands may depend on who comes
// when: node i of level l is the sum of ranks [i 2^l, (i + 1) 2^l), the left half's and then the right half's.
// Contributions may come in any order; each is added as far up as the others have come. With all but one there, it
// takes log2 P additions at most.
#pragma once

namespace latecomer::core {

/// A place in the tree, from a rank's own contribution upwards.
class OrderedNode {
 public:
  OrderedNode(int rank, int ranks) : index_(rank), id_(rank), level_size_(ranks) {}
  /// Goes up to where there is a sum to be added to. False: this is the sum of all.
  bool climb() {
    while (level_size_ > 1 && (index_ ^ 1) >= level_size_) up();  // nobody is to the right
    return level_size_ > 1;
  }
  /// After both have been added.
  void up() {
    first_of_level_ += level_size_;
    level_size_ = (level_size_ + 1) / 2, index_ /= 2;
    id_ = first_of_level_ + index_;
  }
  bool is_left() const { return index_ % 2 == 0; }
  int id() const { return id_; }
  int sibling() const { return first_of_level_ + (index_ ^ 1); }
  /// Ids are below it.
  static int count(int ranks) {
    int all = 1;
    for (int level = ranks; level > 1; level = (level + 1) / 2) all += level;
    return all;
  }

 private:
  int index_, id_, level_size_, first_of_level_ = 0;
};

}  // namespace latecomer::core
