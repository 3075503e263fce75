// SPDX-License-Identifier: BSD-3-Clause
// Opens the ring of samples, and keeps the tables of code and of stretches.
#include "shim/causes/code_samples.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>
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
#include <utility>

#include "core/base/file.hpp"
#include "profiles/base/descriptor.hpp"
#include "profiles/base/sampling_refused.hpp"
#include "shim/guard.hpp"
#include "shim/sites/functions.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/rules.hpp"

namespace latecomer::shim {

constinit CodeSampler code_sampler;
constinit CodeSampler::Own CodeSampler::none_{};

namespace {

/// Why there are no samples. No text of the heap: destructors of the program may come before the end of the job.
constinit char why_not[160] = "";

/// What a sample takes from the thread. Measured on a virtual machine: 50 to 70 us. Our clock cannot see it.
constexpr Nanoseconds kSampleCost = 70'000;
/// The part of the policy's budget for samples. Chosen: logs of collectives have most of it.
constexpr double kForSamples = 0.25;
/// Derived: 64 KiB hold 4,096 samples of 16 bytes, 215 s of computing at 19 Hz.
constexpr std::size_t kRing = 64 << 10;

/// Memory of this process that is locked for others, such as a network adapter or this ring, beyond what the kernel
/// grants each user for rings, in KiB. -1: not known.
long pinned_kib() {
  const auto status = core::read_file("/proc/self/status");
  const std::size_t at = status ? status->find("\nVmPin:") : std::string::npos;
  return at == std::string::npos ? -1 : std::strtol(status->c_str() + at + 7, nullptr, 10);
}

long paranoid_level() {
  const auto text = core::read_file("/proc/sys/kernel/perf_event_paranoid");
  return text ? std::strtol(text->c_str(), nullptr, 10) : -2;
}

}  // namespace

void CodeSampler::begin_samples(double hz) {
  const core::Policy& policy = job_rules().policy;
  if (policy.mode == core::Mode::observe && policy.budget)
    hz = std::min(hz, kForSamples * *policy.budget * 1e9 / static_cast<double>(kSampleCost));
  hz_ = 0;
  taken_ = lost_ = 0;
  if (hz <= 0) return;
  const std::string problem = open_ring(hz);
  std::snprintf(why_not, sizeof why_not, "%s", problem.c_str());
  if (problem.empty()) hz_ = hz;
  else end_samples();
}

/// Returns the reason of a failure, or "".
std::string CodeSampler::open_ring(double hz) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
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
      static_cast<int>(syscall(SYS_perf_event_open, &about, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (event.get() < 0) return profiles::sampling_refused(errno, paranoid_level());
  void* const own = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return "there is no memory for samples";
  own_ = static_cast<Own*>(own);
  if (madvise(own, page, MADV_WIPEONFORK) != 0) return "samples need Linux 4.14 or later";
  const long pinned = pinned_kib();
  void* const ring = mmap(nullptr, page + kRing, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
  if (ring == MAP_FAILED) return profiles::sampling_no_ring(errno);
  own_->ring = static_cast<perf_event_mmap_page*>(ring);
  // Such memory is part of what the process may lock, which a network adapter may need.
  if (pinned_kib() > pinned && pinned >= 0) return profiles::sampling_no_ring(EPERM);
  return ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) == 0 ? "" : "the kernel does not start samples";
}

void CodeSampler::end_samples() {
  leave_call();
  keep_interval(0);
  left_at_ = INT64_MAX;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (perf_event_mmap_page* const ring = own_ == &none_ ? nullptr : std::exchange(own_->ring, nullptr))
    munmap(ring, page + kRing);
  if (own_ != &none_) munmap(std::exchange(own_, &none_), page);
}

/// Calls take(address) for each sample in the ring, and empties it.
template <typename Take>
void CodeSampler::read_ring(Take take) {
  perf_event_mmap_page* const ring = own_->ring;
  const std::uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
  const auto* const data = reinterpret_cast<const char*>(ring) + sysconf(_SC_PAGESIZE);
  const auto copy = [&](std::uint64_t from, void* to, std::size_t bytes) {  // a record may go over the end
    for (std::size_t i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = data[(from + i) % kRing];
  };
  Nanoseconds cost = 0;
  while (tail_ < head) {
    perf_event_header record;
    copy(tail_, &record, sizeof record);
    if (record.size < sizeof record) break;  // not what a kernel writes
    std::uint64_t values[2] = {};
    copy(tail_ + sizeof record, values, std::min(sizeof values, record.size - sizeof record));
    if (record.type == PERF_RECORD_SAMPLE) {
      cost += kSampleCost;
      take(values[0]);
    } else if (record.type == PERF_RECORD_LOST) {
      cost += static_cast<Nanoseconds>(values[1]) * kSampleCost;
      if (was_full_) lost_ += values[1];
      was_full_ = false;
    }
    tail_ += record.size;
  }
  tail_ = head;
  spent.add(profiles::CostOf::samples, cost);
  __atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
}

void CodeSampler::take_samples(std::uint64_t next) {
  if (resting_) return drop_samples();
  const KeepErrno keep;
  forget_unloaded();
  // The kernel says with the next sample how many found no place.
  constexpr std::uint64_t kRecord = sizeof(perf_event_header) + sizeof(std::uint64_t);
  const bool full = own_->ring->data_head - tail_ + 2 * kRecord > kRing;
  read_ring([&](std::uint64_t address) {
    if (address == 0) return;
    ++taken_;
    Place* const end = samples_now_.data() + open_samples_;
    Place* at = std::find_if(samples_now_.data(), end, [&](const Place& one) {
      return one.address / kBlock == address / kBlock && one.next == next;
    });
    if (at == end) {
      if (open_samples_ == kOpen) keep_interval(0);
      at = &samples_now_[open_samples_++];
      *at = {address, next, 0, 0};
    }
    ++at->samples;
  });
  was_full_ = was_full_ || full;
}

void CodeSampler::drop_samples() {
  read_ring([](std::uint64_t) {});
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
  const std::uint64_t block = more.address / kBlock;
  for (std::size_t i = core::mix64(block ^ core::mix64(more.next + more.collective)) % kPlaces;;
       i = (i + 1) % kPlaces) {
    Place& there = places_[i];
    if (there.address == 0) {
      if (used_places_ >= kPlaces * 3 / 4) break;
      ++used_places_;
      there = {more.address, more.next, more.collective, 0};
    }
    if (there.address / kBlock != block || there.next != more.next || there.collective != more.collective) continue;
    there.samples += more.samples;
    return;
  }
  placeless_ += more.samples;
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
  for (std::size_t i = 0; i < code.size(); ++i) {
    place_at[addresses[i]] = code[i].frame.site;
    for (const profiles::CodePlace& one : {code[i], whole_function(code[i])})
      if (listed.insert(one.frame.site).second) out.places.push_back(one);
  }
  std::map<profiles::CodeKey, std::uint64_t> sums;
  for (const Place& place : places_) {
    if (place.samples == 0) continue;
    const auto found = place_at.find(place.address);
    sums[{found == place_at.end() ? 0 : found->second, place.next, place.collective}] += place.samples;
  }
  if (placeless_ > 0) sums[{}] += placeless_;
  for (const auto& [key, number] : sums) out.code.push_back({key, number});
}

void CodeSampler::list(profiles::Contribution& out, bool finished) const {
  out.process.sampling = {hz_, taken_, lost_, why_not};
  out.stretches.clear();
  for (const profiles::Stretch& one : stretches_)
    if (one.sums.stretches > 0) out.stretches.push_back(one);
  if (placeless_stretches_.stretches > 0) out.stretches.push_back({{}, placeless_stretches_});
  if (!finished) return;
  out.code.clear();
  out.places.clear();
  list_places(out);
}

}  // namespace latecomer::shim
