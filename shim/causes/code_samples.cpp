// SPDX-License-Identifier: BSD-3-Clause
// Opens the ring of samples, and keeps the tables of code and of stretches.
#include "shim/causes/code_samples.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "core/base/file.hpp"
#include "profiles/base/descriptor.hpp"
#include "profiles/base/sampling_refused.hpp"
#include "shim/guard.hpp"
#include "shim/mpi/names.hpp"
#include "shim/sites/functions.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/rules.hpp"

namespace latecomer::shim {

constinit CodeSampler code_sampler;
constinit CodeSampler::Own CodeSampler::none_{};
constinit std::atomic<int> CodeSampler::own_thread_{0};

namespace {

/// Why there are no samples. No text of the heap: destructors of the program may come before the end of the job.
constinit char why_not[160] = "", others_why_not[160] = "";

/// What a sample takes from the thread. Measured on a virtual machine: 50 to 70 us. Our clock cannot see it.
constexpr Nanoseconds kSampleCost = 70'000;
/// The part of the policy's budget for samples. Chosen: logs of collectives have most of it.
constexpr double kForSamples = 0.25;
/// Derived: 64 KiB hold 4,096 samples of 16 bytes, 215 s of computing at 19 Hz, and the rings of other threads 54 s.
/// All nine take 228 KiB with their first pages, of the 516 that the kernel grants a user for each core.
constexpr std::size_t kRing = 64 << 10, kRingOfOthers = 16 << 10;
/// Chosen: a look for threads takes less than a sample each second, and a thread that begins is found at once.
constexpr unsigned kMostPause = 64;
/// Chosen: fewer samples per second of a thread tell nothing, unless the policy wants so few.
constexpr double kLeastHz = 1;
/// The fewest samples that a snapshot names. Chosen: fewer tell no difference.
constexpr std::uint64_t kFewest = 100;
/// Chosen: opening so many rings takes some ms. A process with more threads begins and ends them all the time.
constexpr std::uint32_t kMostOpened = 64;

/// Memory of this process that is locked for others, such as a network adapter or this ring, beyond what the kernel
/// grants each user for rings, in KiB. -1: not known.
long pinned_kib() {
  const auto status = core::read_file("/proc/self/status");
  const std::size_t at = status ? status->find("\nVmPin:") : std::string::npos;
  return at == std::string::npos ? -1 : std::strtol(status->c_str() + at + 7, nullptr, 10);
}

/// The processor time of a thread of this process, in ns.
double processor_time(int thread) {
  char path[64], text[32];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", thread);
  const profiles::Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t got = file.get() < 0 ? 0 : read(file.get(), text, sizeof text - 1);
  text[std::max<ssize_t>(got, 0)] = '\0';
  return std::strtod(text, nullptr);
}

/// The threads of this process, as far as there is room. No memory of the heap.
std::span<const int> list_threads(std::span<int> room) {
  const profiles::Descriptor folder(::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::size_t number = 0;
  alignas(dirent64) char names[4096];
  for (long got; (got = syscall(SYS_getdents64, folder.get(), names, sizeof names)) > 0;)
    for (long at = 0; at < got; at += reinterpret_cast<const dirent64*>(names + at)->d_reclen)
      if (const int thread = std::atoi(reinterpret_cast<const dirent64*>(names + at)->d_name);
          thread > 0 && number < room.size())
        room[number++] = thread;
  return room.first(number);
}

long paranoid_level() {
  const auto text = core::read_file("/proc/sys/kernel/perf_event_paranoid");
  return text ? std::strtol(text->c_str(), nullptr, 10) : -2;
}

}  // namespace

void CodeSampler::begin_samples(double hz) {
  const core::Policy& policy = job_rules().policy;
  others_ = {};
  others_.budget = static_cast<double>(kOthers) * hz;
  if (policy.mode == core::Mode::observe && policy.budget) {
    const double most = kForSamples * *policy.budget * 1e9 / static_cast<double>(kSampleCost);
    hz = std::min(hz, most);
    others_.budget = std::min(others_.budget, most - hz);
  }
  hz_ = 0;
  taken_ = lost_ = 0;
  why_not[0] = others_why_not[0] = '\0';
  if (hz <= 0) return;
  void* const own = mmap(nullptr, sizeof(Own), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::string problem = "there is no memory for samples";
  if (own != MAP_FAILED) {
    own_ = static_cast<Own*>(own);
    problem = madvise(own, sizeof(Own), MADV_WIPEONFORK) == 0 ? open_ring(0, 0, kRing, hz)
                                                              : "samples need Linux 4.14 or later";
  }
  std::snprintf(why_not, sizeof why_not, "%s", problem.c_str());
  if (problem.empty()) hz_ = hz;
  else end_samples();
}

/// Opens a ring for a thread, 0 for this one. Returns the reason of a failure, or "".
std::string CodeSampler::open_ring(std::size_t i, int thread, std::size_t bytes, double hz) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  bytes = std::max(bytes, page);
  perf_event_attr about{};
  about.size = sizeof about;
  about.type = PERF_TYPE_SOFTWARE;
  about.config = PERF_COUNT_SW_TASK_CLOCK;
  about.sample_period = static_cast<std::uint64_t>(1e9 / hz);
  about.sample_type = PERF_SAMPLE_IP;
  about.exclude_kernel = 1;
  about.exclude_hv = 1;
  about.disabled = 1;
  // The ring keeps the event. A program that closes all files and opens others must not lose one of them later.
  const profiles::Descriptor event(
      static_cast<int>(syscall(SYS_perf_event_open, &about, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (event.get() < 0) return profiles::sampling_refused(errno, paranoid_level());
  const long pinned = pinned_kib();
  void* const ring = mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
  if (ring == MAP_FAILED) return profiles::sampling_no_ring(errno);
  own_->rings[i] = static_cast<perf_event_mmap_page*>(ring);
  rings_[i] = {0, bytes, thread, false};
  std::string problem;
  // Such memory is part of what the process may lock, which a network adapter may need.
  if (pinned_kib() > pinned && pinned >= 0) problem = profiles::sampling_no_ring(EPERM);
  else if (ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) problem = "the kernel does not start samples";
  if (!problem.empty()) close_ring(i);
  return problem;
}

void CodeSampler::close_ring(std::size_t i) {
  if (perf_event_mmap_page* const ring = std::exchange(own_->rings[i], nullptr))
    munmap(ring, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + rings_[i].bytes);
  rings_[i] = {};
}

void CodeSampler::end_samples() {
  leave_call();
  keep_interval(0);
  left_at_ = INT64_MAX;
  if (own_ == &none_) return;
  for (std::size_t i = 0; i < kRings; ++i)
    if (own_->rings[i]) close_ring(i);
  munmap(std::exchange(own_, &none_), sizeof(Own));
}

/// Calls take(address) for each sample in the ring, and empties it.
template <typename Take>
void CodeSampler::read_ring(std::size_t i, Take take) {
  perf_event_mmap_page* const ring = own_->rings[i];
  if (!ring) return;
  Ring& its = rings_[i];
  const std::uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
  const auto* const data = reinterpret_cast<const char*>(ring) + sysconf(_SC_PAGESIZE);
  const auto copy = [&](std::uint64_t from, void* to, std::size_t bytes) {  // a record may go over the end
    for (std::size_t k = 0; k < bytes; ++k) static_cast<char*>(to)[k] = data[(from + k) % its.bytes];
  };
  Nanoseconds cost = 0;
  while (its.tail < head) {
    perf_event_header record;
    copy(its.tail, &record, sizeof record);
    if (record.size < sizeof record) break;  // not what a kernel writes
    std::uint64_t values[2] = {};
    copy(its.tail + sizeof record, values, std::min(sizeof values, record.size - sizeof record));
    if (record.type == PERF_RECORD_SAMPLE) {
      cost += kSampleCost;
      take(values[0]);
    } else if (record.type == PERF_RECORD_LOST) {
      cost += static_cast<Nanoseconds>(values[1]) * kSampleCost;
      if (its.was_full) (i == 0 ? lost_ : others_.lost) += values[1];
      its.was_full = false;
    }
    its.tail += record.size;
  }
  its.tail = head;
  spent.add(profiles::CostOf::samples, cost);
  __atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
}

bool CodeSampler::others_have_more() const {
  for (std::size_t i = 1; i < kRings; ++i)
    if (has_more(i)) return true;
  return false;
}

void CodeSampler::take_samples(std::uint64_t next) {
  if (resting_) return drop_samples();
  const KeepErrno keep;
  forget_unloaded();
  for (std::size_t i = 0; i < kRings; ++i) {
    if (!own_->rings[i]) continue;
    // The kernel says with the next sample how many found no place.
    constexpr std::uint64_t kRecord = sizeof(perf_event_header) + sizeof(std::uint64_t);
    const bool full = own_->rings[i]->data_head - rings_[i].tail + 2 * kRecord > rings_[i].bytes;
    read_ring(i, [&](std::uint64_t address) { keep_sample(address, next, i > 0); });
    rings_[i].was_full = rings_[i].was_full || full;
  }
  look_for_threads();
}

void CodeSampler::keep_sample(std::uintptr_t address, std::uint64_t next, bool others) {
  if (address == 0) return;
  ++(others ? others_.taken : taken_);
  const Place place{address, next, 0, 1, others};
  Place* const end = samples_now_.data() + open_samples_;
  Place* at = std::find_if(samples_now_.data(), end, [&](const Place& one) { return one.is_like(place); });
  if (at != end) {
    ++at->samples;
    return;
  }
  if (open_samples_ == kOpen) keep_interval(0);
  samples_now_[open_samples_++] = place;
}

void CodeSampler::drop_samples() {
  for (std::size_t i = 0; i < kRings; ++i) read_ring(i, [](std::uint64_t) {});
}

void CodeSampler::leave_out_thread() { own_thread_.store(gettid(), std::memory_order_relaxed); }

/// After each take of samples, so as often as they come at most. No memory of the heap: a job that runs takes none.
void CodeSampler::look_for_threads() {
  if (others_.opened >= kMostOpened) return;
  const Spending work(profiles::CostOf::samples);
  struct stat about {};
  if (stat("/proc/self/task", &about) != 0) return;
  const bool changed = std::exchange(others_.links, about.st_nlink) != about.st_nlink;
  if (!changed && --others_.look_in > 0) return;
  others_.look_in = others_.pause = changed ? 1 : std::min(2 * others_.pause, kMostPause);
  std::array<int, 128> room;  // chosen: of more threads, the first ones have samples
  const std::span<const int> threads = list_threads(room);
  if (threads.empty()) return;
  for (std::size_t i = 1; i < kRings; ++i) {
    if (!own_->rings[i] || std::ranges::find(threads, rings_[i].thread) != threads.end()) continue;
    close_ring(i);
    --others_.open;
  }
  const auto computes = [&](int thread) {
    return thread != gettid() && thread != own_thread_.load(std::memory_order_relaxed) &&
           std::ranges::find(rings_, thread, &Ring::thread) == rings_.end() && processor_time(thread) * hz_ >= 1e9;
  };
  std::array<int, kOthers> more;
  std::size_t found = 0, beyond = 0;
  for (const int thread : threads) {
    if (!computes(thread)) continue;
    if (others_.open + found < kOthers) more[found++] = thread;
    else ++beyond;
  }
  if (beyond > 0)
    std::snprintf(others_why_not, sizeof others_why_not, "%zu other threads of a process have samples at most",
                  kOthers);
  for (std::size_t k = 0; k < found; ++k)
    if (const std::string problem = add_thread(more[k], found - k); !problem.empty() && processor_time(more[k]) > 0)
      std::snprintf(others_why_not, sizeof others_why_not, "%s", problem.c_str());
  own_->others = others_.open > 0;
}

/// `number`: of threads that are found, with this one. Returns the reason of a failure, or "".
std::string CodeSampler::add_thread(int thread, std::size_t number) {
  if (others_.hz == 0) others_.hz = std::min(hz_, others_.budget / static_cast<double>(number));
  if (others_.hz < std::min(kLeastHz, hz_) || (others_.open + 1) * others_.hz > others_.budget * 1.001)
    return "the budget has no room for samples of its other threads";
  if (++others_.opened > kMostOpened) return "its other threads end too soon for samples";
  const auto free = std::ranges::find(rings_.begin() + 1, rings_.end(), 0, &Ring::thread) - rings_.begin();
  std::string problem = open_ring(static_cast<std::size_t>(free), thread, kRingOfOthers, others_.hz);
  if (problem.empty()) others_.most = std::max(others_.most, ++others_.open);
  return problem;
}

void CodeSampler::add_stretch(Nanoseconds at, std::uint64_t to) {
  if (left_at_ == INT64_MAX || resting_) return;
  profiles::Stretch* const end = stretches_now_.data() + open_stretches_;
  const profiles::StretchKey key{from_, to, 0};
  profiles::Stretch* there =
      std::find_if(stretches_now_.data(), end, [&](const profiles::Stretch& one) { return one.key == key; });
  if (there == end) {
    if (open_stretches_ == kOpen) keep_interval(0);
    there = &stretches_now_[open_stretches_++];
    *there = {key, {}};
  }
  there->sums.merge({1, at - left_at_});
}

void CodeSampler::keep_interval(std::uint64_t collective) {
  const std::size_t samples = std::exchange(open_samples_, 0), stretches = std::exchange(open_stretches_, 0);
  for (std::size_t i = 0; i < samples; ++i) {
    samples_now_[i].collective = collective;
    keep_samples(samples_now_[i]);
  }
  for (std::size_t i = 0; i < stretches; ++i) {
    stretches_now_[i].key.collective = collective;
    keep_stretch(stretches_now_[i].key, stretches_now_[i].sums);
  }
}

void CodeSampler::keep_samples(const Place& more) {
  for (std::size_t i =
           core::mix64(more.address / kBlock ^ core::mix64(more.next + more.collective + more.others)) % kPlaces;
       ; i = (i + 1) % kPlaces) {
    Place& there = places_[i];
    if (there.address == 0) {
      if (used_places_ >= kPlaces * 3 / 4) break;
      ++used_places_;
      there = more;
      return;
    }
    if (!there.is_like(more)) continue;
    there.samples += more.samples;
    return;
  }
  placeless_[more.others] += more.samples;
}

void CodeSampler::keep_stretch(const profiles::StretchKey& key, const profiles::StretchSums& sums) {
  for (std::size_t i = core::mix64(key.from ^ core::mix64(key.to ^ core::mix64(key.collective))) % kStretches;;
       i = (i + 1) % kStretches) {
    profiles::Stretch& there = stretches_[i];
    if (there.sums.stretches == 0) {
      if (used_stretches_ >= kStretches * 3 / 4) return placeless_stretches_.merge(sums);
      ++used_stretches_;
      there.key = key;
    }
    if (there.key != key) continue;
    return there.sums.merge(sums);
  }
}

void CodeSampler::forget_unloaded() {
  if (const unsigned refreshed = sites_refresh(); refreshed == std::exchange(refreshed_, refreshed)) return;
  // Another library may be where the old one was.
  const auto forget = [](Place& place) {
    if (place.address > kBlock && !in_program(place.address)) place.address = 1;
  };
  std::ranges::for_each(places_, forget);
  for (std::size_t i = 0; i < open_samples_; ++i) forget(samples_now_[i]);
}

void CodeSampler::list_places(profiles::Contribution& out) const {
  std::map<std::uintptr_t, std::uint64_t> samples;
  for (const Place& place : places_)
    if (place.address > kBlock) samples[place.address] += place.samples;
  std::vector<std::uintptr_t> addresses;
  addresses.reserve(samples.size());
  for (const auto& [address, number] : samples) addresses.push_back(address);
  std::vector<profiles::CodePlace> code = places_of(addresses);
  std::vector<std::size_t> order(code.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return samples[addresses[i]]; });
  for (std::size_t i = kMostPlaces; i < order.size(); ++i) code[order[i]] = whole_function(code[order[i]]);
  std::map<std::uintptr_t, std::uint64_t> place_at;
  std::set<std::uint64_t> listed;
  std::set<std::uintptr_t> in_mpi;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char* const module = code[i].frame.module.c_str();
    if (is_mpi_library(module) || is_inside_mpi(module)) in_mpi.insert(addresses[i]);
    place_at[addresses[i]] = code[i].frame.site;
    for (const profiles::CodePlace& one : {code[i], whole_function(code[i])})
      if (listed.insert(one.frame.site).second) out.places.push_back(one);
  }
  std::map<profiles::CodeKey, std::uint64_t> sums;
  for (const Place& place : places_) {
    // Threads of MPI, and those that wait in it, are no code of the program.
    if (place.samples == 0 || (place.others && in_mpi.contains(place.address))) continue;
    const auto found = place_at.find(place.address);
    sums[{found == place_at.end() ? 0 : found->second, place.next, place.collective, place.others}] += place.samples;
  }
  for (const bool others : {false, true})
    if (placeless_[others] > 0) sums[{0, 0, 0, others}] += placeless_[others];
  for (const auto& [key, number] : sums) out.code.push_back({key, number});
}

void CodeSampler::list(profiles::Contribution& out, bool finished) {
  out.process.sampling = {hz_,        taken_,        lost_,        why_not,       others_.most,
                          others_.hz, others_.taken, others_.lost, others_why_not};
  out.stretches.clear();
  for (const profiles::Stretch& one : stretches_)
    if (one.sums.stretches > 0) out.stretches.push_back(one);
  if (placeless_stretches_.stretches > 0) out.stretches.push_back({{}, placeless_stretches_});
  // Names take some ms. The snapshots of a killed job have half of its samples or more.
  if (!finished && taken_ < std::max<std::uint64_t>(2 * listed_, kFewest)) return;
  listed_ = taken_;
  out.code.clear();
  out.places.clear();
  list_places(out);
}

}  // namespace latecomer::shim
