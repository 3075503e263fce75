// SPDX-License-Identifier: BSD-3-Clause
// How many messages have how many bytes, in powers of two, and what went between pairs of ranks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "profiles/record/peers.hpp"

namespace latecomer::profiles {

/// Messages by length. Bucket 0 holds those without data, bucket n those of at least 2^(n-1) bytes and less than 2^n.
struct Lengths {
  static constexpr std::size_t kBuckets = 32;  ///< the last one has no upper limit
  std::uint64_t bytes = 0;                     ///< of all of them
  std::array<std::uint64_t, kBuckets> messages{};

  void add(core::Bytes length) {
    const auto size = static_cast<std::uint64_t>(length);
    core::add_shared(bytes, size);
    core::add_shared(messages[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(size)), kBuckets - 1)], 1);
  }
  void merge(const Lengths& o) {
    bytes += o.bytes;
    for (std::size_t i = 0; i < kBuckets; ++i) messages[i] += o.messages[i];
  }
  std::uint64_t count() const {
    std::uint64_t out = 0;
    for (const std::uint64_t n : messages) out += n;
    return out;
  }
};

/// What a rank, or a row of ranks, sent to another one, and how long it waited for the messages of that.
struct PairSums {
  std::uint64_t messages = 0, bytes = 0;
  core::Nanoseconds waited = 0;
  void add(core::Bytes length) {
    ++messages;
    bytes += static_cast<std::uint64_t>(length);
  }
  void merge(const PairSums& o) {
    messages += o.messages;
    bytes += o.bytes;
    waited = plus(waited, o.waited);
  }
};

/// Of a process and the peers in one row.
struct PeerSums {
  std::int32_t row = 0;
  std::int32_t fetched = 0;  ///< 1: the process took the bytes from the peers, which do not count them
  PairSums sums;
};

/// Of one process, by rows of ranks.
class PeerTable {
 public:
  /// Derived: 256 rows of 24 bytes twice take 12 KiB per process, and 256 by 256 pairs 1.5 MiB at the end.
  static constexpr int kRows = 256;
  static constexpr int per_row(int ranks) { return (ranks + kRows - 1) / kRows; }
  void begin(int ranks) { per_row_ = per_row(ranks); }
  /// `peer`: a rank of the job. `fetched`: as of PeerSums.
  PairSums& of(core::Rank peer, bool fetched = false) {
    const int row = per_row_ == 1 ? peer : peer / per_row_;
    return (fetched ? fetched_ : rows_)[static_cast<std::size_t>(row) % kRows];
  }
  /// Calls visit(PeerSums) for those that are not zero.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const int fetched : {0, 1})
      for (int row = 0; row < kRows; ++row)
        if (const PairSums& sums = (fetched ? fetched_ : rows_)[static_cast<std::size_t>(row)];
            sums.messages > 0 || sums.waited > 0)
          visit(PeerSums{row, fetched, sums});
  }

 private:
  int per_row_ = 1;
  std::array<PairSums, kRows> rows_{}, fetched_{};
};

/// Of all processes, by the rows of a rank and of its peer.
using PairTable = std::map<std::pair<std::int32_t, std::int32_t>, PairSums>;

}  // namespace latecomer::profiles
