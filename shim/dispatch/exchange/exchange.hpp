// SPDX-License-Identifier: BSD-3-Clause
// The exchange with the leader: members send it logs, and it sends them plans. The messages are point-to-point messages
// on the private communicator and contain the identity of the program's communicator. Only identify(), hear() and
// check_call() wait.
#pragma once

#include <array>

#include "shim/state/job.hpp"

namespace latecomer::shim {

/// The received logs of one member that the leader has not yet matched with the logs of the other members. A short
/// queue that reuses its buffers, so a warm exchange allocates nothing.
class MemberLogs {
 public:
  struct Part {
    std::uint64_t first = 0;
    std::vector<profiles::CallRecord> records;
    std::vector<core::Signature> signatures;  ///< the leader's own, of the last of its records
  };
  bool empty() const { return count_ == 0; }
  Part& front() { return parts_[head_]; }
  void pop() { head_ = (head_ + 1) % kMost, --count_; }
  /// The next free part. Drops the oldest part of a full queue.
  Part& push() {
    if (count_ == kMost) pop();
    Part& part = parts_[(head_ + count_) % kMost];
    part.records.clear(), part.signatures.clear();
    // Epochs end at the first blocking call, so some are longer than others.
    part.records.reserve(2 * core::Sequence::kSteadyEpoch);
    ++count_;
    return part;
  }
  template <typename F>
  void each(F f) const {
    for (unsigned i = 0; i < count_; ++i) f(parts_[(head_ + i) % kMost]);
  }

 private:
  /// Only the leader's own logs queue up here: it takes a member's log when that member's queue is empty. Derived: 4
  /// epochs of 256 calls, the reserved size, take 48 KiB per communicator. If a member's log is still missing after 4
  /// epochs, the calls of the oldest epoch get no arrival patterns.
  static constexpr unsigned kMost = 4;
  std::array<Part, kMost> parts_;
  unsigned head_ = 0, count_ = 0;
};

/// The data of the leader of a communicator (its rank 0).
struct Leadership {
  std::vector<MemberLogs> members;          ///< [ranks]
  std::unique_ptr<core::Learner> learner;   ///< where plans may be announced
  std::vector<core::Signature> signatures;  ///< of the calls in the leader's log since it leads
  core::Learner::Announcement announced;    ///< not yet in force
  std::vector<core::SlotReport> reports;    ///< the learner's last reports
  std::vector<std::string> decisions;       ///< the same as JSON; under the job's lock
  Nanoseconds words_next = 0;               ///< earliest time of the next texts, with the budget of snapshots
  std::optional<std::pair<std::uint64_t, core::Plan>> latest;  ///< call number and plan, not yet in the texts
  std::uint64_t latest_hash = 0;                               ///< of the last plan in the texts; 0: none
  std::uint64_t announced_at = 0;  ///< call number of the last announcement, of whatever kind
  // Work space.
  std::vector<Nanoseconds> uncertainty;          ///< [ranks] of the clocks, as last told
  std::vector<Nanoseconds> offsets;              ///< [ranks]
  std::vector<core::Bytes> sizes;                ///< of the blocks of one call
  std::vector<const profiles::CallRecord*> row;  ///< [ranks]
  Nanoseconds waited = 0;  ///< sum of the members' waits at boundaries, from logs since the last announcement
  std::vector<char> body;
  explicit Leadership(int ranks)
      : members(static_cast<std::size_t>(ranks)),
        uncertainty(static_cast<std::size_t>(ranks)),
        offsets(static_cast<std::size_t>(ranks)),
        row(static_cast<std::size_t>(ranks)) {}
};

/// Agrees on identity and tag context with blocking collectives on the communicator. All its ranks call it at the same
/// call number. `waits`: members may arrive late, so warn after 10 s.
void identify(CommState& state, bool waits = false);

/// Makes this rank the leader of an identified communicator.
void lead(CommState& state);

/// Renews the texts of the leader's decisions for the profile, and adds the text of the last announced plan.
void note_decisions(CommState& state);

/// The same at the end of the communicator. The last text is then the plan in force, with verdicts and without trials.
void note_outcome(CommState& state);

/// LATECOMER_CHECK: all ranks send the leader their next call, and the leader compares them. Waits for all ranks.
/// Returns false if the calls differ; then the leader has printed the difference.
bool check_call(CommState& state, const core::Signature& signature, std::uint64_t n, std::uint64_t site);

/// Sends the log to the leader, unless the epoch `rested`, and starts a new log. The leader keeps its own log.
void end_epoch(CommState& state, bool rested);

/// Leader: takes the logs that have arrived, and learns from each call whose records are complete.
void collect(CommState& state);

/// Leader: sends all ranks the announcement of call n, made from the collected logs.
void announce(CommState& state, std::uint64_t n);

/// Puts the pending announcement in force. Members wait for it if it has not arrived. `waits`: the leader may be late,
/// so measure the wait, and warn after 10 s.
void hear(CommState& state, std::uint64_t n, bool waits);

/// At the end of a communicator: receives and drops its pending announcement, if it has arrived. MPICH over UCX
/// searches all unexpected messages at each posted receive, so none may stay behind.
void hear_last(CommState& state);

/// Receives an announcement that has arrived early, and builds the schedules of its plan. So no schedule is built
/// inside a collective for a kind of call that was seen before. Call it right after a collective.
void hear_early(CommState& state);

/// Without an exchange: keeps the log for the end and starts a new one.
void set_log_aside(CommState& state);

/// At the end of a communicator: keeps the logs that no leader has used until the end of the job.
void retain_log(const CommState& state);

/// At teardown, after all ranks have sent: receives the logs of communicators that no longer exist.
void retain_strays();
/// The number of other messages that it received and dropped.
extern int dropped_strays;

/// Fills state.world and the local identity. Returns false if a member is not in MPI_COMM_WORLD.
bool resolve_members(CommState& state);

}  // namespace latecomer::shim
