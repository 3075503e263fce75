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

class TimedSites {
 public:
  /// The entry of a call's site, which stays in place. Keeps errno.
  profiles::TimedSite& at(const CallPlace& place) {
    const auto address = reinterpret_cast<std::uintptr_t>(place.address);
    Recent& recent = recent_[address_place(address, kRecentBits)];
    if (recent.address == address && recent.site->key.call == place.call) [[likely]]
      return *recent.site;
    return find(place, recent);
  }
  /// Forgets the addresses of libraries that were unloaded. Takes 1 us.
  void forget_unloaded() {
    if (const unsigned refreshed = sites_refresh(); refreshed != std::exchange(refreshed_, refreshed)) recent_ = {};
  }
  /// The kMostTimedSites entries with the most time. One of them, without a site, has the sums of all others. Allocates
  /// only where `out` has to grow.
  void list_longest(std::vector<profiles::TimedSite>& out) const;

 private:
  /// The last site of the addresses with one index, if the address alone tells the site.
  struct Recent {
    std::uintptr_t address = 0;
    profiles::TimedSite* site = nullptr;
  };
  static constexpr int kRecentBits = 6;  // derived: 1 KiB
  static constexpr std::size_t kRecent = std::size_t{1} << kRecentBits;
  profiles::TimedSite& find(const CallPlace& place, Recent& recent) noexcept;

  std::array<Recent, kRecent> recent_;
  unsigned refreshed_ = 0;
  /// Derived: 256 places of 216 bytes take 54 KiB per process. A table that is three quarters full serves 192 sites.
  /// Those beyond share the entry without a site.
  static constexpr std::size_t kPlaces = 256;
  std::array<profiles::TimedSite, kPlaces> places_;  ///< without a site: free
  std::size_t used_ = 0;
  profiles::TimedSite others_;
};
extern constinit TimedSites timed_sites;

}  // namespace latecomer::shim
