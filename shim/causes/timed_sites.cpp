// SPDX-License-Identifier: BSD-3-Clause
// The table of timed sites.
#include "shim/causes/timed_sites.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "shim/guard.hpp"

namespace latecomer::shim {

constinit TimedSites timed_sites;

const SiteSlot* find_slot(const CallPlace& place) noexcept {
  const KeepErrno keep;
  const SiteSlot* slot = nullptr;
  attempt([&] { slot = &site_of(place.address, place.frame); });
  return slot;
}

[[gnu::noinline]] profiles::TimedSite& TimedSites::find(const CallPlace& place) noexcept {
  const SiteSlot* slot = find_slot(place);
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
    recent_.note_site(place, *slot, there);
    return there;
  }
}

void TimedSites::list_longest(std::vector<profiles::TimedSite>& out) const {
  out.clear();
  for (const profiles::TimedSite& one : places_)
    if (one.sums.calls > 0) out.push_back(one);
  fold_shortest(out, 0, others_);
}

void fold_shortest(std::vector<profiles::TimedSite>& sites, std::ptrdiff_t first, profiles::TimedSite rest) {
  std::sort(sites.begin() + first, sites.end(),
            [](const auto& a, const auto& b) { return std::tie(b.sums.time, a.key) < std::tie(a.sums.time, b.key); });
  while (sites.size() - static_cast<std::size_t>(first) + (rest.sums.calls > 0) > profiles::kMostTimedSites) {
    rest.sums.merge(sites.back().sums);
    rest.lengths.merge(sites.back().lengths);
    sites.pop_back();
  }
  if (rest.sums.calls > 0) sites.push_back(rest);
}

}  // namespace latecomer::shim
