// SPDX-License-Identifier: BSD-3-Clause
// The table of sites, by return address or by hash of several addresses.
#include <mutex>
#include <utility>

#include "core/base/text.hpp"
#include "shim/live/live.hpp"
#include "shim/sites/parts.hpp"

namespace latecomer::shim {

constinit SiteSlot site_slots[std::size_t{1} << kSiteBits];
std::mutex sites_mutex;

namespace {

std::vector<profiles::Frame>* frames = nullptr;  // never destroyed: callbacks may run after exit handlers
std::size_t used = 0;

}  // namespace

Slot& remember(std::uint64_t key, std::uint64_t site) {
  // When the table is full, all new sites share one slot, whose counters are looked up at each call.
  static Slot overflow;
  if (used > kSlots * 3 / 4) {
    overflow.site.store(site, std::memory_order_relaxed);
    return overflow;
  }
  std::size_t slot = address_place(key, kSiteBits);
  while (site_slots[slot].key.load(std::memory_order_relaxed) != 0) {
    if (site_slots[slot].key.load(std::memory_order_relaxed) == key) return site_slots[slot];
    slot = (slot + 1) % kSlots;
  }
  ++used;
  site_slots[slot].site.store(site, std::memory_order_relaxed);
  site_slots[slot].key.store(key, std::memory_order_release);
  return site_slots[slot];
}

Slot& insert(std::uint64_t key, std::vector<profiles::Frame> found) {
  const std::lock_guard lock(sites_mutex);
  std::uint64_t site = found.front().site;
  for (std::size_t i = 1; i < found.size(); ++i) site = core::mix64(site ^ core::mix64(found[i].site));
  Slot& slot = remember(key, site);
  if (!frames) frames = new std::vector<profiles::Frame>;
  for (const profiles::Frame& f : *frames)
    if (f.site == site) return slot;
  for (profiles::Frame& f : found) {
    f.site = site;
    if (&f == &found.front()) live_frames(f);
    frames->push_back(std::move(f));
  }
  return slot;
}

void forget_keys() {
  for (Slot& slot : site_slots) slot.key.store(0, std::memory_order_relaxed), slot.local = nullptr;
  used = 0;
}

std::size_t site_count() {
  const std::lock_guard lock(sites_mutex);
  return frames ? frames->size() : 0;
}

std::vector<profiles::Frame> site_frames() {
  const std::lock_guard lock(sites_mutex);
  return frames ? *frames : std::vector<profiles::Frame>{};
}

}  // namespace latecomer::shim
