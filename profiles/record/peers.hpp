// SPDX-License-Identifier: BSD-3-Clause
// The ranks whose messages a rank waited for most, in fixed memory. It does not know the reasons.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/shared.hpp"
#include "core/collective/collective.hpp"

namespace latecomer::profiles {

/// sum + times * one, limited to the range of the type, because a damaged snapshot may hold any figure.
constexpr core::Nanoseconds plus(core::Nanoseconds sum, core::Nanoseconds one, std::int64_t times = 1) {
  core::Nanoseconds out = 0;
  if (!__builtin_mul_overflow(one, times, &out) && !__builtin_add_overflow(sum, out, &out)) return out;
  return (one < 0) == (times < 0) ? INT64_MAX : INT64_MIN;
}

/// Times by rank. Keeps the longest by space saving (Metwally, Agrawal and El Abbadi 2005): a new rank takes the place
/// and the time of the rank with the shortest time. The sum over ranks is exact. With at most kKept ranks, each time is
/// exact, too. With more ranks, a time is too long by at most an eighth of the sum.
class Peers {
 public:
  static constexpr std::size_t kKept = 8;
  struct Peer {
    core::Rank rank = 0;
    core::Nanoseconds waited = 0;
  };
  void add(core::Rank rank, core::Nanoseconds waited) {
    std::size_t at = 0, least = 0;
    for (; at < count_ && peers_[at].rank != rank; ++at)
      if (peers_[at].waited < peers_[least].waited) least = at;
    if (at == kKept) at = least;
    core::store_shared(peers_[at].rank, rank);
    core::store_shared(peers_[at].waited, plus(peers_[at].waited, waited));
    if (at == count_) std::atomic_ref(count_).store(at + 1, std::memory_order_release);
  }
  /// `times`: the factor with which the other object's times count.
  void merge(const Peers& o, std::int64_t times = 1) {
    for (const Peer& p : o.all()) add(p.rank, plus(0, p.waited, times));
  }
  std::span<const Peer> all() const { return {peers_.data(), std::min<std::size_t>(count_, kKept)}; }

 private:
  std::array<Peer, kKept> peers_;
  std::uint64_t count_ = 0;
};

}  // namespace latecomer::profiles
