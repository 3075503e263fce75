// SPDX-License-Identifier: BSD-3-Clause
// The measurement of clock offsets: ping-pong messages along a tree of domains, and updates along a
// tree inside a domain.
#include "shim/state/clocks.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "shim/state/post.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/world.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {
namespace {

struct Ping {
  std::uint64_t serial = 0;
};
struct Pong {
  std::uint64_t serial = 0;
  Nanoseconds common = 0, uncertainty = 0;
};
struct Update {
  Nanoseconds offset = 0, uncertainty = 0, looked_at = 0, drift_ppb = 0;
  int looks = 0;
};

// Round trips per measurement of an offset. The fastest one limits the error. Derived: if every second round trip is
// disturbed, all 16 are with a probability of 2^-16.
constexpr int kPings = 16;
// The pause between two measurements. Derived: until a drift is known, the uncertainty grows by 1 us per second
// (drift_ppb_). A measurement per second takes at most 0.01% of the time, and 0.2% with more ranks than cores.
constexpr Nanoseconds kRenewEvery = 1'000'000'000;
// The longest wait in renew_offset(). Derived: kPings round trips of 6 us on a fast network. With more ranks than
// cores, the other rank needs a core first: a shorter wait would get fewer answers, a longer one costs more time per
// second. Later answers are ignored.
constexpr Nanoseconds kWindow = 100'000, kCourteousWindow = 2'000'000;

template <typename T>
void send_now(Rank to, int tag, const T& value) {
  PMPI_Send(&value, sizeof value, MPI_BYTE, to, tag, job_world().comm);
}
template <typename T>
void receive_now(Rank from, int tag, T& value) {
  PMPI_Recv(&value, sizeof value, MPI_BYTE, from, tag, job_world().comm, MPI_STATUS_IGNORE);
}

/// Receives a message with that tag if one has arrived.
template <typename T>
bool receive_if(Rank from, int tag, T& value) {
  static auto& pings = *new Incoming(kPingChannel);
  static auto& pongs = *new Incoming(kPongChannel);
  static auto& updates = *new Incoming(kOffsetChannel);
  static std::mutex mutex;  // several threads may be at the end of an epoch
  const std::lock_guard lock(mutex);
  bool fits = false;
  (tag == kPingChannel   ? pings
   : tag == kPongChannel ? pongs
                         : updates)
      .take_piece(from, [&](Rank, std::span<const char> bytes) {
        fits = bytes.size() == sizeof value;
        if (fits) std::memcpy(&value, bytes.data(), sizeof value);
      });
  return fits;
}

}  // namespace

Nanoseconds Clocks::uncertainty_now() const {
  if (domains == 1) return 0;
  const Nanoseconds age = now() - looked_at_.load(std::memory_order_relaxed);
  return uncertainty.load(std::memory_order_relaxed) +
         age / 1'000'000 * drift_ppb_.load(std::memory_order_relaxed) / 1'000;
}

void Clocks::take_offset(Nanoseconds low, Nanoseconds high, Nanoseconds parents) {
  const Nanoseconds fresh = low + (high - low) / 2, width = std::max<Nanoseconds>(0, (high - low + 1) / 2);
  const Nanoseconds at = now(), age = at - looked_at_.load(std::memory_order_relaxed);
  if (looks.load(std::memory_order_relaxed) > 0 && age > 0) {
    const Nanoseconds moved = fresh > offset ? fresh - offset : offset - fresh;
    // Twice the drift since the last measurement: the kernel sometimes steers its clock.
    if (parent >= 0)
      drift_ppb_ = std::max<Nanoseconds>(
          1000, 2 * static_cast<Nanoseconds>(static_cast<double>(moved) * 1e9 / static_cast<double>(age)));
  }
  offset = fresh;
  uncertainty = width + parents;
  looked_at_ = at;
  ++looks;
}

void survey_clocks(Clocks& c, Rank rank, const std::vector<Rank>& first_of) {
  std::vector<Rank> lookers;
  for (std::size_t r = 0; r < first_of.size(); ++r)
    if (first_of[r] == static_cast<Rank>(r)) lookers.push_back(static_cast<Rank>(r));
  c.domains = static_cast<int>(lookers.size());
  if (c.domains == 1) return;
  std::vector<Rank> domain;
  std::size_t place = 0;  // in it
  for (std::size_t r = 0; r < first_of.size(); ++r)
    if (first_of[r] == first_of[static_cast<std::size_t>(rank)]) {
      if (static_cast<Rank>(r) == rank) place = domain.size();
      domain.push_back(static_cast<Rank>(r));
    }
  if (place != 0) c.above = domain[place & (place - 1)];
  for (std::size_t bit = 1; place + bit < domain.size() && (place & bit) == 0; bit <<= 1)
    c.below.push_back(domain[place + bit]);
  if (c.above < 0) {
    const auto me = static_cast<std::size_t>(std::find(lookers.begin(), lookers.end(), rank) - lookers.begin());
    if (me != 0) c.parent = lookers[me & (me - 1)];
    for (std::size_t bit = 1; me + bit < lookers.size() && (me & bit) == 0; bit <<= 1)
      c.children.push_back(lookers[me + bit]);
    if (c.parent >= 0) {
      Nanoseconds low = INT64_MIN, high = INT64_MAX;
      Pong pong;
      for (int i = 0; i < kPings; ++i) {
        const Nanoseconds sent = now();
        send_now(c.parent, kPingChannel, Ping{});
        receive_now(c.parent, kPongChannel, pong);
        low = std::max(low, pong.common - now());
        high = std::min(high, pong.common - sent);
      }
      c.take_offset(low, high, pong.uncertainty);
    } else {
      c.drift_ppb_ = 0;  // this clock is the common clock
      c.take_offset(0, 0, 0);
    }
    for (const Rank child : c.children)
      for (int i = 0; i < kPings; ++i) {
        Ping ping;
        receive_now(child, kPingChannel, ping);
        send_now(child, kPongChannel, Pong{ping.serial, c.common_now(), c.uncertainty});
      }
  }
  Update mine{c.offset, c.uncertainty, c.looked_at_, c.drift_ppb_, c.looks};
  if (c.above >= 0) {
    receive_now(c.above, kOffsetChannel, mine);
    c.offset = mine.offset;
    c.uncertainty = mine.uncertainty;
    c.looked_at_ = mine.looked_at;
    c.looks = mine.looks;
  }
  // The largest part first: it has the longest way.
  for (auto to = c.below.rbegin(); to != c.below.rend(); ++to) send_now(*to, kOffsetChannel, mine);
}

void renew_offset(Clocks& c) {
  const Nanoseconds begin = now();
  if (c.domains == 1 || begin - std::max(c.tried_at_, c.looked_at_.load()) < kRenewEvery) return;
  if (c.parent < 0 && c.children.empty()) return;
  c.tried_at_ = begin;
  Nanoseconds low = INT64_MIN, high = INT64_MAX, sent = 0, parents = 0;
  int answers = 0;
  bool asked = false;
  const std::uint64_t first_serial = c.serial_ + 1;
  const bool courteous = job_rules().courteous;
  const Nanoseconds window = courteous ? kCourteousWindow : kWindow;
  auto unasked = static_cast<int>(c.children.size()) * kPings;
  while (now() - begin < window && ((c.parent >= 0 && answers < kPings) || unasked > 0)) {
    if (courteous) sched_yield();
    if (c.parent >= 0 && answers < kPings) {
      if (!asked) {
        sent = now();
        asked = post_bytes(c.parent, kPingChannel, Ping{++c.serial_});
      }
      Pong pong;
      if (receive_if(c.parent, kPongChannel, pong) && pong.serial >= first_serial) {
        low = std::max(low, pong.common - now());
        high = std::min(high, pong.common - sent);
        parents = pong.uncertainty;
        ++answers;
        asked = false;
      }
    }
    for (const Rank child : c.children) {
      Ping ping;
      if (!receive_if(child, kPingChannel, ping)) continue;
      post_bytes(child, kPongChannel, Pong{ping.serial, c.common_now(), c.uncertainty_now()});
      --unasked;
    }
  }
  if (c.parent < 0) {
    c.take_offset(0, 0, 0);
    return;
  }
  if (answers == 0) return;
  // Keep a narrow interval if the wide one agrees with it. If they disagree, the clocks drifted more than assumed, and
  // the new interval is right.
  const Nanoseconds width = (high - low) / 2 + parents, old = c.uncertainty_now();
  const bool agree = low - parents <= c.offset + old && high + parents >= c.offset - old;
  if (agree && width > old) return;
  c.take_offset(low, high, parents);
  const Update update{c.offset, c.uncertainty, c.looked_at_, c.drift_ppb_, c.looks};
  for (const Rank to : c.below) post_bytes(to, kOffsetChannel, update);
}

void hear_offset(Clocks& c) {
  if (c.domains == 1 || c.above < 0) return;
  Update update;
  bool heard = false;
  while (receive_if(c.above, kOffsetChannel, update)) {
    heard = true;
    c.offset = update.offset;
    c.uncertainty = update.uncertainty;
    c.looked_at_ = update.looked_at;
    c.drift_ppb_ = update.drift_ppb;
    c.looks = update.looks;
  }
  if (!heard) return;
  for (const Rank to : c.below) post_bytes(to, kOffsetChannel, update);
}

}  // namespace latecomer::shim
