// SPDX-License-Identifier: BSD-3-Clause
// The short path of calls in an idle epoch (core/learning/rest.hpp, core/agreement/epoch_sample.hpp). Such a call is
// only counted, with its site and its size. It needs no clock, no log and no work afterwards. It touches a cache line
// of its site and one of its communicator: after 1 MiB has passed through the caches, each further line or page costs
// 50 to 100 ns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "shim/call/describe.hpp"
#include "shim/live/live.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/communicator.hpp"

namespace latecomer::shim {

/// The calls of one site on one communicator that are not in the profile yet.
struct alignas(64) IdleSite {
  std::uintptr_t address = 0;  ///< the return address in the program; 0: free
  MPI_Comm comm{};
  CommState* state = nullptr;  ///< of `comm`; nullptr: its communicator has ended
  MPI_Datatype type{};         ///< a predefined one, and its size in bytes
  MPI_Op accepted{};           ///< an operator that MPI does not refuse for `type`
  std::uint64_t id = 0;        ///< of the call site
  core::Bytes usual = -1;      ///< bytes of `calls`
  std::uint32_t calls = 0;
  std::uint16_t type_size = 0;
  core::Collective op = core::Collective::barrier;
  bool only_root = false;  ///< only calls with `root` take the short path
  // The second line, which calls with other sizes touch, and roots.
  profiles::LocalSite* local = nullptr;
  std::int32_t root = -1;
  std::uint32_t others = 0, sized = 0;  ///< calls whose bytes are not `usual`; those with known bytes
  std::uint32_t owned = 0;              ///< calls with a root whose root is this rank
  core::Bytes bytes_min = INT64_MAX, bytes_max = INT64_MIN, bytes_sum = 0;
};

/// Bindings of MPI: the calls of a program come through one frame of theirs.
struct IdleWay {
  std::uintptr_t address = 0;  ///< the return address in the binding
  std::int32_t through = 0;    ///< from the handler's frame to the end of the binding's
};

struct Idle {
  /// Derived: a table that is three quarters full has 3,072 sites, and takes 512 KiB, mapped as used. The sites beyond
  /// take the full path.
  static constexpr int kBits = 12;
  static constexpr std::size_t kSites = std::size_t{1} << kBits;
  /// Derived: MPI has 22 collectives with two forms. Of addresses with the same index, the last one's calls take the
  /// short path. 1 KiB.
  static constexpr int kWayBits = 6;
  std::uintptr_t stack_end = 0;  ///< of the thread that calls
  IdleWay ways[std::size_t{1} << kWayBits];
  IdleSite sites[kSites];

  /// The site, or the free place for it. The table is never full.
  IdleSite& site_at(std::uintptr_t address, MPI_Comm comm) {
    for (std::size_t at = address_place(address ^ std::uint64_t{bits_of(comm)} << 20, kBits);; at = (at + 1) % kSites)
      if (IdleSite& site = sites[at]; (site.address == address && site.comm == comm) || site.address == 0) return site;
  }
  IdleWay& way_at(std::uintptr_t address) { return ways[address_place(address, kWayBits)]; }
};
extern constinit Idle idle __attribute__((visibility("hidden")));
/// Sites in the table. Every call looks at it, so it lies with what every call touches.
extern constinit std::size_t idle_sites __attribute__((visibility("hidden")));

/// The part of Describe that computes a call's size. What MPI may refuse takes the full path, because it does not
/// count.
class IdleSize {
 public:
  explicit IdleSize(const IdleSite& site) : site_(site) {}
  core::Bytes bytes = -1;
  std::int32_t root = -1;
  bool known = true;  ///< false: the call takes the full path

  int size() const { return site_.state->size; }
  IdleSize& rooted(int rank) {
    root = rank;
    known = rank >= 0 && rank < size();
    return *this;
  }
  IdleSize& operated(MPI_Datatype, MPI_Op op) {
    known = known && op == site_.accepted;
    return *this;
  }
  void empty() { bytes = 0; }
  void unsized() {}
  void exchanges(auto... blocks) { count_exchange(*site_.state, blocks...); }
  IdleSize& total(MPI_Count count, MPI_Datatype type, int times) {
    known = known && type == site_.type && count >= 0;
    bytes = static_cast<core::Bytes>(count) * site_.type_size * times;
    return *this;
  }
  void bcast(void*, MPI_Count count, MPI_Datatype type) { total(count, type, 1); }
  void reduction(const void*, void*, MPI_Count count, MPI_Datatype type, MPI_Op op) {
    total(count, type, 1).operated(type, op);
  }
  void blocks(const void*, MPI_Count send_count, MPI_Datatype send_type, void*, MPI_Count recv_count,
              MPI_Datatype recv_type) {
    if (is_root() == core::is_scatter(site_.op)) total(send_count, send_type, size());
    else total(recv_count, recv_type, size());
  }
  /// The root counts the bytes of all blocks, other ranks none.
  template <typename Count, typename Displacement>
  void gatherv(const void*, MPI_Count, MPI_Datatype, void*, const Count* counts, const Displacement*,
               MPI_Datatype type) {
    if (is_root()) sum(counts, type);
  }
  template <typename Count, typename Displacement>
  void scatterv(const void*, const Count* counts, const Displacement*, MPI_Datatype type, void*, MPI_Count,
                MPI_Datatype) {
    if (is_root()) sum(counts, type);
  }
  template <typename Count>
  IdleSize& sum(const Count* counts, MPI_Datatype type) {
    MPI_Count all = 0;
    for (int i = 0; counts && i < size(); ++i) all += counts[i];
    known = known && counts;
    return total(all, type, 1);
  }

 private:
  bool is_root() const { return root == site_.state->rank; }
  const IdleSite& site_;
};

/// Counts a call on the short path. `frame`: the handler's frame. Returns false if the call must take the full path.
template <typename Fill>
[[gnu::always_inline]] inline bool count_on_short_path(core::Collective op, MPI_Comm comm, void* return_address,
                                                       void* frame, Fill& fill) {
  if (idle_sites == 0) return false;
  auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (const IdleWay& way = idle.way_at(address); way.address == address) {
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(frame) + static_cast<std::uintptr_t>(way.through);
    if (end > idle.stack_end) return false;
    address = reinterpret_cast<const std::uintptr_t*>(end)[-1];
  }
  IdleSite& site = idle.site_at(address, comm);
  if (site.address == 0 || !site.state || site.op != op) return false;
  IdleCalls& calls = site.state->idle;
  if (calls.left <= 0) return false;
  IdleSize look(site);
  fill(look);
  if (!look.known || (site.only_root && look.root != site.root)) return false;
  live_enter(calls.first + static_cast<std::uint64_t>(calls.granted - calls.left), site.id, look.bytes, look.root, op,
             0);
  --calls.left;
  if (look.root == site.state->rank) ++site.owned;
  if (look.bytes == site.usual) [[likely]] {
    ++site.calls;
    return true;
  }
  ++site.others;
  if (look.bytes >= 0) {
    ++site.sized;
    site.bytes_min = std::min(site.bytes_min, look.bytes);
    site.bytes_max = std::max(site.bytes_max, look.bytes);
    site.bytes_sum += look.bytes;
  }
  return true;
}

struct ObservedCall;  // shim/executor/call.hpp

/// After a call on the full path: lets the next calls from its site take the short path, if the communicator is in an
/// idle epoch.
void idle_begin(const ObservedCall& call);
/// Adds the calls of the short path to the sequence. Must precede any other use of the sequence.
void idle_pass(CommState& state);
/// Does the same, and ends the short path of the communicator.
void idle_stop(CommState& state);
/// Ends it for good: the communicator ends.
void idle_end(CommState& state);
/// Adds the counts to the profile entries of the sites.
void idle_drain();
/// Does the same, and removes the sites, because their addresses may become invalid.
void idle_forget();

}  // namespace latecomer::shim
