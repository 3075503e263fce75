// SPDX-License-Identifier: BSD-3-Clause
// Progress of a long command, on stderr: what it does, how much of it is done, and for how long it has run.
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

namespace latecomer::cli {

/// Shows one line every few seconds while it lives, from a thread of its own, so that one long step is shown, too.
/// It shows nothing unless stderr is a terminal or the user asked for it with --patience, which also gets a last line.
class Progress {
 public:
  /// What --patience asked for, in seconds; nothing given: every two seconds, on a terminal only.
  using Patience = std::optional<double>;
  static void add_option(CLI::App& command, Patience& patience);

  /// `what` is the activity, such as "verifying"; `total` the number of steps, 0 if it is not known.
  Progress(std::string what, std::int64_t total, Patience patience);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Names the step that begins, such as "prr on 12 ranks".
  void begin(std::string step);
  /// Thread-safe.
  void done(std::int64_t steps = 1) { done_.fetch_add(steps, std::memory_order_relaxed); }

 private:
  void show();

  std::string line() const;  // with mutex_ held

  const std::string what_;
  const std::int64_t total_;
  const bool asked_;
  std::chrono::duration<double> every_{};
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  std::string step_;    // under mutex_
  bool over_ = false;   // under mutex_
  std::thread thread_;  // not started where nothing is shown
};

/// Whether the user pressed Ctrl-C since `take_interrupt` was called. A second Ctrl-C ends the process at once.
void take_interrupt();
bool interrupted();

}  // namespace latecomer::cli
