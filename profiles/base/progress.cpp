// SPDX-License-Identifier: BSD-3-Clause
// Prints progress, and handles Ctrl-C for commands that can print partial results.
#include "profiles/base/progress.hpp"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

namespace latecomer::profiles {
namespace {

// A longer time lets a command seem to hang. A shorter one fills the terminal: a minute takes 30 lines now.
constexpr double kLineEvery_s = 2;
// Read by worker threads, too. A lock-free atomic may be written in a signal handler.
std::atomic<bool> caught{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void Progress::add_option(CLI::App& command, Patience& patience) {
  command
      .add_option("--patience", patience,
                  "Seconds between lines of progress on stderr. Default: 2 if stderr is a terminal, else no progress.")
      ->check(CLI::NonNegativeNumber);
}

Progress::Progress(std::string what, std::int64_t total, Patience patience)
    : what_(std::move(what)), total_(total), asked_(patience.has_value()) {
  if (!patience && !isatty(STDERR_FILENO)) return;
  // At most 100 lines per second: --patience 0 must not keep a core busy.
  every_ = std::chrono::duration<double>(std::max(patience.value_or(kLineEvery_s), 0.01));
  thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Progress::begin(std::string step) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  step_ = std::move(step);
}

void Progress::show() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, every_, [this] { return over_; })) std::fprintf(stderr, "%s\n", line().c_str());
  step_.clear();
  if (asked_) std::fprintf(stderr, "%s\n", line().c_str());
}

std::string Progress::line() const {
  std::string out = "latecomer: " + what_ + ": " + std::to_string(done_.load(std::memory_order_relaxed));
  if (total_ > 0) out += " of " + std::to_string(total_);
  if (!step_.empty()) out += ", now " + step_;
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - since_).count();
  return out + " (" + std::to_string(seconds) + " s)";
}

void take_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { caught.store(true, std::memory_order_relaxed); };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return caught.load(std::memory_order_relaxed); }

}  // namespace latecomer::profiles
