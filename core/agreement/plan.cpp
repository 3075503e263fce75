// SPDX-License-Identifier: BSD-3-Clause
// Implements the serialization of plans and the lookup of entries.
#include "core/agreement/plan.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

struct Head {
  std::uint64_t period, first, entries, turns, patterns, sizes;
};

/// In front of the plan of an announcement.
struct AnnouncementHead {
  std::uint32_t kind, rest;
  std::uint64_t epoch;
};

/// Two slots with one signature, such as two call sites in a loop, take their turns in different orders.
std::uint64_t seed_of(const PlanEntry& entry, std::uint64_t slot) {
  return mix64(entry.signature ^ mix64(std::uint64_t{entry.round} << 32 | slot));
}

/// The unit of time in which the last arrival is at most 65,535. Entries are rounded up to whole units. The rounded
/// pattern has the same unit, so a rank can send on a pattern that it has received, without another rounding.
Nanoseconds unit_of(const std::vector<Nanoseconds>& pattern) {
  constexpr Nanoseconds kMost = UINT16_MAX;
  const Nanoseconds last = pattern.empty() ? 0 : *std::ranges::max_element(pattern);
  return last <= kMost ? 1 : (last - 1) / kMost + 1;
}

std::size_t pattern_bytes(std::size_t ranks) { return sizeof(Nanoseconds) + ranks * sizeof(std::uint16_t); }

}  // namespace

int turn_of(std::uint64_t seed, std::uint64_t used, int turns) {
  const auto count = static_cast<std::uint64_t>(turns), position = used % count;
  std::array<int, kMostTurns> order{};
  for (int i = 0; i < turns; ++i) order[static_cast<std::size_t>(i)] = i;
  SplitMix64 random(seed ^ mix64(used / count));
  for (std::uint64_t i = 0; i <= position; ++i) std::swap(order[i], order[i + random.below(count - i)]);
  return order[position];
}

std::vector<char> Plan::serialize() const {
  static_assert(sizeof(PlanEntry) == 40);
  const Head head{period, first, entries.size(), turns.size(), patterns.size(), sizes.size()};
  const std::size_t ranks = patterns.empty() ? (sizes.empty() ? 0 : sizes[0].size()) : patterns[0].size();
  std::vector<char> out(sizeof head + (entries.size() + turns.size()) * sizeof(PlanEntry) +
                        patterns.size() * pattern_bytes(ranks) + sizes.size() * ranks * sizeof(Bytes));
  char* at = out.data();
  const auto put = [&](const void* data, std::size_t size) {
    if (size) std::memcpy(at, data, size);
    at += size;
  };
  put(&head, sizeof head);
  put(entries.data(), entries.size() * sizeof(PlanEntry));
  put(turns.data(), turns.size() * sizeof(PlanEntry));
  for (const auto& pattern : patterns) {
    const Nanoseconds unit = unit_of(pattern);
    put(&unit, sizeof unit);
    for (const Nanoseconds after : pattern) {
      const auto units =
          static_cast<std::uint16_t>(std::max<Nanoseconds>(after, 0) / unit + (after > 0 && after % unit));
      put(&units, sizeof units);
    }
  }
  for (const auto& of_blocks : sizes) put(of_blocks.data(), ranks * sizeof(Bytes));
  return out;
}

bool Plan::deserialize(std::span<const char> bytes, int ranks, Plan& out) {
  Head head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  // Derived: with 2^20 entries and 2^31 ranks the sizes below sum to at most 2^58 bytes, so they never overflow. Plans
  // of a leader have at most 512 entries (SlotTable::kHistory / 2). A larger plan counts as damaged.
  constexpr std::uint64_t kMostEntries = 1 << 20;
  const std::size_t row = static_cast<std::size_t>(ranks) * sizeof(Bytes),
                    of_pattern = pattern_bytes(static_cast<std::size_t>(ranks));
  if (head.entries > kMostEntries || head.turns > kMostTurns * head.entries) return false;
  const std::uint64_t all = head.entries + head.turns;
  if (head.patterns > all || head.sizes > all || (head.period != 0 && head.period != head.entries) ||
      bytes.size() != sizeof head + all * sizeof(PlanEntry) + head.patterns * of_pattern + head.sizes * row)
    return false;
  const char* at = bytes.data() + sizeof head;
  out.period = head.period;
  out.first = head.first;
  for (auto [to, count] : {std::pair{&out.entries, head.entries}, std::pair{&out.turns, head.turns}}) {
    to->resize(count);
    if (count) std::memcpy(static_cast<void*>(to->data()), at, count * sizeof(PlanEntry));
    at += count * sizeof(PlanEntry);
  }
  const auto take = [&at](void* to, std::size_t size) {
    std::memcpy(to, at, size);
    at += size;
  };
  out.patterns.assign(head.patterns, std::vector<Nanoseconds>(static_cast<std::size_t>(ranks)));
  constexpr Nanoseconds kLongestUnit = Nanoseconds{1} << 46;  // so that 65,535 units do not overflow
  for (auto& pattern : out.patterns) {
    Nanoseconds unit;
    take(&unit, sizeof unit);
    if (unit < 1 || unit > kLongestUnit) return false;
    for (Nanoseconds& after : pattern) {
      std::uint16_t units;
      take(&units, sizeof units);
      after = units * unit;
    }
  }
  out.sizes.assign(head.sizes, std::vector<Bytes>(static_cast<std::size_t>(ranks)));
  for (auto& of_blocks : out.sizes) {
    take(of_blocks.data(), row);
    if (std::any_of(of_blocks.begin(), of_blocks.end(), [](Bytes b) { return b < 0; })) return false;
  }
  const auto sound = [&](const PlanEntry& e) {
    return e.pattern < static_cast<std::int32_t>(head.patterns) && e.sizes < static_cast<std::int32_t>(head.sizes);
  };
  for (const PlanEntry& e : out.entries)
    if (!sound(e) || e.turns > kMostTurns ||
        (e.turns > 0 && (e.first_turn < 0 || static_cast<std::uint64_t>(e.first_turn) + e.turns > head.turns)))
      return false;
  if (!std::ranges::all_of(out.turns, [&](const PlanEntry& e) { return sound(e) && e.turns == 0; })) return false;
  return true;
}

std::uint64_t Plan::hash() const {
  const auto bytes = serialize();
  return empty() ? 0 : fnv1a({bytes.data(), bytes.size()});
}

std::vector<char> Announcement::serialize() const {
  const AnnouncementHead head{static_cast<std::uint32_t>(kind), rest, epoch};
  const std::vector<char> of_plan = kind == Kind::plan ? plan.serialize() : std::vector<char>{};
  std::vector<char> out(sizeof head + of_plan.size());
  std::memcpy(out.data(), &head, sizeof head);
  std::ranges::copy(of_plan, out.begin() + sizeof head);
  return out;
}

bool Announcement::deserialize(std::span<const char> bytes, int ranks, Announcement& out) {
  AnnouncementHead head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.kind > static_cast<std::uint32_t>(Kind::plan)) return false;
  out.kind = static_cast<Kind>(head.kind);
  out.rest = head.rest != 0;
  out.epoch = head.epoch;
  return out.kind != Kind::plan || Plan::deserialize(bytes.subspan(sizeof head), ranks, out.plan);
}

void PlanInForce::install(Plan&& plan) {
  const std::uint64_t hash = plan.hash();
  std::vector<std::uint16_t> used(plan.entries.size(), 0);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const PlanEntry& e = plan.entries[i];
    if (e.turns == 0) continue;
    const auto carry = [&](std::size_t k) {
      const PlanEntry& before = plan_.entries[k];
      if (before.turns != 0 && before.signature == e.signature && before.round == e.round)
        used[i] = std::max(used[i], used_[k]);
    };
    if (plan.period != 0 && plan.period == plan_.period && plan.first == plan_.first) carry(i);
    else
      for (std::size_t k = 0; k < used_.size(); ++k) carry(k);
  }
  used_ = std::move(used);
  plan_ = std::move(plan);
  hash_ = hash;
  dropped_ = false;
}

const PlanEntry* PlanInForce::use(const PlanEntry& entry) {
  if (entry.turns == 0) return &entry;
  const auto slot = static_cast<std::size_t>(&entry - plan_.entries.data());
  if (used_[slot] >= entry.trial) return &entry;
  const int turn = turn_of(seed_of(entry, plan_.period == 0 ? 0 : slot), used_[slot]++, entry.turns);
  return &plan_.turns[static_cast<std::size_t>(entry.first_turn + turn)];
}

const PlanEntry* PlanInForce::at(std::uint64_t n, std::uint64_t signature) {
  if (dropped_ || plan_.entries.empty()) return nullptr;
  if (plan_.period != 0) {
    if (n < plan_.first) return nullptr;
    const PlanEntry& entry = plan_.entries[(n - plan_.first) % plan_.period];
    if (entry.signature == signature) return use(entry);
    dropped_ = true;
    return nullptr;
  }
  const auto found = std::lower_bound(plan_.entries.begin(), plan_.entries.end(), signature,
                                      [](const PlanEntry& e, std::uint64_t s) { return e.signature < s; });
  return found != plan_.entries.end() && found->signature == signature ? use(*found) : nullptr;
}

}  // namespace latecomer::core
