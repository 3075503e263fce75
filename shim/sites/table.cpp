// SPDX-License-Identifier: BSD-3-Clause
// The table of sites, by return address or by hash of several addresses.
#include "shim/sites/table.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/text.hpp"
#include "shim/live/live.hpp"
#include "shim/sites/unwind.hpp"

namespace latecomer::shim {

constinit SiteSlot site_slots[std::size_t{1} << kSiteBits];
std::mutex sites_mutex;

namespace {

std::vector<profiles::Frame>* frames = nullptr;                // never destroyed: callbacks may run after exit handlers
std::map<std::uint64_t, profiles::Frame>* wrapping = nullptr;  // by site
std::atomic<std::size_t> used{0};

/// Callers of one site that are told apart. Derived: a site that recursion reaches fills a thirtieth of the keys that
/// have callers.
constexpr std::size_t kMostCallers = 64;

}  // namespace

bool callers_full() { return used > kSlots / 2; }

const profiles::Frame* wrapper_of(std::uint64_t site) {
  const std::lock_guard lock(sites_mutex);
  if (!wrapping) return nullptr;
  const auto found = wrapping->find(site);
  return found == wrapping->end() ? nullptr : &found->second;
}

void keep_wrapper(const profiles::Frame& wrapper, std::uint64_t site) {
  const std::lock_guard lock(sites_mutex);
  if (!wrapping) wrapping = new std::map<std::uint64_t, profiles::Frame>;
  wrapping->try_emplace(site, wrapper);
}

Slot& add_key(std::uint64_t key, std::uint64_t site, std::uint32_t callers, std::uintptr_t address) {
  // When the table is full, all new sites share one slot, whose counters are looked up at each call.
  static Slot overflow;
  if (used > kSlots * 3 / 4) {
    overflow.site.store(site, std::memory_order_relaxed);
    overflow.callers.store(callers, std::memory_order_relaxed);
    return overflow;
  }
  std::size_t slot = address_place(key, kSiteBits);
  while (site_slots[slot].key.load(std::memory_order_relaxed) != 0) {
    if (site_slots[slot].key.load(std::memory_order_relaxed) == key) return site_slots[slot];
    slot = (slot + 1) % kSlots;
  }
  ++used;
  site_slots[slot].site.store(site, std::memory_order_relaxed);
  site_slots[slot].callers.store(callers, std::memory_order_relaxed);
  site_slots[slot].address.store(address, std::memory_order_relaxed);
  site_slots[slot].key.store(key, std::memory_order_release);
  return site_slots[slot];
}

Slot& add_site(std::uint64_t key, std::vector<profiles::Frame> found, std::uintptr_t address, bool generated) {
  const std::lock_guard lock(sites_mutex);
  const auto own = std::min(found.size(), static_cast<std::size_t>(frames_per_site));
  std::uint64_t site = found.front().site, above = 0;
  for (std::size_t i = 1; i < own; ++i) site = core::mix64(site ^ core::mix64(found[i].site));
  for (std::size_t i = own; i < found.size(); ++i) above = core::mix64(above ^ core::mix64(found[i].site));
  auto callers = static_cast<std::uint32_t>(above);
  if (above != 0 && callers == 0) callers = 1;
  if (!frames) frames = new std::vector<profiles::Frame>;
  bool site_known = false, callers_known = callers == 0;
  std::size_t others = 0;
  std::uint32_t before = 0;  // the frames of one caller follow each other
  for (const profiles::Frame& f : *frames) {
    if (f.site != site) continue;
    site_known = true;
    callers_known = callers_known || f.callers == callers;
    others += f.callers != 0 && f.callers != before;
    before = f.callers;
  }
  if (!callers_known && others >= kMostCallers) {
    callers = 0;
    callers_known = true;
  }
  Slot& slot = add_key(key, site, callers, address);
  if (generated && !site_known) {
    profiles::Frame code;
    code.site = site;
    code.function = profiles::kGeneratedCode;
    frames->push_back(std::move(code));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i < own ? site_known : callers_known) continue;
    profiles::Frame& f = found[i];
    f.site = site;
    f.callers = i < own ? 0 : callers;
    if (i == 0) live_frames(f);
    frames->push_back(std::move(f));
  }
  return slot;
}

void forget_keys() {
  for (Slot& slot : site_slots) {
    slot.key.store(0, std::memory_order_relaxed);
    slot.local = nullptr;
  }
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
