// SPDX-License-Identifier: BSD-3-Clause
// Progress of a long command on stderr: the activity, the number of steps done and the elapsed time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace CLI {
class App;
}

namespace latecomer::profiles {

/// Prints one line every few seconds during its lifetime. A thread of its own prints, so a long step shows, too. Prints
/// nothing unless stderr is a terminal or the user gave --patience, which also prints a final line.
class Progress {
 public:
  /// The value of --patience in seconds. Without it: every two seconds, on a terminal only.
  using Patience = std::optional<double>;
  static void add_option(CLI::App& command, Patience& patience);

  /// `what` is the activity, such as "verifying"; `total` is the number of steps, or 0 if unknown.
  Progress(std::string what, std::int64_t total, Patience patience);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Names the current step, such as "prr on 12 ranks".
  void begin(std::string step);
  /// Thread-safe.
  void done(std::int64_t steps = 1) { done_.fetch_add(steps, std::memory_order_relaxed); }

 private:
  void show();

  std::string line() const;  // call with mutex_ held

  const std::string what_;
  const std::int64_t total_;
  const bool asked_;
  std::chrono::duration<double> every_{};
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  std::string step_;    // guarded by mutex_
  bool over_ = false;   // guarded by mutex_
  std::thread thread_;  // not started if nothing is printed
};

/// take_interrupt() handles the next Ctrl-C, and interrupted() says whether it came. A second Ctrl-C ends the process.
void take_interrupt();
bool interrupted();

}  // namespace latecomer::profiles
