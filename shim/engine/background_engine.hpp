// SPDX-License-Identifier: BSD-3-Clause
// The engine as a class: its thread, its runs and their locks. For the files of this folder. Other folders include
// engine.hpp.
#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "shim/clock.hpp"
#include "shim/engine/engine.hpp"
#include "shim/engine/notices.hpp"

namespace latecomer::shim {

class BackgroundEngine {
 public:
  // life.cpp

  /// Starts the thread, which sends and receives nothing before begin_receiving(). Throws if the system grants no
  /// thread.
  BackgroundEngine(MPI_Comm comm, int ranks, core::Bytes bound);
  /// Ends the thread of an engine that has not begun, or has stopped.
  ~BackgroundEngine() { end_thread(); }
  /// All ranks have an engine: receives notices from now on.
  void begin_receiving() { notices_.expect_notice(); }
  void stop();
  /// At an exit without MPI_Finalize. A signal handler may call it at any point, so it takes no lock. It waits at most
  /// one second, then detaches the thread.
  void halt();

  // process.cpp

  void add_communicator(std::shared_ptr<Watched> watched);
  void remove_communicator(const Watched& watched);
  void set_plan(Watched& watched, const core::Plan& plan, std::uint64_t hash);
  void predict_arrival(double fraction, Nanoseconds at);
  std::optional<OwnPattern> take_pattern(const Watched& watched, int planned, Nanoseconds arrival);
  void greet_ranks(std::span<const Rank> world);
  void begin_iteration(Nanoseconds at) { iteration_began_.store(at, std::memory_order_relaxed); }
  EngineFigures figures();

  // runs.cpp

  int run_call(const std::shared_ptr<Watched>& watched, std::uint64_t n, const ScheduleKey& key,
               const Operands& operands, const OwnPattern* own, int failure);

 private:
  struct Run final : Herald {
    BackgroundEngine* engine = nullptr;
    std::shared_ptr<Watched> watched;
    std::uint64_t n = 0, plan_hash = 0;
    ScheduleKey key;
    std::shared_ptr<Compiled> program;
    Running running;
    std::vector<char> scratch;
    std::vector<char> told;  // [rank]
    bool stepped = false;    // the engine's thread is at it, without the lock
    bool left = false;       // the process has been in the call and gone
    bool early = false;      // begun before it arrived

    core::Bytes scratch_bytes() const { return static_cast<core::Bytes>(program->scratch * key.element_bytes); }
    void before_message(Rank peer) override {
      char& known = told[static_cast<std::size_t>(peer)];
      if (!known) {
        known = 1;
        engine->send_notice(*this, peer);
      }
    }
  };
  struct Kept {
    ScheduleKey key;
    std::uint64_t identity = 0, plan_hash = 0;
    std::shared_ptr<Compiled> program;  // none while a run has it
  };
  /// The pattern in the key of a schedule that runs on a pattern of its call alone.
  static constexpr int kOwn = -2;

  /// Releases a lock while a function runs.
  class Unlocked {
   public:
    explicit Unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) {}
    template <typename Function>
    void run(Function function) {
      lock_.unlock();
      function();
      lock_.lock();
    }

   private:
    std::unique_lock<std::mutex>& lock_;
  };

  // life.cpp

  void end_thread();

  /// Receives every notice that is on its way, because UCX warns of messages that were never received. The last one is
  /// from this rank: it completes the pending receive, so nothing is cancelled.
  void take_last_notices();

  // process.cpp

  /// Under the lock: makes the thread look at once.
  void wake_thread() {
    used_ = kicked_ = true;
    wake_.notify_one();
  }
  static std::span<const Nanoseconds> offsets_of(const core::Plan& plan, int pattern) {
    if (pattern < 0) return {};
    return plan.patterns[static_cast<std::size_t>(pattern)];
  }

  // runs.cpp

  /// The run of call n as the engine left it, or a new one. From here on the engine leaves call n alone.
  std::unique_ptr<Run> claim_run(const std::shared_ptr<Watched>& watched, std::uint64_t n, const ScheduleKey& key,
                                 const OwnPattern* own, bool scratch);
  /// Under the lock. `plan_hash`: of the plan that has the key's pattern; for a pattern of this call's own, its number.
  /// `scratch`: the run needs memory.
  std::unique_ptr<Run> make_run(const std::shared_ptr<Watched>& watched, std::uint64_t n, const ScheduleKey& key,
                                const core::Plan* plan, std::uint64_t plan_hash, const core::Pattern* own,
                                bool scratch = true);
  /// Under the lock.
  void recycle_run(std::unique_ptr<Run> run);
  /// Under the lock: keeps the run's program for a later run of the same call.
  void keep_program(Run& run);
  void send_notice(const Run& run, Rank peer);

  // thread.cpp

  /// Takes a notice. Returns false if none has arrived. Called by the engine's thread, or by another thread after it
  /// has ended. Under the lock, but releases it during calls of MPI: where many threads use MPI, they may wait long for
  /// MPI's own lock.
  bool take_notice(std::unique_lock<std::mutex>& lock);
  /// Under the lock: begins the runs of all notices that can start.
  void begin_pending();
  bool can_start(const std::shared_ptr<Watched>& watched, const Notice& notice);
  void begin_run_early(const std::shared_ptr<Watched>& watched, const Notice& notice);
  void run_thread();

  MPI_Comm comm_;
  const core::Bytes bound_;
  std::mutex mutex_;
  std::condition_variable wake_, claimable_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  bool used_ = false, kicked_ = false;
  std::map<std::uint64_t, std::shared_ptr<Watched>> watched_;
  std::list<std::unique_ptr<Run>> runs_;  // begun early and not claimed, or left behind
  std::vector<std::unique_ptr<Run>> idle_;
  std::vector<Kept> kept_;
  std::size_t next_victim_ = 0;
  std::vector<Notice> pending_;
  core::Bytes held_ = 0;
  Nanoseconds last_claim_ = 0;
  std::atomic<Nanoseconds> iteration_began_{0};
  std::atomic<bool> said_{false};  // since the last call with a pattern of its own
  Notices notices_;
  Edges edges_;
  int received_ = 0;
  EngineFigures figures_;
};

/// From start_engine to stop_engine.
extern BackgroundEngine* engine;

}  // namespace latecomer::shim
