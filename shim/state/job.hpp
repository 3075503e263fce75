// SPDX-License-Identifier: BSD-3-Clause
// The state of the job in this process: the private communicator, the policy, the clocks, the state of each
// communicator of the program, and the contents of the profile. This file holds data. shim/call and shim/job act on
// it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agreement/member.hpp"
#include "core/agreement/tree.hpp"
#include "core/learning/learner.hpp"
#include "core/policy/policy.hpp"
#include "profiles/format/decisions.hpp"
#include "profiles/format/history.hpp"
#include "profiles/record/record.hpp"
#include "profiles/record/spool.hpp"
#include "shim/environment.hpp"
#include "shim/mpi/api.hpp"
#include "shim/state/clocks.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {

inline constexpr int kWorldContext = 0;
/// The budget of texts is 0.05% of the time: a pause of 2,000 times the duration of a write follows it.
inline constexpr Nanoseconds kPauseAfterWriting = 2000;

struct Executor;    // shim/executor/executor.hpp
struct Leadership;  // shim/exchange/exchange.hpp
struct Branch;      // shim/exchange/branch.hpp
struct Watched;     // shim/engine/engine.hpp

/// A communicator of the program on one rank. An attribute with a null copy function holds it.
struct CommState {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0, rank = 0;  ///< of an inter-communicator the size of both groups together
  bool broken = false;     ///< no memory for the exchange: exchange no more logs, and as the leader learn no more
  bool refused = false;    ///< LATECOMER_CHECK found a disagreement of ranks: dispatch nothing more
  bool foreign = false;    ///< inter-communicator, or processes of another world: only observe
  profiles::Tally share = profiles::Tally::part;  ///< of this rank in its calls
  std::int32_t context = -1;                      ///< -1: not agreed; kContexts: none was free
  std::uint64_t identity = 0;                     ///< agreed, or the hash of members and order of creation
  core::Member member;                            ///< its part in the agreement
  std::uint64_t logged_from = 0;                  ///< call number of log[0]
  Nanoseconds waited = 0;                         ///< time at boundaries waiting for the leader, since the last log
  std::uint32_t log_missed = 0;                   ///< calls that did not fit into the log
  std::vector<profiles::CallRecord> log, spare;   ///< `spare`: memory of the log of the epoch before
  std::vector<Rank> world;                        ///< [comm rank]: world rank
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Leadership> leadership;  ///< on comm rank 0, once the communicator is identified
  Branch* branch = nullptr;                ///< its node of the tree, once it is identified; branch.hpp owns it
  core::TreePlace place;                   ///< of this rank in the tree
  std::uint64_t look_at = UINT64_MAX;      ///< number of the call after which it looks for messages of the tree
  std::uint32_t look_distance = 0;         ///< calls from one look to the next
  std::shared_ptr<Watched> watched;        ///< the communicator's data in the background engine
  profiles::CallSample* sample = nullptr;  ///< of its calls; nullptr: none
  CommState *next = nullptr, *previous = nullptr;

  bool identified() const { return context >= 0; }
  bool usable() const { return context >= 0 && context < kContexts; }
};

struct Job {
  bool together = false;  ///< the roll call confirmed every rank; `comm` exists
  bool threads = false;   ///< MPI_THREAD_MULTIPLE, or unknown
  bool sessions = false;  ///< a session began before MPI_Init
  int rank = 0, size = 1;
  MPI_Comm comm = MPI_COMM_NULL;         ///< private, with the ranks of MPI_COMM_WORLD
  MPI_Comm engine_comm = MPI_COMM_NULL;  ///< the same for the background engine, if it runs
  MPI_Group world_group = MPI_GROUP_NULL;
  std::vector<int> hosts;  ///< [ranks of MPI_COMM_WORLD], the number of each rank's host by MPI's name; equal on all
  core::TreePlace place;   ///< of this rank in the tree over all ranks
  int keyval = MPI_KEYVAL_INVALID;
  int pid = 0;     ///< of the process that started MPI; a forked child has another
  int thread = 0;  ///< the thread that started MPI
  Environment environment;
  core::Policy policy;
  profiles::JobId id;
  std::string output;            ///< absolute path of the profile
  std::string written;           ///< of the file that rank 0 wrote: `output`, with a number if that name was taken
  Nanoseconds wrote = 0;         ///< the time that it took
  bool replaces = false;         ///< the user allowed to replace a profile of this name
  bool loss_said = false;        ///< the user knows that the profile cannot be written
  bool announces = false;        ///< mode apply, and a rule needs plans
  bool rooted_waits = false;     ///< rooted calls may ask for boundaries that wait (core::waits_for_leader)
  bool checks = false;           ///< LATECOMER_CHECK on rank 0
  profiles::History history;     ///< on rank 0
  std::uint64_t remembered = 0;  ///< calls on MPI_COMM_WORLD that decisions of an earlier run served
  Clocks clocks;
  Nanoseconds started = 0;
  bool courteous = false;          ///< some machine of the job has more ranks than cores
  bool nonblocking_waits = false;  ///< native blocking collectives run in their non-blocking form to wait courteously

  std::mutex mutex;  ///< guards everything below, if `threads`
  CommState* states = nullptr;
  CommState* world_state = nullptr;
  /// A communicator that a thread frees: MPI runs the program's delete functions, which may call collectives.
  struct Freed {
    MPI_Comm comm;
    pthread_t thread;            ///< another thread may get the same handle for a new communicator
    CommState* state = nullptr;  ///< set once its attribute is deleted
  };
  std::vector<Freed> freed;
  profiles::LocalQueue queue;   ///< calls that are not yet in mine.local
  profiles::Contribution mine;  ///< contribution to the profile: local sites, patterns led here, retained logs
  std::vector<std::string> past_decisions;  ///< of freed communicators
  std::size_t retained_records = 0, retained_missed = 0;
  /// Of communicators led here: calls without the records of all ranks, and calls that differ between ranks.
  std::uint64_t missing_calls = 0, different_calls = 0;
  profiles::Spool spool;
  bool profile_gathered = false;        ///< this rank's contribution is on its way to rank 0
  std::vector<profiles::LiveLog> live;  ///< work space of write_spool()
  std::string prometheus;  ///< absolute path of the file of the policy key `prometheus`; "" without the key
  bool prometheus_written = false, prometheus_failed = false;
  std::atomic<bool> edge_said{false};  ///< since the last call that an algorithm may serve
  bool may_idle =
      false;  ///< idle epochs are possible: native calls wait in MPI's own form, and all rules decide through plans
  bool decides = false;  ///< some native call may be replaced, so the reduction's operator matters
  /// Number of communicators per group hash, for at most kMostGroups groups.
  std::map<std::uint64_t, std::uint32_t> creations;
  std::atomic<Nanoseconds> learning{0};      ///< processor time of announcements that modelled nothing
  std::atomic<std::uint32_t> identities{0};  ///< number of identities assigned as a leader; several threads may lead
  std::vector<std::uint64_t> used_contexts;  ///< bit set
  bool offering = false;                     ///< this process offers a context in an agreement
  std::set<std::uint64_t> agreeing;          ///< numbers of the communicators that wait for an agreement, if `threads`
  std::mutex context_mutex;                  ///< guards the three above; never held while waiting for another rank

  /// The hosts of these ranks of MPI_COMM_WORLD, numbered from 0 in the order in which they first appear.
  std::vector<int> hosts_of(const std::vector<Rank>& world) const;

  /// Keeps one element of the profile's `plans`. The caller holds the lock.
  void keep_plan(std::string text);
};

/// True between the end of MPI_Init and the teardown, in programs that latecomer observes.
extern std::atomic<bool> active;
/// Set before the first handler runs (make_job in shim/entry.hpp). Never destroyed, because callbacks may run after
/// exit handlers.
extern Job* job_instance __attribute__((visibility("hidden")));
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

/// The entry of a communicator that this thread frees, with its state if it has several; or nullptr. The caller holds
/// the lock.
Job::Freed* freed_here(MPI_Comm comm);
/// The state of a communicator, if it has one. `freed`: this thread frees the communicator, and the attribute is gone.
CommState* existing_state(MPI_Comm comm, bool& freed);

// A step in the life of a job that a call may set off. shim/job defines it.

/// Starts local observation at an intercepted call if latecomer did not see MPI start (another tool keeps MPI_Init to
/// itself). Returns false if MPI is not running or latecomer is disabled.
bool start_late() noexcept;

}  // namespace latecomer::shim
