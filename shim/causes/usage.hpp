// SPDX-License-Identifier: BSD-3-Clause
// What the main thread did between two collectives: time in other MPI calls, on a processor, without one, asleep. Reads
// the kernel's counters for a sample of the intervals, within a budget of the run time. Adds up for whose messages the
// thread waited, in the whole run.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "core/base/text.hpp"
#include "profiles/record/call_draw.hpp"
#include "profiles/record/record.hpp"
#include "shim/causes/code_samples.hpp"
#include "shim/causes/hardware.hpp"
#include "shim/causes/poll_stretch.hpp"
#include "shim/causes/thread_rows.hpp"
#include "shim/causes/timed_sites.hpp"
#include "shim/clock.hpp"
#include "shim/guard.hpp"
#include "shim/live/live.hpp"
#include "shim/state/snapshot.hpp"

namespace latecomer::shim {

/// Time of the calling thread inside blocking collectives, inside calls that wait for messages, inside MPI's calls for
/// files, and inside its other calls that may wait.
struct MpiTime {
  Nanoseconds collectives = 0, io = 0, other_mpi = 0;
  profiles::CallDraw messages;
  Nanoseconds read = 0;       ///< at both ends of calls that wait for messages, in readings of the thread's times
  Nanoseconds stood_for = 0;  ///< estimated time in collectives of epochs that are not logged, beyond `collectives`
  Nanoseconds callbacks = 0;  ///< in functions of the program beneath calls of MPI, without its calls of MPI there
  Nanoseconds io_seen = 0, io_cpu = 0;  ///< of `io` in sampled intervals: time, and processor time
  Nanoseconds due = INT64_MAX;          ///< from then on, a reading of the thread's times pays; INT64_MAX: never
  std::uint8_t unclocked = 0;           ///< calls that read no clock, modulo 256
  bool sampled = false;                 ///< an interval of this thread is being sampled
  bool watched = false;                 ///< this thread's waits for messages are added up by rank
  bool polls = false;                   ///< a stretch of polls of this thread is open
  profiles::LocalDraw locals;
  ThreadRow* row = nullptr;  ///< of this thread; nullptr: not yet, or nothing is timed

  Nanoseconds inside() const { return collectives + io + other_mpi + messages.sum() + read; }
  /// Whether `latecomer who` shows this thread: it started MPI, or threads are not told apart.
  bool is_shown() const { return watched || !row; }
  /// What does not belong to a call that contains it.
  Nanoseconds marked() const { return inside() + callbacks; }
};
extern constinit thread_local MpiTime mpi_time;

/// The time for which threads of the process were inside MPI, without the thread that started it.
class OtherThreads {
 public:
  /// A thread was in a call for `time`, until `at`. Of calls at the same time, the sum has a lower bound of their
  /// union.
  void add(Nanoseconds time, Nanoseconds at) {
    Nanoseconds before = until_.load(std::memory_order_relaxed);
    while (before < at && !until_.compare_exchange_weak(before, at, std::memory_order_relaxed)) {
    }
    sum_.fetch_add(std::clamp<Nanoseconds>(at - before, 0, time), std::memory_order_relaxed);
  }
  Nanoseconds inside() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Nanoseconds> sum_{0}, until_{0};
};
extern constinit OtherThreads other_threads;

/// Whether calls that wait are timed: latecomer observes, with the policy key `causes`.
extern constinit std::atomic<bool> timing;
/// A shorter call waits for no rank: it transfers a message. Chosen: twice the time of a message in shared memory.
constexpr Nanoseconds kTransfer = 1000;

/// A timed call of this thread begins, also a collective.
inline void enter_mpi(Nanoseconds at) {
  if (!mpi_time.row) [[unlikely]]
    mpi_time.row = thread_rows.take_row();
  if (mpi_time.row) [[likely]]
    mpi_time.row->since.store(at, std::memory_order_relaxed);
}
/// Adds time inside MPI to the row of this thread, which has one and did not start MPI.
inline void add_to_row(profiles::ThreadPart part, std::uint32_t weight, Nanoseconds time, Nanoseconds at) {
  mpi_time.row->add(part, weight, time);
  if (time > kTransfer) other_threads.add(time, at);
}
/// It ends. `weight`: of its time.
inline void leave_mpi(profiles::ThreadPart part, std::uint32_t weight, Nanoseconds time, Nanoseconds at) {
  ThreadRow* const row = mpi_time.row;
  if (!row) return;
  if (!mpi_time.watched) [[unlikely]]
    add_to_row(part, weight, time, at);
  if (thread_rows.several()) [[unlikely]]
    thread_rows.note_all_inside(at);
  row->since.store(0, std::memory_order_relaxed);
}

/// After a call of the program that read no clock: every 32nd one reads it. Chosen: then it takes 0.3 ns of a call.
/// Such a call alone, made every two seconds, still leads to a snapshot within a minute.
inline void keep_on_disk_sometimes() {
  if (++mpi_time.unclocked % 32 == 0 && Guard::program_calls()) [[unlikely]]
    keep_on_disk(now());
}

/// Ends a stretch of polls. Call this function in each call that is no poll, before it is timed.
void end_open_stretch();
inline void end_polls() {
  if (mpi_time.polls) [[unlikely]]
    end_open_stretch();
}

/// Ends a span of time outside or inside MPI, if a reading of the thread's times pays. Call this function at the entry
/// of a call that may wait, or at its exit after its time was added. The thread may lose its core in the reading, whose
/// time is added to `call`; nullptr: the call counts it. Returns the time after the reading.
Nanoseconds read_at_entry(Nanoseconds at, Nanoseconds MpiTime::*call);
void read_at_exit(Nanoseconds at, Nanoseconds MpiTime::*call);
inline Nanoseconds end_span_at_entry(Nanoseconds at, Nanoseconds MpiTime::*call) {
  return at >= mpi_time.due ? read_at_entry(at, call) : at;
}
inline void end_span_at_exit(Nanoseconds at, Nanoseconds MpiTime::*call) {
  if (at >= mpi_time.due) [[unlikely]]
    read_at_exit(at, call);
}

/// Whether this thread has sites, which it alone writes: the thread that started MPI, and others with a row.
[[gnu::noinline, gnu::cold]] bool other_thread_has_sites();
inline bool has_sites() { return mpi_time.watched || other_thread_has_sites(); }
/// The site of a call, if this thread has_sites().
inline profiles::TimedSite& site_at(const CallPlace& place) {
  return mpi_time.watched ? timed_sites.at(place) : mpi_time.row->sites.at(place);
}
inline void count_calls(profiles::TimedSite& site, std::uint64_t calls) {
  core::add_shared(site.sums.calls, calls);
  if (!mpi_time.watched) [[unlikely]]
    mpi_time.row->count_calls(calls);
}

/// Counts a call at its site, and shows it to `latecomer who` on the thread that started MPI. Returns the site;
/// nullptr: this thread has none.
inline profiles::TimedSite* count_at_site(const CallPlace& place) {
  if (!has_sites()) [[unlikely]] {
    if (mpi_time.row) mpi_time.row->count_calls(1);
    return nullptr;
  }
  profiles::TimedSite& site = site_at(place);
  count_calls(site, 1);
  if (mpi_time.watched) live_enter_message(site.key);
  return &site;
}

/// Time in messages of this thread, which has_sites(), that is not of a MessageCall.
inline void add_message_time(std::uint32_t weight, Nanoseconds time, Nanoseconds at) {
  mpi_time.messages.add_time(weight, time);
  if (!mpi_time.watched) add_to_row(profiles::ThreadPart::messages, weight, time, at);
}

/// Draws the next message call that is timed, after one that took `time`.
void draw_message_call(std::uint32_t weight, Nanoseconds time, Nanoseconds at);

/// Times its scope, a call that waits for messages, or lets it rest. The time of the program's calls in callbacks
/// beneath it is theirs alone. `counts`: false does nothing.
class MessageCall {
 public:
  [[gnu::always_inline]] MessageCall(const CallPlace& place, bool counts) : open_(counts) {
    end_polls();
    if (counts) {
      site_ = count_at_site(place);
      weight_ = mpi_time.messages.weigh_next();
      if (weight_ > 0) {
        begin();
        return;
      }
      if (mpi_time.watched) code_sampler.enter_call([&] { return profiles::call_id(site_->key); });
      if (mpi_time.is_shown()) {
        // A negative time is unknown. It differs from that of the last call, so that the rank does not seem to stand
        // still.
        live->message.store(-static_cast<std::int64_t>(mpi_time.messages.resting()), std::memory_order_relaxed);
      }
    }
    keep_on_disk_sometimes();
  }
  MessageCall(const MessageCall&) = delete;
  MessageCall& operator=(const MessageCall&) = delete;
  [[gnu::always_inline]] ~MessageCall() { end(); }
  /// Whether its peers count.
  bool has_site() const { return site_; }
  profiles::TimedSite* site() const { return site_; }
  bool is_timed() const { return weight_ > 0; }
  /// Of the call, after its end if it was timed.
  Nanoseconds time() const { return begin_; }
  /// Ends the scope early. Returns its time if that belongs to ranks: it waited, and has a site.
  [[gnu::always_inline]] Wait end() {
    if (!open_) return {};
    open_ = false;
    if (mpi_time.is_shown()) live->message.store(0, std::memory_order_relaxed);
    if (weight_ > 0) return end_timed();
    if (mpi_time.watched) code_sampler.leave_call();
    return {};
  }

 private:
  void begin() {
    const Nanoseconds came = now();
    if (mpi_time.watched) code_sampler.enter_call([&] { return profiles::call_id(site_->key); }, came);
    const Nanoseconds at = end_span_at_entry(came, &MpiTime::read);
    begin_ = at - mpi_time.marked();
    enter_mpi(at);
    if (mpi_time.is_shown()) live->message.store(at, std::memory_order_relaxed);
  }
  [[gnu::noinline]] Wait end_timed() {
    const Nanoseconds at = now(), time = at - mpi_time.marked() - begin_;
    begin_ = time;
    if (mpi_time.messages.add(weight_, time)) [[unlikely]]
      draw_message_call(weight_, time, at);
    leave_mpi(profiles::ThreadPart::messages, weight_, time, at);
    if (site_) site_->sums.add(weight_, time);
    end_span_at_exit(at, &MpiTime::read);
    if (mpi_time.watched) code_sampler.leave_call(profiles::call_id(site_->key), at);
    keep_on_disk(at);
    return site_ && time > kTransfer ? Wait{weight_ * time, &site_->sums} : Wait{};
  }

  bool open_;
  std::uint32_t weight_ = 0;
  profiles::TimedSite* site_ = nullptr;
  Nanoseconds begin_ = 0;  ///< without the time inside MPI until then; the call's time after its end
};

/// Times a sample of the calls that wait for nobody: those that start messages, and polls that succeed at once. Such a
/// call may copy a message, or move others on. `counts`: only on a thread that has_sites().
class LocalCall {
 public:
  explicit LocalCall(bool counts) : weight_(counts ? mpi_time.locals.weigh_next() : 0) {
    if (weight_ > 0) [[unlikely]]
      begin_ = now() - mpi_time.marked();
  }
  /// The call has ended.
  void end(profiles::TimedSite& site) {
    if (weight_ > 0) [[unlikely]]
      add(site);
  }
  /// For a poll that succeeds at once: counts it, with those that it stands for.
  void end_poll(const CallPlace& place) {
    if (weight_ == 0) [[likely]]
      return;
    profiles::TimedSite& site = site_at(place);
    count_calls(site, weight_);
    add(site);
  }
  /// The call turned out to be of another kind.
  void drop() {
    if (weight_ > 0) mpi_time.locals.draw_next(0);
  }

 private:
  [[gnu::noinline]] void add(profiles::TimedSite& site) {
    const Nanoseconds at = now(), time = std::max<Nanoseconds>(0, at - mpi_time.marked() - begin_);
    add_message_time(weight_, time, at);
    site.sums.add(weight_, time);
    mpi_time.locals.draw_next(time);
  }
  std::uint32_t weight_;
  Nanoseconds begin_ = 0;
};

/// Times its scope, a call that adds to one of the other sums of MpiTime, as MessageCall does. Such calls never rest:
/// they are rare, or take long.
class OtherCall {
 public:
  OtherCall(const CallPlace& place, bool counts, Nanoseconds MpiTime::*sum) : counts_(counts), sum_(sum) {
    end_polls();
    if (!counts) {
      keep_on_disk_sometimes();
      return;
    }
    site_ = count_at_site(place);
    const Nanoseconds came = now();
    if (mpi_time.watched) code_sampler.enter_call([&] { return profiles::call_id(site_->key); }, came);
    const Nanoseconds at = end_span_at_entry(came, sum);
    begin_ = at - mpi_time.marked();
    enter_mpi(at);
    if (mpi_time.is_shown()) live->message.store(at, std::memory_order_relaxed);
  }
  OtherCall(const OtherCall&) = delete;
  OtherCall& operator=(const OtherCall&) = delete;
  ~OtherCall() {
    if (!counts_) return;
    const Nanoseconds at = now(), time = at - mpi_time.marked() - begin_;
    mpi_time.*sum_ += time;
    leave_mpi(sum_ == &MpiTime::io ? profiles::ThreadPart::files : profiles::ThreadPart::other, 1, time, at);
    if (mpi_time.is_shown()) live->message.store(0, std::memory_order_relaxed);
    if (site_) site_->sums.add(1, time);
    end_span_at_exit(at, sum_);
    if (mpi_time.watched) code_sampler.leave_call(profiles::call_id(site_->key), at);
    keep_on_disk(at);
  }

 private:
  bool counts_;
  Nanoseconds MpiTime::*sum_;
  profiles::TimedSite* site_ = nullptr;
  Nanoseconds begin_ = 0;
};

/// Splits a call for files in a sampled interval into time on a processor and sleep. The latter is no sleep of the
/// program.
class FileCall {
 public:
  explicit FileCall(bool counts) : counts_(counts && mpi_time.sampled) {
    if (counts_) {
      mpi_time.io_seen -= now();
      mpi_time.io_cpu -= thread_time();
    }
  }
  FileCall(const FileCall&) = delete;
  FileCall& operator=(const FileCall&) = delete;
  ~FileCall() {
    if (counts_) {
      mpi_time.io_seen += now();
      mpi_time.io_cpu += thread_time();
    }
  }

 private:
  bool counts_;
};

/// Adds the cost of polls that were timed in vain.
void charge_polls(std::uint32_t polls);

/// Samples intervals between blocking collectives, only on the thread that started MPI. Intervals are of two kinds. The
/// first kind: the first intervals of a run, intervals at a site where the last interval ended late, and intervals that
/// end late. The sampler samples all of them, and each sample stands for its own interval. All other intervals are of
/// the second kind. The sampler samples some at random, and each stands for all of this kind since the sample before.
///
/// At the beginning of an interval, the sampler does not know that the interval will be long. So it reads the counters
/// at an exit if the last reading is long ago. The next such reading gives the work of the thread between the two. If
/// one interval and its call take most of that time, these figures count as the parts of that interval.
///
/// A rank that waits in MPI has its core or not, which says nothing about its own work. So the times of the thread are
/// also read at entries and exits of MPI, as often as pays. Such a span is then mostly outside or mostly inside MPI,
/// and only what it has outside counts.
class Sampler {
 public:
  /// On the thread that starts MPI. Without the kernel's counters nothing is sampled.
  void start_sampling();
  /// The policy wants no samples. Without a reading at start_sampling(), total_usage() is zero.
  void decline_sampling();
  /// From now on, readings have instructions and cycles, if the machine counts them.
  void count_instructions();
  /// At the end of MPI_Init, in programs whose intervals are sampled: the parts of the time count from here on, and the
  /// first interval begins.
  void begin_first_interval(Nanoseconds at) {
    if (schedstat_ < 0 || !read_counters(start_)) return;
    open_interval(1, at);
    left_at_ = at;
  }
  /// Reads the kernel's counters of this thread, for which the run pays. Returns false without them.
  bool read_times(ThreadTimes& out);
  /// Adds up what the thread did outside MPI since the last span, by `times`, which were read at that time.
  void end_span(const ThreadTimes& times, Nanoseconds at);
  /// Measures what timing a message call takes, and sets the time of the run that pays for it.
  void price_message_calls();
  /// At the end of the job: total_usage() stands still.
  void stop_sampling() {
    final_ = total_usage();
    stopped_ = true;
  }
  /// What the thread has done since start_sampling(); zero on another thread.
  profiles::Usage total_usage();
  /// At the arrival at a blocking collective: ends an interval that is being sampled.
  void end_interval_at_arrival() {
    if (open_) [[unlikely]]
      close_interval();
  }
  /// At any other collective: the interval no longer lies between two blocking ones.
  void discard_interval() {
    open_ = closed_ = mpi_time.sampled = expects_long_ = false;
    mpi_time.messages.time_next(0);
    left_at_ = INT64_MAX;
  }
  /// A call waited for that rank of MPI_COMM_WORLD.
  void wait_for(Rank rank, Nanoseconds waited) {
    all_peers_.add(rank, waited);
    peers_.add(rank, waited);
  }
  /// The ranks whose messages the thread waited for since start_sampling().
  const profiles::Peers& peers() const { return all_peers_; }
  /// At the exit of a blocking collective. `before`: takes the interval that ended at the arrival, if it was sampled;
  /// it stands for `times` intervals of other epochs.
  void begin_interval_at_exit(profiles::Intervals& before, Nanoseconds arrival, Nanoseconds exit, std::uint32_t times) {
    if (closed_ || exit - read_at_ >= long_) [[unlikely]]
      store_interval(before, arrival, exit, times);
    if (const bool was_long = exit - left_at_ >= long_; was_long != expects_long_) [[unlikely]]
      long_after_[place_] = was_long;
    left_at_ = exit;
    place_ = (reinterpret_cast<std::uintptr_t>(&before) >> 6) % kPlaces;
    expects_long_ = long_after_[place_];
    random_kind_ = false;
    if (expects_long_ || first_ > 0) [[unlikely]] {
      if (first_ > 0) --first_;
      open_interval(1, exit);
      return;
    }
    random_kind_ = true;
    if (--left_ == 0) [[unlikely]]
      open_interval_at_random(exit);
  }

 private:
  /// Outside MPI.
  struct Outside {
    Nanoseconds awake = 0, runnable = 0, blocked = 0;
    Nanoseconds counted = 0;                     ///< processor time in which these were counted:
    std::uint64_t instructions = 0, cycles = 0;  ///< in spans that are almost all outside MPI
  };
  struct Reading {
    Nanoseconds wall = 0, cpu = 0, kernel = 0, process = 0, threads_in_mpi = 0;
    Outside outside;
    MpiTime mpi;
    std::uint64_t faults = 0, preempted = 0;
  };
  bool read_counters(Reading& out);
  /// `kernel_left`: time of the kernel that did not fit into earlier intervals, because ticks count it. It goes into
  /// this one as far as it fits.
  profiles::Usage usage_between(const Reading& a, const Reading& b, Nanoseconds& kernel_left) const;
  /// Reads at an exit, unless it was read already.
  bool read_at_exit(Nanoseconds exit);
  void open_interval(std::uint32_t stands_for, Nanoseconds exit);
  void open_interval_at_random(Nanoseconds exit);
  void close_interval();
  void store_interval(profiles::Intervals& before, Nanoseconds arrival, Nanoseconds exit, std::uint32_t times);

  /// Sites by their address in memory. Sites that share a place make each other's intervals be sampled too often or at
  /// random, and the samples stand for as many as they should. Derived: four cache lines.
  static constexpr std::size_t kPlaces = 256;
  /// The first intervals of a run, which all are sampled: its set-up. Chosen: they cost 50 us in all.
  static constexpr int kFirst = 16;

  int schedstat_ = -1;
  HardwareCounts hardware_;
  int thread_ = 0;
  bool open_ = false, closed_ = false, stopped_ = false;
  bool expects_long_ = false;  ///< after the last exit at this site, the next one was late
  bool random_kind_ = false;   ///< the interval since the last exit counts as one of which random ones are sampled
  int first_ = 0;              ///< of the first intervals, those to come
  std::size_t place_ = 0;      ///< in long_after_, of the site of the last exit
  bool long_after_[kPlaces] = {};
  Nanoseconds left_at_ = INT64_MAX;  ///< the last exit; INT64_MAX: something else came after it
  Nanoseconds read_at_ = INT64_MAX;  ///< the exit of begin_; INT64_MAX: nothing is sampled
  /// The time from exit to exit from which readings keep the budget. It counts the next call, too: then a site is
  /// sampled on the ranks that wait as on the one that they wait for.
  Nanoseconds long_ = INT64_MAX;
  std::uint32_t stands_for_ = 1;  ///< intervals, by the sample that is open or was closed last
  /// Intervals of the random kind that ended late, since the last random sample: each of them stands for itself. And
  /// the intervals that late random samples would have stood for.
  std::uint32_t late_ = 0, carried_ = 0;
  std::uint32_t left_ = 0;  ///< exits until the next sample; it wraps around, and so never comes, if nothing is sampled
  core::SplitMix64 random_{1};
  Nanoseconds opened_at_ = 0;
  Nanoseconds cost_ = 0;  ///< of one reading
  Nanoseconds cost_of_times_ = 0;
  /// The message calls of a sampled interval that are surely timed. Derived: their timing costs as much as a reading.
  std::uint32_t sure_calls_ = 0;
  Nanoseconds kernel_left_ = 0;
  Nanoseconds fault_ = 0;    ///< the most that a page fault costs
  std::uint32_t exits_ = 1;  ///< between the last two random samples
  Reading begin_, start_;
  Outside outside_;
  struct {
    Nanoseconds at = 0, cpu = 0, runnable = 0, napped = 0, inside = 0, io = 0;
    std::uint64_t instructions = 0, cycles = 0;
  } span_;  ///< the readings at its begin
  profiles::Usage interval_, final_;
  profiles::Peers peers_;      ///< since begin_
  profiles::Peers all_peers_;  ///< of the run
};
extern constinit Sampler sampler;

/// One reading of the thread's times. Another thread may get the core in it: then it is done again.
struct TimesReading {
  static constexpr int kMost = 4;  ///< chosen: a thread that has just got the core keeps it for longer than a reading
  Nanoseconds begin, end = now();

  TimesReading();
  const ThreadTimes* times() const { return read_ ? &times_ : nullptr; }
  /// As Sampler::end_span(), if the times were read, on the thread that started MPI.
  void end_span() const {
    if (read_ && mpi_time.watched) sampler.end_span(times_, end);
  }

 private:
  ThreadTimes times_;
  bool read_ = false;
};

}  // namespace latecomer::shim
