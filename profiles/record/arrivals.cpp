// SPDX-License-Identifier: BSD-3-Clause
// Records the arrivals of single calls within a bounded memory.
#include "profiles/record/arrivals.hpp"

#include <algorithm>
#include <utility>

namespace latecomer::profiles {

using core::Nanoseconds;

std::size_t ArrivalRecord::bytes() const {
  // Each kind is stored twice: in a vector and in a node of a map.
  return data_.calls.size() * sizeof(std::uint32_t) + data_.times.size() * sizeof(Nanoseconds) +
         data_.kinds.size() * (2 * sizeof(Kind) + 48);
}

std::uint32_t ArrivalRecord::index_of(const Kind& kind) {
  const auto [at, fresh] = index_.try_emplace(kind, static_cast<std::uint32_t>(data_.kinds.size()));
  if (fresh) data_.kinds.push_back(kind);
  return at->second;
}

void ArrivalRecord::each(const std::function<void(const Call&)>& f) const {
  const Nanoseconds* at = data_.times.data();
  for (const std::uint32_t index : data_.calls) {
    const Kind& kind = data_.kinds[index];
    const auto size = static_cast<std::size_t>(kind.key.comm_size);
    f({kind, {at, size}, {at + size, size}});
    at += 2 * size;
  }
}

void ArrivalRecord::add(const Kind& kind, std::span<const Nanoseconds> arrivals, std::span<const Nanoseconds> exits) {
  ++data_.seen;
  const Nanoseconds first = *std::ranges::min_element(arrivals);
  const auto full = [&] { return bytes() + arrivals.size() * 2 * sizeof first > data_.most; };
  if (!keeps(first)) return;
  first_ = std::min(first_, first);
  last_ = std::max(last_, first);
  // If a single window fills the memory, its further calls are left out.
  while (full() && several_windows()) widen(2 * data_.stride);
  if (full() || !keeps(first)) return;
  data_.calls.push_back(index_of(kind));
  data_.times.insert(data_.times.end(), arrivals.begin(), arrivals.end());
  data_.times.insert(data_.times.end(), exits.begin(), exits.end());
}

void ArrivalRecord::widen(std::int64_t stride) {
  if (stride <= data_.stride) return;
  const Data all = std::exchange(data_, {});
  data_.most = all.most;
  data_.stride = stride;
  data_.seen = all.seen;
  index_.clear();
  first_ = INT64_MAX;
  take(all, [](std::uint32_t group) { return group; });
}

void ArrivalRecord::take(const Data& from, const std::function<std::uint32_t(std::uint32_t)>& group_here) {
  const Nanoseconds* at = from.times.data();
  for (const std::uint32_t index : from.calls) {
    Kind kind = from.kinds[index];
    const auto size = static_cast<std::size_t>(kind.key.comm_size);
    if (const Nanoseconds first = *std::min_element(at, at + size); keeps(first)) {
      first_ = std::min(first_, first);
      last_ = std::max(last_, first);
      kind.group = group_here(kind.group);
      data_.calls.push_back(index_of(kind));
      data_.times.insert(data_.times.end(), at, at + 2 * size);
    }
    at += 2 * size;
  }
}

void ArrivalRecord::merge(const ArrivalRecord& other, std::span<const std::uint32_t> group_here) {
  data_.most = std::max(data_.most, other.data_.most);
  widen(other.data_.stride);
  data_.seen += other.data_.seen;
  take(other.data_, [&](std::uint32_t group) { return group_here[group]; });
  while (bytes() > kMostBytes && several_windows()) widen(2 * data_.stride);
}

bool ArrivalRecord::restore(Data data, std::size_t groups) {
  std::size_t times = 0;
  bool good = data.stride >= 1 && data.stride <= INT64_MAX / 2;
  for (const Kind& kind : data.kinds)
    good = good && kind.key.comm_size > 0 && kind.group < groups && static_cast<int>(kind.key.op) < core::kCollectives;
  for (const std::uint32_t index : data.calls) {
    good = good && index < data.kinds.size();
    if (!good) return false;
    times += 2 * static_cast<std::size_t>(data.kinds[index].key.comm_size);
  }
  if (!good || times != data.times.size()) return false;
  *this = {};
  data_.most = data.most;
  data_.stride = data.stride;
  data_.seen = data.seen;
  take(data, [](std::uint32_t group) { return group; });
  return true;
}

}  // namespace latecomer::profiles
