// SPDX-License-Identifier: BSD-3-Clause
// The table of timed sites.
#include "shim/causes/timed_sites.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "shim/guard.hpp"

namespace latecomer::shim {

constinit TimedSites timed_sites;

[[gnu::noinline]] profiles::TimedSite& TimedSites::find(const CallPlace& place, Recent& recent) noexcept {
  const KeepErrno keep;
  SiteSlot* slot = nullptr;
  attempt([&] { slot = &site_of(place.address, place.frame); });
  const auto address = reinterpret_cast<std::uintptr_t>(place.address);
  const profiles::TimedKey key{slot ? slot->site.load(std::memory_order_relaxed) : 0, place.call};
  if (key.site == 0) return others_;  // no memory for a new site
  for (std::size_t i = core::mix64(key.site + key.call) % kPlaces;; i = (i + 1) % kPlaces) {
    profiles::TimedSite& there = places_[i];
    if (there.key.site == 0) {
      if (used_ >= kPlaces * 3 / 4) return others_;
      ++used_;
      there.key = key;
    }
    if (there.key != key) continue;
    if (slot->address.load(std::memory_order_relaxed) == address) recent = {address, &there};
    return there;
  }
}

void TimedSites::list_longest(std::vector<profiles::TimedSite>& out) const {
  out.clear();
  for (const profiles::TimedSite& one : places_)
    if (one.sums.calls > 0) out.push_back(one);
  std::ranges::sort(
      out, [](const auto& a, const auto& b) { return std::tie(b.sums.time, a.key) < std::tie(a.sums.time, b.key); });
  profiles::TimedSite rest = others_;
  while (out.size() + (rest.sums.calls > 0) > profiles::kMostTimedSites) {
    rest.sums.merge(out.back().sums);
    out.pop_back();
  }
  if (rest.sums.calls > 0) out.push_back(rest);
}

}  // namespace latecomer::shim
