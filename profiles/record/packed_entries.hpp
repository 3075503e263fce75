// SPDX-License-Identifier: BSD-3-Clause
// The entries of the messages of a DigestNode as bytes: records, digests, facts and sums of calls, and what the columns
// of its samples mean.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "profiles/record/digest.hpp"
#include "profiles/record/pack.hpp"

namespace latecomer::profiles {

/// The properties of the shape of a call that are equal in its record and in its digest.
auto properties_of(auto& call) {
  return std::tie(call.site, call.bytes, call.callers, call.root, call.op, call.kind, call.algorithm, call.edge);
}

/// Packs the entries of a part in blocks, and unpacks them. An entry is a row of numbers, and its times are relative to
/// the times of the entry before. What few entries have follows the block, such as a new shape.
class PackedEntries {
 public:
  template <typename Entry>
  void pack(Packer& out, std::span<const Entry> entries) {
    constexpr std::size_t kColumns = std::tuple_size_v<decltype(row_of(std::declval<const Entry&>()))>;
    std::array<NumberRow<kColumns>, kBlock> rows;
    while (!entries.empty()) {
      const auto these = entries.first(std::min(kBlock, entries.size()));
      std::ranges::transform(these, rows.begin(), [&](const Entry& e) { return row_of(e); });
      out.block(std::span<const NumberRow<kColumns>>(rows).first(these.size()));
      for (std::size_t i = 0; i < these.size(); ++i) pack_rest(out, rows[i][0], these[i]);
      entries = entries.subspan(these.size());
    }
  }
  /// `entries` grows if there are more than ever before. Entries behind the first `count` are old ones.
  template <typename Entry>
  void unpack(Unpacker& in, std::uint64_t count, std::vector<Entry>& entries) {
    constexpr std::size_t kColumns = std::tuple_size_v<decltype(row_of(std::declval<const Entry&>()))>;
    NumberColumns<kColumns> columns;
    for (std::size_t begin = 0; begin < count && in.good; begin += kBlock) {
      const std::size_t rows = std::min<std::uint64_t>(kBlock, count - begin);
      in.block(rows, columns);
      if (entries.size() < begin + rows) entries.resize(begin + rows);
      for (std::size_t i = 0; i < rows; ++i) fill(entries[begin + i], ColumnsOfRow<kColumns>{columns, i}, in);
    }
  }

 private:
  template <std::size_t Columns>
  struct ColumnsOfRow {
    const NumberColumns<Columns>& columns;
    std::size_t row;
    std::uint64_t operator()(std::size_t column) const { return columns[column][row]; }
  };

  Nanoseconds before_ = 0;
  Rank maker_before_ = 0;
  LastShapes shapes_;
  std::size_t new_shapes_ = 0;  ///< in the block that is being packed

  std::uint64_t number_of(const CallShape& shape) {
    const std::uint64_t back = shapes_.find(shape);
    if (back != 0) return back;
    shapes_.add(shape);
    ++new_shapes_;
    return 0;
  }
  void pack_shape(Packer& out, std::uint64_t number) {
    if (number == 0) out.shape(shapes_[new_shapes_--]);
  }
  /// The shape with this number.
  const CallShape& shape_of(std::uint64_t back, Unpacker& in) {
    if (shapes_.has(back)) return shapes_[back];
    in.good = in.good && back == 0;
    shapes_.add(in.shape());
    return shapes_[1];
  }

  NumberRow<4> row_of(const CallRecord& r) {
    CallShape s;
    properties_of(s) = properties_of(r);
    const Nanoseconds before = std::exchange(before_, r.exit == 0 ? r.arrival : r.exit);
    return {number_of(s), Packer::folded(r.arrival, before), r.exit == 0 ? 0 : 1 + Packer::folded(r.exit, r.arrival),
            static_cast<std::uint64_t>(r.expected + std::int64_t{1})};
  }
  void pack_rest(Packer& out, std::uint64_t shape, const CallRecord&) { pack_shape(out, shape); }
  void fill(CallRecord& r, auto number, Unpacker& in) {
    properties_of(r) = properties_of(shape_of(number(0), in));
    r.arrival = Unpacker::unfolded(number(1), before_);
    r.exit = number(2) == 0 ? 0 : Unpacker::unfolded(number(2) - 1, r.arrival);
    r.expected = static_cast<std::int32_t>(static_cast<std::int64_t>(number(3)) - 1);
    before_ = r.exit == 0 ? r.arrival : r.exit;
  }

  NumberRow<11> row_of(const CallDigest& d) {
    const auto flag = [](bool set, int bit) { return static_cast<std::uint8_t>(set << bit); };
    CallShape s;
    properties_of(s) = properties_of(d);
    s.ranks = d.ranks;
    s.flags = static_cast<std::uint8_t>(flag(d.owned, 0) | flag(d.by_pattern, 1) | flag(d.complete, 2) |
                                        flag(d.divergent, 3) | flag(d.other_callers, 4) | flag(d.sampled, 5));
    return {number_of(s),
            Packer::folded(d.first, std::exchange(before_, d.last)),
            static_cast<std::uint64_t>(d.last) - static_cast<std::uint64_t>(d.first),
            static_cast<std::uint64_t>(d.arrivals),
            Packer::folded(d.exit, d.last),
            Packer::folded(d.elapsed, 0),
            static_cast<std::uint64_t>(d.said),
            number_of_latest(d),
            number_of_awaited(d),
            Packer::folded(d.maker, std::exchange(maker_before_, d.maker)),
            static_cast<std::uint64_t>(d.other + std::int64_t{1})};
  }
  void pack_rest(Packer& out, std::uint64_t shape, const CallDigest& d) {
    pack_shape(out, shape);
    pack_awaited_at(out, d);
    if (d.other < 0) return;
    out.difference(d.other_root, 0);
    out.number(static_cast<std::uint64_t>(d.other_op));
  }
  void fill(CallDigest& d, auto number, Unpacker& in) {
    const CallShape& s = shape_of(number(0), in);
    const auto flag = [&](int bit) { return (s.flags >> bit & 1) != 0; };
    properties_of(d) = properties_of(s);
    d.ranks = s.ranks;
    d.owned = flag(0);
    d.by_pattern = flag(1);
    d.complete = flag(2);
    d.divergent = flag(3);
    d.other_callers = flag(4);
    d.sampled = flag(5);
    d.first = Unpacker::unfolded(number(1), before_);
    d.last = static_cast<Nanoseconds>(static_cast<std::uint64_t>(d.first) + number(2));
    d.arrivals = static_cast<Nanoseconds>(number(3));
    d.exit = Unpacker::unfolded(number(4), d.last);
    d.elapsed = Unpacker::unfolded(number(5), 0);
    d.said = static_cast<std::int32_t>(number(6));
    fill_ranks(d, number(7), number(8), in);
    d.maker = static_cast<Rank>(Unpacker::unfolded(number(9), maker_before_));
    d.other = static_cast<Rank>(number(10)) - 1;
    d.other_root = d.other < 0 ? -1 : static_cast<std::int32_t>(in.difference(0));
    const std::uint64_t other_op = d.other < 0 ? 0 : in.number();
    in.good = in.good && other_op < core::kCollectives;
    d.other_op = in.good ? static_cast<core::Collective>(other_op) : core::Collective::barrier;
    before_ = d.last;
    maker_before_ = d.maker;
  }

  NumberRow<6> row_of(const CallFacts& f) {
    return {number_of({.site = f.site,
                       .callers = f.callers,
                       .flags = static_cast<std::uint8_t>(f.known | f.by_pattern << 1 | f.with_arrivals << 2)}),
            Packer::folded(f.first, std::exchange(before_, f.last)),
            static_cast<std::uint64_t>(f.last) - static_cast<std::uint64_t>(f.first),
            static_cast<std::uint64_t>(f.arrivals),
            number_of_latest(f),
            number_of_awaited(f)};
  }
  void pack_rest(Packer& out, std::uint64_t shape, const CallFacts& f) {
    pack_shape(out, shape);
    pack_awaited_at(out, f);
  }
  void fill(CallFacts& f, auto number, Unpacker& in) {
    const CallShape& s = shape_of(number(0), in);
    f.site = s.site;
    f.callers = s.callers;
    f.known = (s.flags & 1) != 0;
    f.by_pattern = (s.flags & 2) != 0;
    f.with_arrivals = (s.flags & 4) != 0;
    f.first = Unpacker::unfolded(number(1), before_);
    f.last = static_cast<Nanoseconds>(static_cast<std::uint64_t>(f.first) + number(2));
    f.arrivals = static_cast<Nanoseconds>(number(3));
    fill_ranks(f, number(4), number(5), in);
    before_ = f.last;
  }

  static NumberRow<2> row_of(const CallSums& s) { return {Packer::folded(s.waited, 0), Packer::folded(s.error, 0)}; }
  static void pack_rest(Packer&, std::uint64_t, const CallSums&) {}
  static void fill(CallSums& s, auto number, Unpacker&) {
    s = {Unpacker::unfolded(number(0), 0), Unpacker::unfolded(number(1), 0)};
  }

  /// The latest rank and the awaited one. Of the awaited one, 0 is the latest, 1 no rank, and higher values are its
  /// number plus 2. Its arrival is in the rest.
  template <typename Entry>
  static std::uint64_t number_of_latest(const Entry& e) {
    return static_cast<std::uint64_t>(e.latest + std::int64_t{1});
  }
  template <typename Entry>
  static std::uint64_t number_of_awaited(const Entry& e) {
    const bool same = e.awaited >= 0 && e.awaited == e.latest && e.awaited_at == e.last;
    return same ? 0 : static_cast<std::uint64_t>(e.awaited + std::int64_t{2});
  }
  template <typename Entry>
  static void pack_awaited_at(Packer& out, const Entry& e) {
    if (number_of_awaited(e) > 1) out.difference(e.awaited_at, e.last);
  }
  template <typename Entry>
  static void fill_ranks(Entry& e, std::uint64_t latest, std::uint64_t awaited, Unpacker& in) {
    e.latest = static_cast<Rank>(latest) - 1;
    e.awaited = awaited == 0 ? e.latest : static_cast<Rank>(awaited - 2);
    e.awaited_at = awaited == 0 ? e.last : awaited == 1 ? INT64_MIN : in.difference(e.last);
  }
};

/// A column of SampleRows: one of the values of a call of the epoch.
struct SampleColumn {
  enum What : std::uint8_t { arrival, exit, bytes };
  std::uint64_t call;  ///< index in the epoch
  What what;
  std::int64_t number() const { return static_cast<std::int64_t>(call * 4 + what); }
  static SampleColumn of(std::int64_t number) {
    const auto n = static_cast<std::uint64_t>(number);
    return {n / 4, static_cast<What>(n % 4)};
  }
};

/// Times of a call are near its first arrival.
struct SampleBase {
  std::span<const CallDigest> digests;
  std::int64_t operator()(std::int64_t column) const {
    const auto [call, what] = SampleColumn::of(column);
    return what == SampleColumn::bytes ? 0 : digests[call].first;
  }
};

}  // namespace latecomer::profiles
