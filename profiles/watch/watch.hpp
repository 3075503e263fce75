// SPDX-License-Identifier: BSD-3-Clause
// Watches the ranks of a job on this host from outside, and keeps the places at which they stood still when the job
// ended. This file must not judge the cause.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "profiles/watch/live_ranks.hpp"

namespace latecomer::profiles {

/// Looks at the ranks repeatedly, and measures the time of each rank at its present place.
class Watch {
 public:
  /// `seen`: the ranks at this moment. Once all are gone, the state is that of the last look at which one lived.
  void look(std::vector<LiveRank> seen);
  /// The job was told to end, so a rank that ends from now on is not missing.
  void ends() { ends_ = true; }
  const std::vector<LiveRank>& ranks() const { return ranks_; }
  bool lives() const;
  /// Whether a rank has waited in one place for this time.
  bool stands_still(std::int64_t for_ns) const;

 private:
  std::vector<LiveRank> ranks_;
  std::map<int, std::int64_t> gone_;  ///< by rank: when a look first found it gone while others lived
  bool ends_ = false;
};

/// Watches a job that this process has started. It looks once a second, or down to every 10 s so that looking takes
/// 0.1% of a core. It writes last_state_name() when ranks stand still, again when anything changes or when
/// the time of the standstill has doubled, and removes it when they move. A thread of this process does that, so that a
/// file system that does not answer keeps no signal from the launcher.
class JobWatch {
 public:
  /// `job`: LiveRank::job. `still_s`: how long a rank waits in one place until it stands still.
  JobWatch(std::uint64_t job, double still_s)
      : job_(job), files_(job), still_ns_(static_cast<std::int64_t>(1e9 * still_s)) {}
  ~JobWatch() { stop(); }
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  /// Call this after the launcher was forked, with the signals blocked that this process waits for.
  void start() noexcept;
  /// The job was told to end, so this may be the last look.
  void told_to_end();
  /// The job has ended. `whole`: with a profile, so no file stays. `left`: with snapshots, so the last state stays
  /// beside them, even if the ranks moved.
  void ended(bool whole, bool left);

 private:
  void run();
  void stop();
  void look() noexcept;
  /// Writes the file if a rank has stood still for this time, or in any case. Otherwise removes it.
  void keep(std::int64_t for_ns, bool moves_too) noexcept;
  void remove();

  const std::uint64_t job_;
  RanksOfJob files_;
  const std::int64_t still_ns_;
  Watch watch_;
  std::string path_;                                    ///< of the file that is on disk, or ""
  std::vector<std::uint64_t> says_;                     ///< where the ranks stand in it
  std::chrono::steady_clock::time_point since_, next_;  ///< `next_`: when it is written again without a change
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace latecomer::profiles
