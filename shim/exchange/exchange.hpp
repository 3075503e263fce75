// SPDX-License-Identifier: BSD-3-Clause
// The exchange of a communicator: logs of calls go up a tree to the leader (branch.hpp), and its announcements come
// down. The messages go through the mailbox (mail.hpp) and contain the identity of the program's communicator. Only
// identify_communicator(), meet_members() and check_call() wait, each for ranks that are inside the same call.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "core/learning/learner.hpp"
#include "profiles/record/digest_node.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/process.hpp"

namespace latecomer::shim {

/// Records that are kept until the end of the job. Derived: 65,536 records of 48 bytes take 3 MiB per rank. Beyond, a
/// log is dropped: its calls have no arrival patterns, and a warning at the end gives their number.
inline constexpr std::size_t kRetainedRecords = 1 << 16;

/// The data of the leader of a communicator (its rank 0). A thread of another communicator may bring it calls that the
/// tree has counted (pump_digests()), so the learner and what learn_from_call() uses are under the mutex.
struct Leadership {
  std::mutex mutex;
  std::unique_ptr<core::Learner> learner;   ///< where plans may be announced
  std::vector<core::Signature> signatures;  ///< of the last calls in the leader's log
  /// Of epochs that the tree has not counted yet: number of the first call, and signatures.
  std::vector<std::pair<std::uint64_t, std::vector<core::Signature>>> waiting;
  std::vector<core::Signature> spare;     ///< memory for the next epoch
  std::vector<char> announcement;         ///< not yet in force
  std::vector<core::SlotReport> reports;  ///< the learner's last reports
  std::vector<std::string> decisions;     ///< the same as JSON; under the job's lock
  Nanoseconds naming = 0;                 ///< processor time spent on names of sites
  Nanoseconds words_next = 0;             ///< earliest time of the next texts, with the budget of snapshots
  std::optional<std::pair<std::uint64_t, core::Plan>> latest;  ///< call number and plan, not yet in the texts
  std::uint64_t latest_hash = 0;                               ///< of the last plan in the texts; 0: none
  std::uint64_t announced_at = 0;    ///< call number of the last announcement, of whatever kind
  Nanoseconds waited = 0;            ///< sum of the members' waits at boundaries, from logs since the last announcement
  std::vector<Nanoseconds> offsets;  ///< work space, [ranks]
};

/// Locks what learn_from_call() uses, if several threads may be inside MPI.
class LearnerLock {
 public:
  explicit LearnerLock(Leadership& lead) : lock_(lead.mutex, std::defer_lock) {
    if (job_process().threads) lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// Agrees on identity and tag context with blocking collectives on the communicator. All its ranks call it at the same
/// call number. `waits`: members may arrive late, so warn after 10 s.
void identify_communicator(CommState& state, bool waits = false);

/// Gives this rank its place in the tree of an identified communicator. Rank 0 becomes its leader.
void take_place(CommState& state);

/// Makes this rank the leader.
void become_leader(CommState& state);

/// Renews the texts of the leader's decisions for the profile, and adds the text of the last announced plan.
void note_decisions(CommState& state);

/// Renews the texts at the end of the communicator. The last text is then the plan in force, with verdicts, no trials.
void note_outcome(CommState& state);

/// LATECOMER_CHECK: all ranks send the leader their next call, and the leader compares them. Waits for all ranks.
/// Returns false if the calls differ; then the leader has printed the difference.
bool check_call(CommState& state, const core::Signature& signature, std::uint64_t n, std::uint64_t site);

/// Ends an epoch before the current call: sends its log up, unless the epoch `rested`, and starts a new log.
void end_epoch(CommState& state, bool rested);

/// At the end of a communicator, or of the job: sends the log of the last epoch up, and lets the tree end.
void end_last_epoch(CommState& state);

/// Looks for messages of the tree, and sets the number of the call that looks next.
void look_for_messages(CommState& state, std::uint64_t n);

/// Leader: learns from a call of which all records are known.
void learn_from_call(Leadership& lead, std::uint64_t n, const profiles::CallDigest& call,
                     const profiles::CallFacts& facts, const profiles::CallSampled& sampled);

/// Leader: sends its children the announcement of call n.
void announce_plan(CommState& state, std::uint64_t n);

/// Returns once all ranks have the outstanding announcement. All ranks call it in the same call, and each exchanges
/// messages until it returns. `waits`: members may arrive late, so measure the wait, and warn after 10 s.
void meet_members(CommState& state, bool waits);

/// Puts the outstanding announcement in force. `waits`: the ranks have not met yet, so they meet first.
void apply_announcement(CommState& state, std::uint64_t n, bool waits);

/// Receives an announcement that has arrived early, and builds the schedules of its plan. So no schedule is built
/// inside a collective for a kind of call that was seen before. Call it right after a collective.
void receive_early_announcement(CommState& state);

/// Without a tree: keeps a full log for the end and starts a new one. Returns whether it was full.
bool set_full_log_aside(CommState& state);

/// At the end of a communicator that has no tree: keeps its log until the end of the job.
void retain_log(const CommState& state);

/// At teardown, after all trees are over: keeps the logs that no leader has counted until the end of the job.
void retain_open_logs();

/// Of an inter-communicator: its size, and this rank's share in its calls.
void join_groups(CommState& state);
/// Fills state.world and the local identity. Returns false if a member is not in MPI_COMM_WORLD.
bool resolve_members(CommState& state);

}  // namespace latecomer::shim
