// SPDX-License-Identifier: BSD-3-Clause
// Reads the kernel's counters of the main thread.
#include "shim/causes/usage.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "shim/guard.hpp"
#include "shim/patience.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/rules.hpp"

namespace latecomer::shim {

constinit thread_local MpiTime mpi_time;
constinit std::atomic<bool> timing{false};
constinit Sampler sampler;
constinit OtherThreads other_threads;

namespace {

/// Readings take at most 1 / kBudget of the time. Chosen: ten times less than the 1% that a measurement of a run shows.
constexpr Nanoseconds kBudget = 1000;
/// The time from one reading at an exit to the next one, in the time that pays for a reading. Derived: where no
/// interval is long, these readings take a quarter of the budget, and random samples three. A long interval has three
/// readings at most, with the one after its call.
constexpr Nanoseconds kApart = 4;
/// The share of the time since the last reading that an interval and its call must take for the parts of that time to
/// be those of the interval. Chosen: then a tenth of the time is of other intervals.
constexpr double kMost = 0.9;
/// The share of a span inside MPI up to which its instructions count as the program's. Chosen: a tenth of an error.
constexpr double kInMpi = 0.1;
/// The part of the policy's budget for the timing of message calls. Chosen: logs of collectives have most of it.
constexpr double kForMessages = 0.25;
/// What timing a message call takes, and the time of the run that pays for it; 0: every call is timed.
constinit std::atomic<Nanoseconds> message_cost{0}, message_price{0};

Nanoseconds in_ns(const timeval& t) {
  return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000 + static_cast<Nanoseconds>(t.tv_usec) * 1000;
}

Nanoseconds in_ns(const timespec& t) { return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000 + t.tv_nsec; }

/// Time of the first access to a page, the shortest of a few measurements, and of its return to the kernel.
Nanoseconds cost_of_fault() {
  constexpr std::size_t kGroups = 4, kPages = 4, kPage = 4096, kBytes = kGroups * kPages * kPage;
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return 0;
  Nanoseconds least = INT64_MAX;
  volatile char* at = static_cast<char*>(pages);
  for (std::size_t i = 0; i < kGroups; ++i) {
    const Nanoseconds begin = now();
    for (std::size_t k = 0; k < kPages; ++k, at += kPage) *at = 1;
    least = std::min(least, now() - begin);
  }
  const Nanoseconds begin = now();
  munmap(pages, kBytes);
  return least / static_cast<Nanoseconds>(kPages) + (now() - begin) / static_cast<Nanoseconds>(kGroups * kPages);
}

/// What a fault costs at most, in costs of a quiet moment. Chosen: caches and page tables are cold in a program.
constexpr Nanoseconds kFaultRange = 2;

/// The parts without collectives, as those of an interval of `length`.
profiles::Usage outside_collectives(const profiles::Usage& all, Nanoseconds length) {
  using profiles::Usage;
  const auto share = [&](Nanoseconds part, Nanoseconds of) {
    return of > 0 ? static_cast<Nanoseconds>(static_cast<double>(part) * static_cast<double>(length) /
                                             static_cast<double>(of))
                  : 0;
  };
  const Nanoseconds own = all.wall - all.collectives;
  Usage out;
  out.wall = out.computing = length;
  for (Nanoseconds Usage::*part :
       {&Usage::messages, &Usage::io, &Usage::other_mpi, &Usage::kernel, &Usage::runnable, &Usage::blocked}) {
    out.*part = std::min(share(all.*part, own), out.computing);
    out.computing -= out.*part;
  }
  out.faulting = share(all.faulting, own);
  out.threads = share(all.threads, all.wall);
  out.threads_in_mpi = share(all.threads_in_mpi, all.wall);
  out.counted = all.counted;
  out.instructions = all.instructions;
  out.cycles = all.cycles;
  out.faults = static_cast<std::uint64_t>(share(static_cast<Nanoseconds>(all.faults), own));
  out.preempted = static_cast<std::uint64_t>(share(static_cast<Nanoseconds>(all.preempted), own));
  return out;
}

/// The share of the calls for files for which they were on a processor, as far as is known.
double cpu_in_files(const MpiTime& mpi) {
  return mpi.io_seen > 0 ? std::clamp(static_cast<double>(mpi.io_cpu) / static_cast<double>(mpi.io_seen), 0.0, 1.0) : 1;
}

int this_thread() { return static_cast<int>(syscall(SYS_gettid)); }

/// The times of this thread. `schedstat`: its file of that name.
bool read_thread(int schedstat, ThreadTimes& out) {
  timespec cpu;
  char text[96];
  // "time on a processor, time without one, number of time slices"
  const ssize_t got = pread(schedstat, text, sizeof text - 1, 0);
  if (got <= 0 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0) return false;
  text[got] = '\0';
  char* end = text;
  std::strtoull(text, &end, 10);
  out.runnable = static_cast<Nanoseconds>(std::strtoull(end, &end, 10));
  out.slices = static_cast<std::int64_t>(std::strtoull(end, nullptr, 10));
  out.cpu = in_ns(cpu);
  return true;
}

/// Another thread keeps no file open, because the program might close it and open its own under that number.
bool read_other_thread(ThreadTimes& out) {
  const Nanoseconds begin = now();
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  const bool read = file >= 0 && read_thread(file, out);
  if (file >= 0) ::close(file);
  // The thread may lose its core meanwhile.
  spent.add(profiles::CostOf::causes, std::min(now() - begin, PollStretch::kSwitch));
  return read;
}

}  // namespace

bool Sampler::read_times(ThreadTimes& out) {
  if (mpi_time.row && !mpi_time.watched) return read_other_thread(out);
  const Nanoseconds begin = now();
  const bool read = read_thread(schedstat_, out);
  hardware_.read(out);
  const Nanoseconds took = std::max<Nanoseconds>(now() - begin, 100);
  cost_of_times_ = cost_of_times_ == 0 ? took : std::min(cost_of_times_, took);  // it may lose its core meanwhile
  spent.add(profiles::CostOf::causes, cost_of_times_);
  return read;
}

void Sampler::end_span(const ThreadTimes& times, Nanoseconds at) {
  const Nanoseconds wall = at - span_.at, inside = mpi_time.inside() - span_.inside;
  // Calls for files are one part, with their sleep. The rest is divided.
  const Nanoseconds io = std::min(mpi_time.io - span_.io, wall), left = wall - io;
  const Nanoseconds cpu = std::clamp<Nanoseconds>(
      times.cpu - span_.cpu - static_cast<Nanoseconds>(cpu_in_files(mpi_time) * static_cast<double>(io)), 0, left);
  const Nanoseconds runnable = std::min(times.runnable - span_.runnable, left - cpu);
  // MPI spins or yields while it waits for ranks. Courteous waits take naps, which are counted. All other sleep is the
  // program's. Where calls rest, the time inside MPI is an estimate, which may exceed the time that there was.
  const Nanoseconds napped = std::min(napped_ns - span_.napped, left - cpu - runnable);
  const Nanoseconds own = std::clamp<Nanoseconds>(wall - inside, 0, left - napped);
  const Nanoseconds blocked = std::min(left - cpu - runnable - napped, own), awake = own - blocked;
  outside_.awake += awake;
  outside_.blocked += blocked;
  // A wait that spins competes for processors as the program does: both get the same share of them. A wait that yields
  // leaves them to others.
  const double share =
      std::min(1.0, static_cast<double>(awake) / static_cast<double>(std::max<Nanoseconds>(1, cpu + runnable)));
  outside_.runnable += job_rules().courteous ? awake - std::min(cpu, awake)
                                             : static_cast<Nanoseconds>(share * static_cast<double>(runnable));
  // Instructions in MPI are none of the program's.
  if (span_.cycles > 0 && times.cycles > span_.cycles &&
      static_cast<double>(inside) <= kInMpi * static_cast<double>(wall)) {
    outside_.counted += times.cpu - span_.cpu;
    outside_.instructions += times.instructions - span_.instructions;
    outside_.cycles += times.cycles - span_.cycles;
  }
  span_ = {at, times.cpu, times.runnable, napped_ns, mpi_time.inside(), mpi_time.io, times.instructions, times.cycles};
  mpi_time.due = at + kBudget * cost_of_times_;
}

Nanoseconds read_at_entry(Nanoseconds at, Nanoseconds MpiTime::*call) {
  const KeepErrno keep;
  // A thread loses its core at the end of a system call, so the times are those before it.
  if (ThreadTimes times; sampler.read_times(times)) sampler.end_span(times, at);
  const Nanoseconds end = now();
  if (call) mpi_time.*call += end - at;
  return end;
}

void read_at_exit(Nanoseconds at, Nanoseconds MpiTime::*call) {
  const TimesReading reading;
  mpi_time.*call += reading.end - at;
  reading.end_span();
}

TimesReading::TimesReading() {
  const KeepErrno keep;
  for (int i = 0; i < kMost; ++i) {
    begin = end;
    read_ = sampler.read_times(times_);
    end = now();
    if (end - begin <= PollStretch::kSwitch) break;
  }
}

bool Sampler::read_counters(Reading& out) {
  ThreadTimes times;
  timespec process;
  rusage usage;
  Nanoseconds begin;
  int tries = 0;
  do {
    spent.add(profiles::CostOf::causes, cost_);  // not by a clock: a rank may lose its core in a system call
    begin = now();
    if (!read_thread(schedstat_, times) || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &process) != 0 ||
        getrusage(RUSAGE_THREAD, &usage) != 0)
      return false;
    hardware_.read(times);
    out.wall = now();
  } while (out.wall - begin > PollStretch::kSwitch && ++tries < TimesReading::kMost);
  end_span(times, out.wall);
  out.outside = outside_;
  out.cpu = times.cpu;
  out.process = in_ns(process);
  out.threads_in_mpi = other_threads.inside();
  // Ticks decide how the processor time divides, so only sums of many intervals are exact.
  out.kernel = in_ns(usage.ru_stime);
  out.mpi = mpi_time;
  out.faults = static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
  out.preempted = static_cast<std::uint64_t>(usage.ru_nivcsw);
  return true;
}

profiles::Usage Sampler::usage_between(const Reading& a, const Reading& b, Nanoseconds& kernel_left) const {
  profiles::Usage out;
  out.wall = b.wall - a.wall;
  out.collectives = b.mpi.collectives - a.mpi.collectives;
  out.io = b.mpi.io - a.mpi.io;
  out.other_mpi = b.mpi.other_mpi - a.mpi.other_mpi;
  // Where calls rest, the sum is an estimate, which may exceed the time that there was.
  out.messages = std::clamp<Nanoseconds>(b.mpi.messages.sum() + b.mpi.read - a.mpi.messages.sum() - a.mpi.read, 0,
                                         std::max<Nanoseconds>(0, out.wall - out.collectives - out.io - out.other_mpi));
  const Nanoseconds own = std::max<Nanoseconds>(0, out.wall - out.collectives - out.messages - out.io - out.other_mpi);
  out.blocked = std::min(b.outside.blocked - a.outside.blocked, own);
  // Where calls are not timed, spans have more time outside MPI.
  const Nanoseconds awake = own - out.blocked, seen = b.outside.awake - a.outside.awake;
  out.runnable = static_cast<Nanoseconds>(static_cast<double>(b.outside.runnable - a.outside.runnable) *
                                          std::min(1.0, static_cast<double>(awake) / static_cast<double>(seen)));
  const Nanoseconds computing = awake - out.runnable;
  // The kernel's time in calls for files belongs to them.
  const auto in_files = static_cast<Nanoseconds>(cpu_in_files(b.mpi) * static_cast<double>(out.io));
  const Nanoseconds cpu = std::max<Nanoseconds>(1, b.cpu - a.cpu - in_files),
                    kernel = std::max<Nanoseconds>(0, b.kernel - a.kernel - in_files);
  const double of_cpu = std::min(1.0, static_cast<double>(computing) / static_cast<double>(cpu));
  kernel_left += static_cast<Nanoseconds>(of_cpu * static_cast<double>(kernel));
  out.kernel = std::min(kernel_left, computing);
  kernel_left -= out.kernel;
  out.computing = computing - out.kernel;
  out.faults = b.faults - a.faults;
  out.preempted = b.preempted - a.preempted;
  out.faulting = static_cast<Nanoseconds>(out.faults) * fault_;
  out.threads = std::max<Nanoseconds>(0, (b.process - a.process) - (b.cpu - a.cpu));
  out.threads_in_mpi = b.threads_in_mpi - a.threads_in_mpi;
  out.counted = b.outside.counted - a.outside.counted;
  out.instructions = b.outside.instructions - a.outside.instructions;
  out.cycles = b.outside.cycles - a.outside.cycles;
  return out;
}

void Sampler::start_sampling() {
  thread_ = this_thread();
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", thread_);
  schedstat_ = ::open(path, O_RDONLY | O_CLOEXEC);
  if (schedstat_ < 0) return;
  // The shortest of a few readings: another process may run meanwhile.
  for (int i = 0; i < 5; ++i) {
    ThreadTimes times;
    read_times(times);
    const Nanoseconds begin = now();
    if (!read_counters(start_)) return;
    const Nanoseconds took = std::max<Nanoseconds>(now() - begin, 100);
    cost_ = i == 0 ? took : std::min(cost_, took);
  }
  fault_ = kFaultRange * cost_of_fault();
  opened_at_ = now();
  long_ = kApart * kBudget * cost_;
  left_ = 1;
  first_ = kFirst;
  mpi_time.watched = true;
  mpi_time.row = thread_rows.begin_rows();
}

void Sampler::count_instructions() {
  if (schedstat_ < 0 || !hardware_.open()) return;
  const Nanoseconds without = std::exchange(cost_of_times_, 0);
  for (int i = 0; i < 5; ++i) {
    ThreadTimes times;
    read_times(times);
  }
  cost_ += std::max<Nanoseconds>(0, cost_of_times_ - without);
  long_ = kApart * kBudget * cost_;
}

void Sampler::decline_sampling() {
  left_ = 0;
  first_ = 0;
  long_ = read_at_ = INT64_MAX;
  mpi_time.watched = false;
  mpi_time.row = nullptr;
  thread_rows.end_rows();
  mpi_time.due = INT64_MAX;
  ::close(std::exchange(schedstat_, -1));
}

bool other_thread_has_sites() {
  if (!mpi_time.row) mpi_time.row = thread_rows.take_row();
  return mpi_time.row && !mpi_time.row->shared();
}

void draw_message_call(std::uint32_t weight, Nanoseconds time, Nanoseconds at) {
  if (message_cost.load(std::memory_order_relaxed) == 0) sampler.price_message_calls();
  if (mpi_time.messages.timed() % 64 == 0) {
    if (mpi_time.watched) timed_sites.forget_unloaded();
    else if (mpi_time.row) mpi_time.row->sites.forget_unloaded();
  }
  const auto timed = mpi_time.messages.draw_next(weight, time, at, message_price.load(std::memory_order_relaxed));
  if (timed > 0) spent.add(profiles::CostOf::messages, static_cast<Nanoseconds>(timed) * message_cost);
}

void charge_polls(std::uint32_t polls) {
  spent.add(profiles::CostOf::messages, static_cast<Nanoseconds>(polls) * message_cost.load(std::memory_order_relaxed));
}

void Sampler::price_message_calls() {
  constexpr int kCalls = 32;
  // Another process may run meanwhile, and a clock without an anchor takes ten times as long for its first 0.2 ms.
  constexpr Nanoseconds kSlow = 100 * kCalls, kUntil = 400'000;
  Nanoseconds least = INT64_MAX, begin = now();
  const Nanoseconds start = begin;
  for (int i = 0; i < 5 || (least > kSlow && begin - start < kUntil); ++i) {
    profiles::CallDraw calls;
    begin = now();
    for (int call = 0; call < kCalls; ++call) {  // the work of a MessageCall
      const Nanoseconds at = now();
      live->message.store(at, std::memory_order_relaxed);
      live->message.store(0, std::memory_order_relaxed);
      calls.add(calls.weigh_next(), now() - at);
    }
    least = std::min(least, now() - begin);
  }
  const Nanoseconds cost = std::max<Nanoseconds>(least / kCalls, 1);
  message_cost = cost;
  const core::Policy& policy = job_rules().policy;
  if (policy.mode == core::Mode::observe && policy.budget)
    message_price = static_cast<Nanoseconds>(static_cast<double>(cost) / (kForMessages * *policy.budget));
  sure_calls_ = static_cast<std::uint32_t>(cost_ / cost);
}

profiles::Usage Sampler::total_usage() {
  Reading end;
  if (stopped_) return final_;
  if (schedstat_ < 0 || this_thread() != thread_ || !read_counters(end)) return {};
  Nanoseconds kernel_left = 0;
  end.mpi.collectives += std::max<Nanoseconds>(end.mpi.stood_for, -end.mpi.collectives);
  return usage_between(start_, end, kernel_left);
}

bool Sampler::read_at_exit(Nanoseconds exit) {
  if (exit == read_at_) return true;
  read_at_ = exit;
  peers_ = {};
  return this_thread() == thread_ && read_counters(begin_);
}

void Sampler::open_interval(std::uint32_t stands_for, Nanoseconds exit) {
  const KeepErrno keep;
  open_ = mpi_time.sampled = read_at_exit(exit);
  mpi_time.messages.time_next(sure_calls_);
  stands_for_ = stands_for;
}

void Sampler::open_interval_at_random(Nanoseconds exit) {
  const Nanoseconds at = now();
  open_interval(std::max<std::uint32_t>(exits_ + carried_, late_ + 1) - late_, exit);
  carried_ = late_ = 0;
  // A random distance, so that no interval of a program's period is preferred. Its mean follows the budget.
  const Nanoseconds per_exit = std::max<Nanoseconds>((at - opened_at_) / exits_, 1);
  const auto distance = static_cast<std::uint64_t>(
      std::clamp<Nanoseconds>(2 * kApart * kBudget * cost_ / ((kApart - 1) * per_exit), 1, 1 << 20));
  exits_ = left_ = static_cast<std::uint32_t>(1 + random_.below(2 * distance - 1));
  opened_at_ = at;
}

void Sampler::close_interval() {
  const KeepErrno keep;
  open_ = mpi_time.sampled = false;
  mpi_time.messages.time_next(0);
  Reading end;
  closed_ = this_thread() == thread_ && read_counters(end);
  if (closed_) interval_ = usage_between(begin_, end, kernel_left_);
}

void Sampler::store_interval(profiles::Intervals& before, Nanoseconds arrival, Nanoseconds exit, std::uint32_t times) {
  const KeepErrno keep;
  const bool due = exit - read_at_ >= long_;
  const bool late = due && static_cast<double>(exit - left_at_) >= kMost * static_cast<double>(exit - read_at_);
  if (closed_) {
    if (late && random_kind_) {
      carried_ += stands_for_ - 1;
      stands_for_ = 1;
    }
    before.add(interval_, peers_, stands_for_ * times);
  } else if (late && random_kind_) {
    ++late_;
  }
  const bool sampled = std::exchange(closed_, false);
  if (!due) return;
  const Reading from = begin_;
  const profiles::Peers waited_for = peers_;
  if (!read_at_exit(exit) || !late || sampled) return;
  Nanoseconds kernel_left = 0;
  const profiles::Usage all = usage_between(from, begin_, kernel_left);
  // Only sampled calls for files show their division into parts.
  if (all.io > 0 && begin_.mpi.io_seen == 0) return;
  before.add(outside_collectives(all, std::max<Nanoseconds>(0, arrival - left_at_)), waited_for, times);
}

}  // namespace latecomer::shim
