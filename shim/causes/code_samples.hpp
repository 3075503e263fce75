// SPDX-License-Identifier: BSD-3-Clause
// Which code the process runs while the thread that started MPI is outside the calls that may wait. The kernel writes
// samples of a thread's instruction pointer into a ring in memory, by a clock of its processor time. That thread has a
// ring, and so have up to eight others, such as those of OpenMP. A call that may wait takes the samples out at its
// entry, and throws away at its exit what came meanwhile. So a wait that spins never fills a ring, and a sample needs
// no time of its own. No signal, and no file is open for longer than a call. A forked child never touches the rings,
// whose mappings it lacks.
#pragma once

#include <linux/perf_event.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "profiles/record/record.hpp"
#include "shim/clock.hpp"

namespace latecomer::shim {

/// Samples and stretches between two calls, until the next blocking collective tells before which one they were, and
/// after that. Only the thread that started MPI uses it.
class CodeSampler {
 public:
  /// Opens the ring for this thread, or says why not. `hz`: what the policy wants, which the budget may lower.
  void begin_samples(double hz);
  /// A stretch begins.
  void begin_first_stretch(Nanoseconds at) { left_at_ = at; }
  /// Nothing changes any more, and the ring is gone.
  void end_samples();

  /// The call of that id begins, which may wait. `Id`: computes it, if there is something to keep.
  template <typename Id>
  void enter_call(Id id) {
    if (ring_has_more()) [[unlikely]]
      take_samples(id());
  }
  /// It ends, and nobody knows when it began and ended.
  void leave_call() {
    if (ring_has_more()) [[unlikely]]
      drop_samples();
  }
  /// As enter_call(), with its time.
  template <typename Id>
  void enter_call(Id id, Nanoseconds at) {
    enter_call(id);
    if (at - left_at_ >= kShort) [[unlikely]]
      add_stretch(at, id());
  }
  void leave_call(std::uint64_t id, Nanoseconds at) {
    leave_call();
    from_ = id;
    left_at_ = at;
  }
  /// The call before is not known: polls came after it that were a wait.
  void forget_call() { left_at_ = INT64_MAX; }
  /// All samples and stretches until now were before that collective. 0: not known.
  template <typename Id>
  void end_interval(Id collective) {
    if (open_samples_ > 0 || open_stretches_ > 0) [[unlikely]]
      keep_interval(collective());
  }
  /// Collectives follow that nobody sees, until the next full one has ended.
  void rest() { resting_ = true; }
  void end_rest() { resting_ = false; }

  /// This thread is latecomer's own: it has no samples.
  static void leave_out_thread();

  /// Replaces what the contribution has. The functions, which take some ms and memory, only if `finished`, or if there
  /// are twice as many samples as at the last time.
  void list(profiles::Contribution& out, bool finished);

 private:
  /// Chosen: within the budget, each of more threads would have less than two samples per second.
  static constexpr std::size_t kOthers = 8, kRings = 1 + kOthers;
  /// Lies in memory that a forked child finds empty, because it lacks the rings.
  struct Own {
    perf_event_mmap_page* rings[kRings];  ///< the first one is of the thread that started MPI
    bool others;                          ///< other threads have some, too
  };
  struct Ring {
    std::uint64_t tail = 0;  ///< what was read of it
    std::size_t bytes = 0;
    int thread = 0;
    bool was_full = false;
  };
  /// Derived: functions begin at multiples of 16, so a block is of one function.
  static constexpr std::uint64_t kBlock = 16;
  struct Place {
    std::uintptr_t address = 0;  ///< of the first sample in its block; 0: free
    std::uint64_t next = 0, collective = 0, samples = 0;
    bool others = false;  ///< of other threads
    bool is_like(const Place& o) const {
      return address / kBlock == o.address / kBlock && next == o.next && collective == o.collective &&
             others == o.others;
    }
  };
  /// Derived: 1,024 places of 40 bytes, and 256 of 40 bytes: 50 KiB per process, mapped as used. Of tables that are
  /// three quarters full, further samples count for no function, and further stretches for no call.
  static constexpr std::size_t kPlaces = 1024, kStretches = 256;
  /// Derived: an interval with more calls from different sites counts in pieces.
  static constexpr std::size_t kOpen = 64;
  /// The places in the code that the profile has of a process; those with fewer samples count for their functions.
  /// Derived: with four calls that come next each, 10 KiB per process.
  static constexpr std::size_t kMostPlaces = 96;
  /// The shortest stretch that counts. Chosen: adding it takes 0.1% of it.
  static constexpr Nanoseconds kShort = 20'000;

  bool has_more(std::size_t i) const {
    const perf_event_mmap_page* const ring = own_->rings[i];
    return ring && __atomic_load_n(&ring->data_head, __ATOMIC_RELAXED) != rings_[i].tail;
  }
  bool ring_has_more() const { return has_more(0) || (own_->others && others_have_more()); }
  [[gnu::noinline]] bool others_have_more() const;
  void take_samples(std::uint64_t next);
  void drop_samples();
  template <typename Take>
  void read_ring(std::size_t i, Take take);
  void keep_sample(std::uintptr_t address, std::uint64_t next, bool others);
  void close_ring(std::size_t i);
  void look_for_threads();
  std::string add_thread(int thread, std::size_t number);
  void add_stretch(Nanoseconds at, std::uint64_t to);
  void keep_interval(std::uint64_t collective);
  void keep_samples(const Place& more);
  void keep_stretch(const profiles::StretchKey& key, const profiles::StretchSums& sums);
  void list_places(profiles::Contribution& out) const;
  void forget_unloaded();
  std::string open_ring(std::size_t i, int thread, std::size_t bytes, double hz);

  static constinit Own none_;
  Own* own_ = &none_;
  std::array<Ring, kRings> rings_{};
  bool resting_ = false;
  Nanoseconds left_at_ = INT64_MAX;  ///< the exit of the last call; INT64_MAX: not known
  std::uint64_t from_ = 0;           ///< that call
  unsigned refreshed_ = 0;
  std::size_t open_samples_ = 0, open_stretches_ = 0, used_places_ = 0, used_stretches_ = 0;
  std::array<Place, kOpen> samples_now_{};
  std::array<profiles::Stretch, kOpen> stretches_now_{};
  std::array<Place, kPlaces> places_{};
  std::array<profiles::Stretch, kStretches> stretches_{};
  std::uint64_t placeless_[2] = {};  ///< samples without a place; the second: of other threads
  profiles::StretchSums placeless_stretches_;
  double hz_ = 0;                       ///< 0: there are no samples
  std::uint64_t listed_ = 0;            ///< samples that have names in the contribution
  std::uint64_t taken_ = 0, lost_ = 0;  ///< as in profiles::Sampling, whose text would need a destructor
  /// Of other threads.
  struct {
    double hz = 0, budget = 0;  ///< samples per second of each thread; what the policy has for all of them
    std::uint64_t taken = 0, lost = 0;
    std::uint32_t open = 0, most = 0, opened = 0;  ///< rings: now, at the same time, in all
    std::uint64_t links = 0;                       ///< of the folder of threads, at the last look into it
    unsigned pause = 1, look_in = 1;               ///< takes of samples from a look to the next, and from now to that
  } others_;
  static constinit std::atomic<int> own_thread_;
};
extern constinit CodeSampler code_sampler;

}  // namespace latecomer::shim
