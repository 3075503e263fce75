// SPDX-License-Identifier: BSD-3-Clause
// The times of single ranks in the sampled calls of an epoch, on their way up the tree. It knows no calls: a column has
// a number that its owner gives it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "profiles/record/pack.hpp"

namespace latecomer::profiles {

/// One row per rank, with a value per column. Ranks that made the same calls have the same columns, so there is one
/// group of rows, unless the calls of ranks differ.
class SampleRows {
 public:
  struct Group {
    std::span<const std::int64_t> columns;
    std::span<const std::int64_t> rows;  ///< [ranks][1 + columns]: the rank, then its values
    std::size_t row_size() const { return 1 + columns.size(); }
  };

  bool empty() const { return data_.empty(); }
  void clear() { data_.clear(); }

  /// Adds `count` rows. Returns their memory, which the caller fills.
  std::span<std::int64_t> add(std::span<const std::int64_t> columns, std::size_t count) {
    const bool same = !data_.empty() && std::ranges::equal(group_at(last_).columns, columns);
    const std::size_t begin = data_.size(), head = same ? 0 : kHead + columns.size();
    data_.resize(begin + head + count * (1 + columns.size()));
    if (!same) {
      last_ = begin;
      data_[begin] = static_cast<std::int64_t>(columns.size());
      std::ranges::copy(columns, data_.begin() + static_cast<std::ptrdiff_t>(begin + kHead));
    }
    data_[last_ + 1] += static_cast<std::int64_t>(count);
    return std::span(data_).subspan(begin + head);
  }

  /// Calls f(group) for each group.
  template <typename F>
  void each(F f) const {
    for (std::size_t at = 0; at < data_.size();) {
      const Group group = group_at(at);
      f(group);
      at += kHead + group.columns.size() + group.rows.size();
    }
  }

  /// Values of a column are near base(column).
  template <typename Base>
  void pack(Packer& out, Base base) const {
    each([&](const Group& group) {
      const std::size_t ranks = group.rows.size() / group.row_size();
      out.number(group.columns.size());
      out.number(ranks);
      std::int64_t before = 0;
      numbers(out, group.columns.size(),
              [&](std::size_t i) { return Packer::folded(group.columns[i], std::exchange(before, group.columns[i])); });
      before = 0;
      numbers(out, ranks, [&](std::size_t i) {
        const std::int64_t rank = group.rows[i * group.row_size()];
        return Packer::folded(rank, std::exchange(before, rank + 1));
      });
      for (std::size_t c = 0; c < group.columns.size(); ++c)
        numbers(out, ranks, [&, of = base(group.columns[c])](std::size_t i) {
          return Packer::folded(group.rows[i * group.row_size() + 1 + c], of);
        });
    });
  }
  /// Adds packed rows. Returns false if they are damaged. Then all rows are of no use.
  template <typename Valid, typename Base>
  [[nodiscard]] bool unpack(Unpacker& in, Valid valid, Base base) {
    while (in.good && !in.empty()) {
      const std::uint64_t count = in.number(), ranks = in.number();
      // A block of numbers takes a byte or more.
      const std::uint64_t most = in.left().size();
      if (!in.good || count / kBlock > most || ranks / kBlock > most || count * (ranks / kBlock) > most) return false;
      columns_.resize(count);
      std::int64_t before = 0;
      numbers(in, count, [&](std::size_t i, std::uint64_t number) {
        columns_[i] = before = Unpacker::unfolded(number, before);
        in.good = in.good && valid(columns_[i]);
      });
      if (!in.good) return false;
      const std::span<std::int64_t> rows = add(columns_, ranks);
      before = 0;
      numbers(in, ranks, [&](std::size_t i, std::uint64_t number) {
        const std::int64_t rank = Unpacker::unfolded(number, before);
        rows[i * (1 + count)] = rank;
        before = rank + 1;
      });
      for (std::size_t c = 0; c < count; ++c)
        numbers(in, ranks, [&, of = base(columns_[c])](std::size_t i, std::uint64_t number) {
          rows[i * (1 + count) + 1 + c] = Unpacker::unfolded(number, of);
        });
    }
    return in.good;
  }

 private:
  static constexpr std::size_t kHead = 2;  ///< of a group: number of columns, number of rows; then come the columns
  std::vector<std::int64_t> data_;
  std::vector<std::int64_t> columns_;  ///< work space
  std::size_t last_ = 0;               ///< where the last group begins

  Group group_at(std::size_t at) const {
    const auto columns = static_cast<std::size_t>(data_[at]), rows = static_cast<std::size_t>(data_[at + 1]);
    const std::span<const std::int64_t> data(data_);
    return {data.subspan(at + kHead, columns), data.subspan(at + kHead + columns, rows * (1 + columns))};
  }
  template <typename Number>
  static void numbers(Packer& out, std::size_t count, Number number) {
    std::array<NumberRow<1>, kBlock> rows;
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t these = std::min(kBlock, count - begin);
      for (std::size_t i = 0; i < these; ++i) rows[i][0] = number(begin + i);
      out.block(std::span<const NumberRow<1>>(rows).first(these));
    }
  }
  template <typename Take>
  static void numbers(Unpacker& in, std::size_t count, Take take) {
    NumberColumns<1> columns;
    for (std::size_t begin = 0; begin < count && in.good; begin += kBlock) {
      const std::size_t these = std::min(kBlock, count - begin);
      in.block(these, columns);
      for (std::size_t i = 0; i < these; ++i) take(begin + i, columns[0][i]);
    }
  }
};

}  // namespace latecomer::profiles
