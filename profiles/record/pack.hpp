// SPDX-License-Identifier: BSD-3-Clause
// A compact format for the records that ranks exchange. The times of successive calls are near each other, and calls
// repeat. So a call with the shape of one of the last calls takes about 8 bytes instead of 48.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "profiles/record/call_record.hpp"

namespace latecomer::profiles {

/// The properties that are often equal in successive calls. Properties that a call does not have are 0.
struct CallShape {
  std::uint64_t site = 0;
  std::int64_t bytes = 0;
  std::uint32_t callers = 0;
  std::int32_t root = 0, ranks = 0;
  core::Collective op = core::Collective::barrier;
  core::CallKind kind = core::CallKind::blocking;
  std::uint8_t algorithm = 0, edge = 0, flags = 0;
  bool operator==(const CallShape&) const = default;
};

/// The shapes of the last calls. The writer and the reader of a message keep the same shapes.
class LastShapes {
 public:
  /// The distance of the shape from the newest one, counted from 1. 0: the shape is not kept.
  std::uint64_t find(const CallShape& shape) const {
    for (std::size_t back = 1; back <= count_; ++back)
      if ((*this)[back] == shape) return back;
    return 0;
  }
  bool has(std::uint64_t back) const { return back >= 1 && back <= count_; }
  const CallShape& operator[](std::size_t back) const { return shapes_[(next_ - back) % kKept]; }
  void add(const CallShape& shape) {
    shapes_[next_++ % kKept] = shape;
    if (count_ < kKept) ++count_;
  }

 private:
  static constexpr std::size_t kKept = 32;
  std::array<CallShape, kKept> shapes_;
  std::size_t next_ = 0, count_ = 0;
};

/// The most rows of a block. Derived: one number of an unusual length costs its column 31 numbers of that length.
inline constexpr std::size_t kBlock = 32;
template <std::size_t Columns>
using NumberRow = std::array<std::uint64_t, Columns>;
template <std::size_t Columns>
using NumberColumns = std::array<std::array<std::uint64_t, kBlock>, Columns>;

constexpr std::uint64_t little_endian(std::uint64_t value) {
  return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

class Packer {
 public:
  explicit Packer(std::vector<char>& out) : out_(out) {}
  /// Writes a number with seven bits per byte, the lowest first.
  void number(std::uint64_t value) {
    if (value < 0x80) return out_.push_back(static_cast<char>(value));
    std::array<char, 10> bytes;
    std::size_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = static_cast<char>(value | 0x80);
    bytes[count++] = static_cast<char>(value);
    append(std::span(bytes).first(count));
  }
  /// Writes the difference of two numbers. Differences near 0, of either sign, take one byte.
  void difference(std::int64_t to, std::int64_t from) { number(folded(to, from)); }
  static std::uint64_t folded(std::int64_t to, std::int64_t from) {
    const std::uint64_t value = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
    return value << 1 ^ (std::uint64_t{0} - (value >> 63));
  }
  void plain(std::uint64_t value) { append(std::bit_cast<std::array<char, sizeof value>>(value)); }
  void append(std::span<const char> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void shape(const CallShape& s) {
    plain(s.site);
    difference(s.bytes, 0);
    number(s.callers);
    difference(s.root, 0);
    difference(s.ranks, 0);
    for (const std::uint8_t byte :
         {static_cast<std::uint8_t>(s.op), static_cast<std::uint8_t>(s.kind), s.algorithm, s.edge, s.flags})
      out_.push_back(static_cast<char>(byte));
  }
  /// Writes rows of numbers, at most kBlock of them. All numbers of a column have the same length, so a reader decides
  /// nothing per number. Two lengths share a byte, in front of the numbers.
  template <std::size_t Columns>
  void block(std::span<const NumberRow<Columns>> rows) {
    NumberRow<Columns> all{};
    for (const auto& row : rows)
      for (std::size_t c = 0; c < Columns; ++c) all[c] |= row[c];
    std::array<char, (Columns + 1) / 2> lengths{};
    std::size_t bytes = 0;
    for (std::size_t c = 0; c < Columns; ++c) {
      const auto length = static_cast<std::size_t>(std::bit_width(all[c]) + 7) / 8;
      lengths[c / 2] = static_cast<char>(lengths[c / 2] | length << c % 2 * 4);
      bytes += length * rows.size();
      all[c] = length;
    }
    append(lengths);
    const std::size_t begin = out_.size();
    out_.resize(begin + bytes + sizeof(std::uint64_t));  // the last number is written with eight bytes, too
    char* at = out_.data() + begin;
    for (std::size_t c = 0; c < Columns; ++c) {
      if (all[c] == 0) continue;
      for (const auto& row : rows) {
        const std::uint64_t value = little_endian(row[c]);
        std::memcpy(at, &value, sizeof value);
        at += all[c];
      }
    }
    out_.resize(begin + bytes);
  }

 private:
  std::vector<char>& out_;
};

/// Reads the format of Packer. After damaged bytes, `good` is false, and all values are 0.
class Unpacker {
 public:
  explicit Unpacker(std::span<const char> in) : in_(in) {}
  bool good = true;
  bool empty() const { return in_.empty(); }
  std::span<const char> left() const { return in_; }
  std::uint64_t number() {
    if (!in_.empty() && static_cast<std::int8_t>(in_.front()) >= 0) {
      const auto only = static_cast<std::uint8_t>(in_.front());
      in_ = in_.subspan(1);
      return only;
    }
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !in_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(in_.front());
      in_ = in_.subspan(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    good = false;
    return 0;
  }
  std::int64_t difference(std::int64_t from) { return unfolded(number(), from); }
  static std::int64_t unfolded(std::uint64_t folded, std::int64_t from) {
    const std::uint64_t value = folded >> 1 ^ (std::uint64_t{0} - (folded & 1));
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + value);
  }
  std::uint64_t plain() {
    std::uint64_t value = 0;
    if (const auto bytes = take(sizeof value); !bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  /// The next `count` bytes, or no bytes if fewer are left.
  std::span<const char> take(std::size_t count) {
    if (!good || in_.size() < count || count == 0) {
      good = good && count == 0;
      return {};
    }
    const auto out = in_.first(count);
    in_ = in_.subspan(count);
    return out;
  }
  CallShape shape() {
    CallShape s;
    s.site = plain();
    s.bytes = difference(0);
    s.callers = static_cast<std::uint32_t>(number());
    s.root = static_cast<std::int32_t>(difference(0));
    s.ranks = static_cast<std::int32_t>(difference(0));
    const std::span<const char> rest = take(5);
    if (rest.empty()) return s;
    const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(rest[at]); };
    good = byte(0) < core::kCollectives && byte(1) <= static_cast<std::uint8_t>(core::CallKind::persistent);
    if (!good) return s;
    s.op = static_cast<core::Collective>(byte(0));
    s.kind = static_cast<core::CallKind>(byte(1));
    s.algorithm = byte(2);
    s.edge = byte(3);
    s.flags = byte(4);
    return s;
  }
  template <std::size_t Columns>
  void block(std::size_t rows, NumberColumns<Columns>& out) {
    const std::span<const char> lengths = take((Columns + 1) / 2);
    for (std::size_t c = 0; c < Columns && good; ++c)
      column(static_cast<std::uint8_t>(lengths[c / 2]) >> c % 2 * 4 & 15, std::span(out[c]).first(rows));
  }

 private:
  void column(std::size_t length, std::span<std::uint64_t> out) {
    good = good && length <= sizeof(std::uint64_t);
    const char* at = in_.data();
    const std::size_t readable = in_.size();
    take(length * out.size());
    if (!good || length == 0) {
      std::ranges::fill(out, 0);
      return;
    }
    const auto read = [&](std::uint64_t& number, std::size_t bytes) {
      std::uint64_t value = 0;
      std::memcpy(&value, at, bytes);
      at += length;
      number = little_endian(value);
    };
    // Reads eight bytes and drops what is above the number, except near the end of the message.
    const std::size_t whole =
        readable < sizeof(std::uint64_t) ? 0 : std::min(out.size(), (readable - sizeof(std::uint64_t)) / length + 1);
    const std::uint64_t mask = ~std::uint64_t{0} >> (8 * (sizeof(std::uint64_t) - length));
    for (std::uint64_t& number : out.first(whole)) {
      read(number, sizeof number);
      number &= mask;
    }
    for (std::uint64_t& number : out.subspan(whole)) read(number, length);
  }

  std::span<const char> in_;
};

}  // namespace latecomer::profiles
