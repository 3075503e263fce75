// SPDX-License-Identifier: BSD-3-Clause
// The sites of the calls that MpiTime adds up. A call that is timed finds its site by the return address, in a few
// nanoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "profiles/record/timed_site.hpp"
#include "shim/clock.hpp"
#include "shim/sites/sites.hpp"

namespace latecomer::shim {

/// The function that a handler serves, and where the program called it.
struct CallPlace {
  std::uint32_t call;     ///< in profiles::kMpiCalls
  void *address, *frame;  ///< as of site_of()
};

/// The time of a call, with its weight, that waited for ranks, and its site; 0: it did not wait, or was not timed.
struct Wait {
  Nanoseconds time = 0;
  profiles::TimedSums* site = nullptr;
  explicit operator bool() const { return time > 0; }
};

/// The sites of the last return addresses, where an address alone tells the site. Of one thread.
template <typename Site, int kBits>
class RecentSites {
 public:
  Site* find(const CallPlace& place) const {
    const auto address = reinterpret_cast<std::uintptr_t>(place.address);
    const Recent& recent = all_[address_place(address, kBits)];
    return recent.address == address && recent.site->key.call == place.call ? recent.site : nullptr;
  }
  void note_site(const CallPlace& place, const SiteSlot& slot, Site& site) {
    const auto address = reinterpret_cast<std::uintptr_t>(place.address);
    if (slot.address.load(std::memory_order_relaxed) == address) all_[address_place(address, kBits)] = {address, &site};
  }
  /// Forgets the addresses of libraries that were unloaded. Takes 1 us.
  void forget_unloaded() {
    if (const unsigned refreshed = sites_refresh(); refreshed != std::exchange(refreshed_, refreshed)) all_ = {};
  }

 private:
  struct Recent {
    std::uintptr_t address = 0;
    Site* site = nullptr;
  };
  static constexpr std::size_t kPlaces = std::size_t{1} << kBits;
  std::array<Recent, kPlaces> all_{};
  unsigned refreshed_ = 0;
};

/// The slot of a call's site; nullptr: no memory for a new site. Keeps errno.
const SiteSlot* find_slot(const CallPlace& place) noexcept;

/// The sites of one thread at a time, which alone writes them. Any thread may list them.
template <std::size_t kPlaces, int kRecentBits, bool kOtherThreads>
class TimedSiteTable {
 public:
  /// The entry of a call's site, which stays in place. Keeps errno.
  profiles::TimedSite& at(const CallPlace& place) {
    if (profiles::TimedSite* recent = recent_.find(place)) [[likely]]
      return *recent;
    return find(place);
  }
  /// The calls without a site. Several threads may add to its figures at once if none of them calls at().
  profiles::TimedSums& others() { return others_.sums; }
  void forget_unloaded() { recent_.forget_unloaded(); }
  /// Adds the entries to those of `sites` from `first` on, and the calls without a site to `others`. Allocates only
  /// where `sites` has to grow.
  void add_to(std::vector<profiles::TimedSite>& sites, std::size_t first, profiles::TimedSite& others) const;

 private:
  profiles::TimedSite& find(const CallPlace& place) noexcept;

  RecentSites<profiles::TimedSite, kRecentBits> recent_;
  std::array<profiles::TimedSite, kPlaces> places_{};  ///< without a site: free
  std::size_t used_ = 0;
  profiles::TimedSite others_;  ///< without memory, or beyond three quarters of the places
};

/// Of the thread that started MPI. Derived: 256 places of 480 bytes take 120 KiB per process, and serve 192 sites.
using MainSites = TimedSiteTable<256, 6, false>;
/// Of another thread. Derived: 32 places take 15.5 KiB, and serve 24 sites.
using ThreadSites = TimedSiteTable<32, 3, true>;
extern constinit MainSites timed_sites;

/// Sorts the entries from `first` on, longest first, and adds those beyond kMostTimedSites to `rest`, which becomes the
/// last one if it has calls.
void fold_shortest(std::vector<profiles::TimedSite>& sites, std::size_t first, profiles::TimedSite rest);

}  // namespace latecomer::shim
