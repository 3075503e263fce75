// SPDX-License-Identifier: BSD-3-Clause
// Implements the serialization of plans and the lookup of entries.
#include "core/agreement/plan.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

struct Head {
  std::uint64_t period, first, entries, patterns, sizes;
};

}  // namespace

std::vector<char> Plan::serialize() const {
  static_assert(sizeof(Nanoseconds) == sizeof(Bytes) && sizeof(PlanEntry) == 32);
  const Head head{period, first, entries.size(), patterns.size(), sizes.size()};
  const std::size_t ranks = patterns.empty() ? (sizes.empty() ? 0 : sizes[0].size()) : patterns[0].size();
  std::vector<char> out(sizeof head + entries.size() * sizeof(PlanEntry) +
                        (patterns.size() + sizes.size()) * ranks * sizeof(Nanoseconds));
  char* at = out.data();
  const auto put = [&](const void* data, std::size_t size) {
    if (size) std::memcpy(at, data, size);
    at += size;
  };
  put(&head, sizeof head);
  put(entries.data(), entries.size() * sizeof(PlanEntry));
  for (const auto& pattern : patterns) put(pattern.data(), ranks * sizeof(Nanoseconds));
  for (const auto& of_blocks : sizes) put(of_blocks.data(), ranks * sizeof(Bytes));
  return out;
}

bool Plan::deserialize(std::span<const char> bytes, int ranks, Plan& out) {
  Head head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  // Derived: with 2^20 entries and 2^31 ranks the sizes below sum to at most 2^55 bytes, so they never overflow. Plans
  // of a leader have at most 512 entries (Learner::kHistory / 2). A larger plan counts as damaged.
  constexpr std::uint64_t kMostEntries = 1 << 20;
  const std::size_t row = static_cast<std::size_t>(ranks) * sizeof(Nanoseconds);
  if (head.entries > kMostEntries || head.patterns > head.entries || head.sizes > head.entries ||
      (head.period != 0 && head.period != head.entries) ||
      bytes.size() != sizeof head + head.entries * sizeof(PlanEntry) + (head.patterns + head.sizes) * row)
    return false;
  const char* at = bytes.data() + sizeof head;
  out.period = head.period;
  out.first = head.first;
  out.entries.resize(head.entries);
  if (head.entries) std::memcpy(static_cast<void*>(out.entries.data()), at, head.entries * sizeof(PlanEntry));
  at += head.entries * sizeof(PlanEntry);
  out.patterns.assign(head.patterns, std::vector<Nanoseconds>(static_cast<std::size_t>(ranks)));
  for (auto& pattern : out.patterns) std::memcpy(pattern.data(), at, row), at += row;
  out.sizes.assign(head.sizes, std::vector<Bytes>(static_cast<std::size_t>(ranks)));
  for (auto& of_blocks : out.sizes) {
    std::memcpy(of_blocks.data(), at, row), at += row;
    if (std::any_of(of_blocks.begin(), of_blocks.end(), [](Bytes b) { return b < 0; })) return false;
  }
  for (const PlanEntry& e : out.entries)
    if (e.pattern >= static_cast<std::int32_t>(head.patterns) || e.sizes >= static_cast<std::int32_t>(head.sizes))
      return false;
  return true;
}

std::uint64_t Plan::hash() const {
  const auto bytes = serialize();
  return empty() ? 0 : fnv1a({bytes.data(), bytes.size()});
}

void PlanInForce::install(Plan plan) {
  std::vector<std::uint16_t> used(plan.entries.size(), 0);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const PlanEntry& e = plan.entries[i];
    if (e.trial == 0) continue;
    for (std::size_t k = 0; k < used_.size(); ++k) {
      const PlanEntry& before = plan_.entries[k];
      if (before.trial != 0 && before.signature == e.signature && before.algorithm == e.algorithm &&
          before.segments == e.segments && before.round == e.round)
        used[i] = std::max(used[i], std::min(used_[k], e.trial));
    }
  }
  used_ = std::move(used);
  plan_ = std::move(plan);
  hash_ = plan_.hash();
  dropped_ = false;
}

const PlanEntry* PlanInForce::use(const PlanEntry& entry) {
  static constexpr PlanEntry kNative;
  if (entry.trial == 0) return &entry;
  auto& used = used_[static_cast<std::size_t>(&entry - plan_.entries.data())];
  return used < entry.trial ? ++used, &entry : &kNative;
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
