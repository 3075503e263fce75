// SPDX-License-Identifier: BSD-3-Clause
// What the process knows of its job: the roll call's verdict, the private communicator, the policy, the
// clock, and the live communicators. Started inside MPI_Init, ended by an attribute of MPI_COMM_SELF.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/agreement/agreement.hpp"
#include "core/policy/policy.hpp"
#include "profiles/record.hpp"
#include "shim/environment.hpp"
#include "shim/mpi.hpp"

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;

/// Tags on the private communicator: a context per communicator of the program, and in it a channel per
/// message of a schedule. 4000..4095 are ours.
inline constexpr int kTagsPerContext = 4096;
inline constexpr int kContexts = 2048;  // as many as MPICH has communicators
enum ReservedChannel { kLogChannel = 4001, kPlanChannel = 4002, kSelfChannel = 4003, kFinalChannel = 4004, kClockChannel = 4005 };
constexpr int tag_of(int context, int channel) { return context * kTagsPerContext + channel; }
inline constexpr int kWorldContext = 0;

struct Executor;   // shim/executor.hpp
struct Leadership; // shim/exchange.hpp

/// One communicator of the program, on one rank. Lives in an attribute with a null copy function.
struct CommState {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0, rank = 0;
  bool foreign = false;             ///< inter-communicator or processes of another world: observed only
  std::int32_t context = -1;        ///< -1: not agreed; kContexts: none was free
  std::uint64_t identity = 0;       ///< agreed, or the hash of members and order of creation
  core::Sequence sequence;
  std::uint64_t logged_from = 0;    ///< number of log[0]
  std::uint32_t log_missed = 0;     ///< calls not logged because the log was full
  std::vector<profiles::CallRecord> log;
  std::vector<Rank> world;          ///< comm rank -> world rank
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Leadership> leadership;  ///< on comm rank 0, once identified
  core::Pattern plan;               ///< in force; flat before any
  std::uint32_t plan_serial = 0;
  // The last call site seen here and its counters: most calls repeat it.
  profiles::SiteKey last_key;
  profiles::LocalSite* last_local = nullptr;
  CommState *next = nullptr, *previous = nullptr;

  bool identified() const { return context >= 0; }
  bool usable() const { return context >= 0 && context < kContexts; }
};

struct Job {
  bool together = false;        ///< the roll call confirmed every rank; `comm` exists
  bool threads = false;         ///< MPI_THREAD_MULTIPLE
  int rank = 0, size = 1;
  MPI_Comm comm = MPI_COMM_NULL;  ///< private, over MPI_COMM_WORLD, same ranks
  MPI_Group world_group = MPI_GROUP_NULL;
  int keyval = MPI_KEYVAL_INVALID;
  Environment environment;
  core::Policy policy;
  bool announces = false;         ///< mode apply, and some rule's algorithm wants a pattern
  Nanoseconds clock_offset = 0, clock_uncertainty = 0;
  Nanoseconds started = 0;
  std::string start_time, host;
  bool courteous = false;       ///< more ranks than cores somewhere in the job

  std::mutex mutex;             ///< everything below, where `threads`
  CommState* states = nullptr;
  std::map<profiles::SiteKey, profiles::LocalSite> local;
  profiles::SiteBook patterns;  ///< of communicators that this process leads
  std::vector<profiles::Contribution::Log> retained;  ///< logs of freed communicators
  std::size_t retained_records = 0, retained_missed = 0;
  std::map<std::uint64_t, std::uint32_t> creations;   ///< communicators seen per group hash
  std::vector<std::string> plans;
  std::vector<std::uint64_t> used_contexts;           ///< bit set
  std::atomic<std::uint32_t> identities{0};           ///< given out as a leader; several threads may lead
  std::mutex context_mutex;
};

/// True between the end of MPI_Init and our teardown, in programs that are to be observed.
extern std::atomic<bool> active;
Job& job();

/// Locks job().mutex if several threads may be inside MPI.
class JobLock {
 public:
  JobLock() : lock_(job().mutex, std::defer_lock) {
    if (job().threads) lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// This host's monotonic clock, nanoseconds.
Nanoseconds now();

/// After a successful MPI_Init or MPI_Init_thread.
void start_job();

/// The state of a communicator, created at its first collective; nullptr if there is none to have.
CommState* state_of(MPI_Comm comm);

/// Confirms, beside MPI's communication, that every rank of MPI_COMM_WORLD runs this library build.
/// All ranks get the same answer. Local calls only (MPI_Publish_name, MPI_Lookup_name).
bool roll_call(int rank, int size, double timeout_s);

/// Waits a little: spins, then yields, then sleeps. Reset before each wait.
class Patience {
 public:
  explicit Patience(bool courteous) : courteous_(courteous) {}
  void wait();
  void reset() { turns_ = 0; }

 private:
  bool courteous_;
  unsigned turns_ = 0;
};

}  // namespace latecomer::shim
