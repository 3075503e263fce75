// SPDX-License-Identifier: BSD-3-Clause
// The calls of a communicator in an idle epoch (core/learning/rest.hpp). Such a call is only counted, with its site and
// its size. It needs no clock, no log and no work afterwards. It touches two cache lines: after 1 MiB has passed
// through the caches, each further line or page costs 50 to 100 ns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shim/live/live.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/communicator.hpp"

namespace latecomer::shim {

struct Idle {
  std::int64_t left = 0;       ///< calls that may still take the short path
  CommState* state = nullptr;  ///< their communicator; nullptr: none
  std::uint64_t first = 0;     ///< number of the first of these calls
  std::int64_t granted = 0;    ///< `left` at first; idle_stop() passes the difference to the sequence
  MPI_Comm comm{};
  MPI_Op op{};          ///< one that MPI does not refuse for `type`
  MPI_Datatype type{};  ///< a predefined one, and its size in bytes
  std::int32_t type_size = 0;
  int size = 0;  ///< of the communicator
  /// The calls from one return address that are not in the profile yet.
  struct alignas(64) Site {
    std::uintptr_t address = 0;
    profiles::LocalSite* local = nullptr;
    std::uint32_t calls = 0, sized = 0;
    core::Bytes bytes_min = INT64_MAX, bytes_max = INT64_MIN, bytes_sum = 0;
    core::Collective op = core::Collective::barrier;
    std::uint64_t id = 0;  ///< of the call site
  };
  /// Derived: with 8 sites, Idle takes 9 cache lines and leaves most of its page to the other data of every call. Of
  /// sites with the same index, only the last caller's takes the short path.
  static constexpr int kBits = 3;
  Site sites[1 << kBits];  ///< by hash of the address

  Site& site_at(std::uintptr_t address) { return sites[address_place(address, kBits)]; }
};
extern constinit Idle idle __attribute__((visibility("hidden")));

/// The part of Describe that computes a call's size. What MPI may refuse takes the full path, because it does not
/// count.
class IdleSize {
 public:
  core::Bytes bytes = -1;
  std::int32_t root = -1;
  bool known = true;  ///< false: the call takes the full path

  int size() const { return idle.size; }
  IdleSize& rooted(int rank) {
    root = rank;
    known = rank >= 0 && rank < size();
    return *this;
  }
  IdleSize& operated(MPI_Datatype, MPI_Op op) {
    known = known && op == idle.op;
    return *this;
  }
  void empty() { bytes = 0; }
  void unsized() {}
  IdleSize& total(MPI_Count count, MPI_Datatype type, int times) {
    known = known && type == idle.type && count >= 0;
    bytes = static_cast<core::Bytes>(count) * idle.type_size * times;
    return *this;
  }
  void bcast(void*, MPI_Count count, MPI_Datatype type) { total(count, type, 1); }
  void reduction(const void*, void*, MPI_Count count, MPI_Datatype type, MPI_Op op) {
    total(count, type, 1).operated(type, op);
  }
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
  IdleSize& sum(Any...) {
    known = false;
    return *this;
  }
};

/// Counts a call on the short path. Returns false if the call must take the full path.
template <typename Fill>
[[gnu::always_inline]] inline bool count_on_short_path(core::Collective op, MPI_Comm comm, void* return_address,
                                                       Fill& fill) {
  if (idle.left <= 0 || idle.comm != comm) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  Idle::Site& site = idle.site_at(address);
  if (site.address != address || site.op != op) return false;
  IdleSize look;
  fill(look);
  if (!look.known) return false;
  // The communicator and its size are those of the call before.
  live_enter(idle.first + static_cast<std::uint64_t>(idle.granted - idle.left), site.id, look.bytes, look.root, op, 0);
  --idle.left;
  ++site.calls;
  if (look.bytes >= 0) {
    ++site.sized;
    site.bytes_min = std::min(site.bytes_min, look.bytes);
    site.bytes_max = std::max(site.bytes_max, look.bytes);
    site.bytes_sum += look.bytes;
  }
  return true;
}

/// After a call on the full path: lets the next calls take the short path, if the communicator is in an idle epoch.
void idle_begin(CommState& state, const SiteSlot& slot, core::Collective op);
/// Ends the short path, and adds its calls to the sequence. Must precede any other use of the sequence.
void idle_stop();
/// Adds the counts to the profile entries of the sites.
void idle_drain();
/// Does the same, and removes the sites, because their addresses may become invalid.
void idle_forget();

}  // namespace latecomer::shim
