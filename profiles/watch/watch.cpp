// SPDX-License-Identifier: BSD-3-Clause
// Compares looks at the ranks, and writes the file of the last state.
#include "profiles/watch/watch.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "profiles/files/claim.hpp"
#include "profiles/files/shared_folder.hpp"
#include "profiles/watch/live_copies.hpp"

namespace latecomer::profiles {

using analysis::kStandsStill_ns;
using Clock = std::chrono::steady_clock;

namespace {

/// Of this thread.
std::chrono::nanoseconds processor_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace

void Watch::look(std::vector<LiveRank> seen) {
  // Chosen: a launcher that ends the others when a rank is gone does so within this time, on a busy host too.
  constexpr std::int64_t kMissing_ns = 10'000'000'000;
  const bool any_lives = std::ranges::any_of(seen, [](const LiveRank& r) { return r.state != 'X'; });
  std::int64_t now = 0;
  for (const LiveRank& one : seen) now = std::max(now, one.looked);
  bool breaks_up = ends_;
  if (any_lives)
    for (const LiveRank& one : seen)
      if (one.state == 'X' && now - gone_.try_emplace(one.rank, now).first->second < kMissing_ns) breaks_up = true;
  for (LiveRank& one : seen) {
    const auto was = std::ranges::find_if(ranks_, [&](const LiveRank& r) { return r.same_process(one); });
    const bool known = was != ranks_.end(), same = known && was->same_place(one);
    if (one.state != 'X') {
      one.watched = same ? std::max<std::int64_t>(0, was->watched) + one.looked - was->looked : 0;
      // A process that is being killed runs. So a state counts once a later look has found the job whole.
      if (same) one.alive = breaks_up ? was->alive : was->state;
    } else if (same) {
      one.alive = any_lives && !breaks_up ? 'X' : was->alive;
      one.looked = was->looked;
      one.watched = was->watched;
    } else if (known) {
      one.watched = 0;  // it has moved since it was last seen
    }
    one.moves = one.watched < kStandsStill_ns;
  }
  ranks_ = std::move(seen);
}

bool Watch::lives() const {
  return std::ranges::any_of(ranks_, [](const LiveRank& r) { return r.state != 'X'; });
}

bool Watch::stands_still(std::int64_t for_ns) const {
  return std::ranges::any_of(ranks_, [&](const LiveRank& r) { return r.waits() && r.watched >= for_ns; });
}

void JobWatch::start() noexcept try {
  thread_ = std::thread([this] { run(); });
} catch (const std::system_error&) {
  // Without a thread, the job runs unwatched. ended() still takes a look.
}

void JobWatch::told_to_end() {
  {
    const std::lock_guard lock(mutex_);
    told_ = true;
  }
  changed_.notify_one();
}

void JobWatch::ended(bool whole, bool left) {
  stop();
  look();
  if (whole) remove();
  else keep(kStandsStill_ns, left);
}

void JobWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void JobWatch::run() {
  constexpr std::chrono::nanoseconds kLeast = std::chrono::seconds(1), kMost = std::chrono::seconds(10);
  constexpr int kShare = 1000;  // a look may take 0.1% of a core
  std::int64_t for_ns = still_ns_;
  std::chrono::nanoseconds pause = kLeast;
  look();  // reads the files of killed jobs once, which is no part of the cost of later looks
  for (std::unique_lock lock(mutex_);;) {
    changed_.wait_for(lock, pause, [&] { return told_ || stop_; });
    if (stop_) return;
    if (told_) {
      told_ = false;
      for_ns = kStandsStill_ns;
      watch_.ends();
    }
    lock.unlock();
    const std::chrono::nanoseconds before = processor_time();
    look();
    pause = std::clamp(kShare * (processor_time() - before), kLeast, kMost);
    keep(for_ns, false);
    lock.lock();
  }
}

void JobWatch::look() noexcept try {
  std::vector<LiveRank> seen = files_.look();
  if (!seen.empty()) watch_.look(std::move(seen));
} catch (...) {  // no memory: the next look may have some
}

void JobWatch::keep(std::int64_t for_ns, bool moves_too) noexcept try {
  const std::vector<LiveRank>& ranks = watch_.ranks();
  if (ranks.empty()) return;
  if (!watch_.stands_still(for_ns) && !moves_too) return remove();
  std::vector<std::uint64_t> says;
  for (const LiveRank& r : ranks)
    for (const std::uint64_t one : {static_cast<std::uint64_t>(r.rank), r.communicator, r.n, std::uint64_t{r.moves},
                                    static_cast<std::uint64_t>(r.message), std::uint64_t{r.alive == 'X'}})
      says.push_back(one);
  const Clock::time_point now = Clock::now();
  if (!path_.empty() && says == says_ && now < next_) return;
  const std::string folder = ranks.front().output + ".parts", path = folder + "/" + last_state_name(ranks.front().host);
  // The folder of a job that was told to write nothing does not exist.
  if (!folder_state(folder).of(job_) || !write_live_copy(path, ranks)) return;
  if (path_.empty() || says != says_) since_ = now - std::chrono::nanoseconds(for_ns);
  next_ = now + (now - since_);
  path_ = path;
  says_ = std::move(says);
} catch (...) {
}

void JobWatch::remove() {
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
}

}  // namespace latecomer::profiles
