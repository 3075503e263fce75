// SPDX-License-Identifier: BSD-3-Clause
// The table of timed sites.
#include "shim/causes/timed_sites.hpp"

#include <algorithm>

#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "shim/guard.hpp"

namespace latecomer::shim {

constinit MainSites timed_sites;

const SiteSlot* find_slot(const CallPlace& place) noexcept {
  const KeepErrno keep;
  const SiteSlot* slot = nullptr;
  attempt([&] { slot = &site_of(place.address, place.frame); });
  return slot;
}

template <std::size_t kPlaces, int kRecentBits, bool kOtherThreads>
[[gnu::noinline]] profiles::TimedSite& TimedSiteTable<kPlaces, kRecentBits, kOtherThreads>::find(
    const CallPlace& place) noexcept {
  const SiteSlot* slot = find_slot(place);
  const profiles::TimedKey key{slot ? slot->site.load(std::memory_order_relaxed) : 0, place.call, kOtherThreads};
  if (key.site == 0) return others_;  // no memory for a new site
  for (std::size_t i = core::mix64(key.site + key.call) % kPlaces;; i = (i + 1) % kPlaces) {
    profiles::TimedSite& there = places_[i];
    if (there.key.site == 0) {
      if (used_ >= kPlaces * 3 / 4) return others_;
      ++used_;
      core::store_shared(there.key.call, key.call);
      core::store_shared(there.key.other_threads, key.other_threads);
      std::atomic_ref(there.key.site).store(key.site, std::memory_order_release);
    }
    if (there.key != key) continue;
    recent_.note_site(place, *slot, there);
    return there;
  }
}

template <std::size_t kPlaces, int kRecentBits, bool kOtherThreads>
void TimedSiteTable<kPlaces, kRecentBits, kOtherThreads>::add_to(std::vector<profiles::TimedSite>& sites,
                                                                 std::size_t first, profiles::TimedSite& others) const {
  const auto add = [](profiles::TimedSite& to, const profiles::TimedSite& from) {
    to.sums.merge(from.sums);
    to.lengths.merge(from.lengths);
  };
  for (const profiles::TimedSite& there : places_) {
    if (core::copy_shared(there.key).site == 0) continue;
    const profiles::TimedSite copy = core::copy_shared(there);
    if (copy.sums.calls == 0) continue;
    const auto same = std::find_if(sites.begin() + static_cast<std::ptrdiff_t>(first), sites.end(),
                                   [&](const profiles::TimedSite& one) { return one.key == copy.key; });
    if (same == sites.end()) sites.push_back(copy);
    else add(*same, copy);
  }
  add(others, core::copy_shared(others_));
}

template class TimedSiteTable<256, 6, false>;
template class TimedSiteTable<32, 3, true>;

void fold_shortest(std::vector<profiles::TimedSite>& sites, std::size_t first, profiles::TimedSite rest) {
  std::sort(sites.begin() + static_cast<std::ptrdiff_t>(first), sites.end(),
            [](const auto& a, const auto& b) { return std::tie(b.sums.time, a.key) < std::tie(a.sums.time, b.key); });
  while (sites.size() - first + (rest.sums.calls > 0) > profiles::kMostTimedSites) {
    rest.sums.merge(sites.back().sums);
    rest.lengths.merge(sites.back().lengths);
    sites.pop_back();
  }
  if (rest.sums.calls > 0) sites.push_back(rest);
}

}  // namespace latecomer::shim
