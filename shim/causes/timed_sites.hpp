// SPDX-License-Identifier: BSD-3-Clause
// The sites of the calls that MpiTime adds up, on the thread that started MPI. A call that is timed finds its site by
// the return address, in a few nanoseconds.
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

/// Sorts the entries from `first` on, longest first, and adds those beyond kMostTimedSites to `rest`, which becomes the
/// last one if it has calls.
void fold_shortest(std::vector<profiles::TimedSite>& sites, std::ptrdiff_t first, profiles::TimedSite rest);

class TimedSites {
 public:
  /// The entry of a call's site, which stays in place. Keeps errno.
  profiles::TimedSite& at(const CallPlace& place) {
    if (profiles::TimedSite* recent = recent_.find(place)) [[likely]]
      return *recent;
    return find(place);
  }
  void forget_unloaded() { recent_.forget_unloaded(); }
  /// The kMostTimedSites entries with the most time. One of them, without a site, has the sums of all others. Allocates
  /// only where `out` has to grow.
  void list_longest(std::vector<profiles::TimedSite>& out) const;

 private:
  profiles::TimedSite& find(const CallPlace& place) noexcept;

  RecentSites<profiles::TimedSite, 6> recent_;  // derived: 1 KiB
  /// Derived: 256 places of 480 bytes take 120 KiB per process. A table that is three quarters full serves 192 sites.
  /// Those beyond share the entry without a site.
  static constexpr std::size_t kPlaces = 256;
  std::array<profiles::TimedSite, kPlaces> places_;  ///< without a site: free
  std::size_t used_ = 0;
  profiles::TimedSite others_;
};
extern constinit TimedSites timed_sites;

}  // namespace latecomer::shim
