// SPDX-License-Identifier: BSD-3-Clause
// The state of the job in this process: the private communicator, the policy, the clocks, the state of each
// communicator of the program, and what goes into the profile. This file holds data: shim/dispatch and shim/job act on
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/learning/learner.hpp"
#include "core/policy/policy.hpp"
#include "profiles/decisions.hpp"
#include "profiles/record.hpp"
#include "profiles/spool.hpp"
#include "shim/environment.hpp"
#include "shim/mpi.hpp"
#include "shim/state/clocks.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {

inline constexpr int kWorldContext = 0;
/// What is written for people or for after a kill takes 1 part in so many of the time: the next is not made before.
inline constexpr Nanoseconds kPauseAfterWriting = 2000;

struct Executor;    // shim/dispatch/executor/executor.hpp
struct Leadership;  // shim/dispatch/exchange/exchange.hpp
struct Watched;     // shim/dispatch/engine/engine.hpp

/// One communicator of the program, on one rank. Lives in an attribute with a null copy function.
struct CommState {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0, rank = 0;
  bool broken = false;         ///< an operation returned an error here: no more logs to or for others
  bool refused = false;        ///< LATECOMER_CHECK found ranks at odds: nothing is dispatched any more
  bool foreign = false;        ///< inter-communicator or processes of another world: observed only
  std::int32_t context = -1;   ///< -1: not agreed; kContexts: none was free
  std::uint64_t identity = 0;  ///< agreed, or the hash of members and order of creation
  core::Sequence sequence;
  std::uint64_t logged_from = 0;  ///< number of log[0]
  Nanoseconds waited = 0;         ///< at boundaries for the leader, since the last log
  bool resting = false;           ///< this epoch is not logged, on any rank; there is no plan
  std::uint32_t log_missed = 0;   ///< calls not logged because the log was full
  std::vector<profiles::CallRecord> log;
  std::vector<Rank> world;  ///< comm rank -> world rank
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Leadership> leadership;  ///< on comm rank 0, once identified
  core::PlanInForce plan;
  std::unique_ptr<core::Learner::Announcement> heard;  ///< an announcement that came before it was due
  std::shared_ptr<Watched> watched;                    ///< what the background engine knows of it
  CommState *next = nullptr, *previous = nullptr;

  bool identified() const { return context >= 0; }
  bool usable() const { return context >= 0 && context < kContexts; }
};

struct Job {
  bool together = false;  ///< the roll call confirmed every rank; `comm` exists
  bool threads = false;   ///< MPI_THREAD_MULTIPLE, or not known
  bool sessions = false;  ///< a session was begun before MPI_Init
  int rank = 0, size = 1;
  MPI_Comm comm = MPI_COMM_NULL;         ///< private, over MPI_COMM_WORLD, same ranks
  MPI_Comm engine_comm = MPI_COMM_NULL;  ///< the same for the background engine, if it runs
  MPI_Group world_group = MPI_GROUP_NULL;
  int keyval = MPI_KEYVAL_INVALID;
  int pid = 0;  ///< of the process that started MPI: a forked child is not it
  Environment environment;
  core::Policy policy;
  std::string output;         ///< absolute path of the profile
  bool announces = false;     ///< mode apply, and some rule wants plans
  bool rooted_waits = false;  ///< rooted calls may ask for boundaries that wait (core::waits_for_leader)
  bool checks = false;        ///< LATECOMER_CHECK on rank 0
  profiles::History history;  ///< on rank 0
  Clocks clocks;
  Nanoseconds started = 0;
  bool courteous = false;          ///< more ranks than cores somewhere in the job
  bool nonblocking_waits = false;  ///< native blocking collectives wait courteously in their non-blocking form

  std::mutex mutex;  ///< everything below, where `threads`
  CommState* states = nullptr;
  CommState* world_state = nullptr;
  profiles::LocalQueue queue;   ///< calls not yet in mine.local
  profiles::Contribution mine;  ///< what goes into the profile: local sites, patterns led here, retained logs
  std::vector<std::string> past_decisions;  ///< of communicators that are gone
  std::size_t retained_records = 0, retained_missed = 0;
  profiles::Spool spool;
  bool profile_gathered = false;           ///< this rank's contribution is on its way to the profile
  std::vector<profiles::LiveLog> live;     ///< work space of a snapshot
  std::atomic<Nanoseconds> spool_next{0};  ///< not before: what the last write cost many times over has to pass
  std::atomic<Nanoseconds> spool_late{0};  ///< from then on without waiting for an epoch
  std::atomic<bool> edge_said{false};      ///< since the last call that an algorithm may serve
  bool may_idle = false;  ///< nothing has to be known of a call in an epoch that rests: no native call waits in another
                          ///< form, no rule decides without a plan
  bool decides = false;   ///< what an operation reduces matters: some native call may be replaced
  std::map<std::uint64_t, std::uint32_t> creations;  ///< communicators seen per group hash
  std::atomic<Nanoseconds> learning{0};              ///< spent on announcements that modelled nothing
  std::atomic<std::uint32_t> identities{0};          ///< given out as a leader; several threads may lead
  std::vector<std::uint64_t> used_contexts;          ///< bit set
  bool offering = false;                             ///< an agreement on a context has this process's under offer
  std::set<std::uint64_t> agreeing;                  ///< numbers of the communicators that want one, where `threads`
  std::mutex context_mutex;                          ///< the three above; never held while another rank is waited for

  /// Keeps one element of the profile's `plans`. The caller holds the lock.
  void keep_plan(std::string text);
};

/// True between the end of MPI_Init and our teardown, in programs that are to be observed.
extern std::atomic<bool> active;
extern Job* const job_instance;  // never destroyed: callbacks may come after exit handlers
inline Job& job() { return *job_instance; }

/// Locks job().mutex if several threads may be inside MPI.
class JobLock {
 public:
  JobLock() : lock_(job().mutex, std::defer_lock) {
    if (job().threads) lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Two steps in a job's life that a call may set off. shim/job defines them.

/// An intercepted call came before any start that we saw (another tool keeps MPI_Init to itself): observes
/// locally from here on. False if there is nothing to observe.
bool start_late();

/// Writes what was observed so far to disk, if enough time has passed since the last write.
/// `due`: an epoch ended; else only after five seconds.
void keep_on_disk(bool due, Nanoseconds at);

}  // namespace latecomer::shim
