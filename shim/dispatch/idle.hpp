// SPDX-License-Identifier: BSD-3-Clause
// Calls of a communicator that rests (core/learning/rest.hpp). Nothing has to be known of them but that they came, from
// where and of what size: neither clocks nor logs, and nothing to do afterwards. What such a call touches lies in two
// cache lines: after a MiB has gone through the caches, each line and each page more costs 50 to 100 ns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shim/sites/sites.hpp"
#include "shim/state/job.hpp"

namespace latecomer::shim {

struct Idle {
  std::int64_t left = 0;       ///< calls that may still pass
  CommState* state = nullptr;  ///< whose calls pass; nullptr: nobody's
  std::int64_t granted = 0;    ///< `left` at first: its sequence is told of the difference
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;  ///< a predefined one, and its size in bytes
  std::int32_t type_size = 0;
  int size = 0;  ///< of the communicator
  /// Calls from one place that no site has been told of.
  struct alignas(64) Site {
    std::uintptr_t address = 0;
    profiles::LocalSite* local = nullptr;
    std::uint32_t calls = 0, sized = 0;
    core::Bytes bytes_min = INT64_MAX, bytes_max = INT64_MIN, bytes_sum = 0;
    core::Collective op = core::Collective::barrier;
  };
  static constexpr int kBits = 3;
  Site sites[1 << kBits];  ///< by address: of two that meet there, the later

  Site& site_at(std::uintptr_t address) { return sites[address_place(address, kBits)]; }
};
extern constinit Idle idle __attribute__((visibility("hidden")));

/// What Describe learns of a call's arguments, as far as its size goes.
class IdleSize {
 public:
  core::Bytes bytes = -1;
  bool known = true;  ///< else the long way has to be taken

  int size() const { return idle.size; }
  IdleSize& rooted(int) { return *this; }
  void empty() { bytes = 0; }
  void unsized() {}
  void total(MPI_Count count, MPI_Datatype type, int times) {
    known = type == idle.type && count >= 0;
    bytes = static_cast<core::Bytes>(count) * idle.type_size * times;
  }
  void bcast(void*, MPI_Count count, MPI_Datatype type) { total(count, type, 1); }
  void reduction(const void*, void*, MPI_Count count, MPI_Datatype type, MPI_Op) { total(count, type, 1); }
  void blocks(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype) { known = false; }
  template <typename... Any>
  void gatherv(Any...) {
    known = false;
  }
  template <typename... Any>
  void scatterv(Any...) {
    known = false;
  }
  template <typename... Any>
  void sum(Any...) {
    known = false;
  }
};

/// True: the call is counted, and all that is left is to make it.
template <typename Fill>
[[gnu::always_inline]] inline bool idles(core::Collective op, MPI_Comm comm, void* return_address, Fill& fill) {
  if (idle.left <= 0 || idle.comm != comm) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  Idle::Site& site = idle.site_at(address);
  if (site.address != address || site.op != op) return false;
  IdleSize look;
  fill(look);
  if (!look.known) return false;
  --idle.left, ++site.calls;
  if (look.bytes >= 0) {
    ++site.sized;
    site.bytes_min = std::min(site.bytes_min, look.bytes), site.bytes_max = std::max(site.bytes_max, look.bytes);
    site.bytes_sum += look.bytes;
  }
  return true;
}

/// After a call of the long way: lets the next ones pass, if the communicator rests.
void idle_begin(CommState& state, const SiteSlot& slot, core::Collective op);
/// Before anything else looks at a sequence: tells it what has passed.
void idle_stop();
/// Tells the sites what has passed.
void idle_drain();
/// The same, and forgets them: an address may be another's from here on.
void idle_forget();

}  // namespace latecomer::shim
