// SPDX-License-Identifier: BSD-3-Clause
// The exchange with the leader: logs go to it, plans come from it, by point-to-point messages on the
// private communicator that carry the communicator's identity. Nothing here waits, except hear().
#pragma once

#include <array>

#include "shim/state/job.hpp"

namespace latecomer::shim {

/// The logs of one member that were received and not yet matched with the others': a short queue whose
/// buffers are used again, so that the exchange allocates nothing once warm.
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
  /// The next free part; the oldest is dropped if a member whose logs were lost holds up the others.
  Part& push() {
    if (count_ == kMost) pop();
    Part& part = parts_[(head_ + count_++) % kMost];
    // Epochs end at the first blocking call, so some are longer than others.
    part.records.reserve(2 * core::Sequence::kSteadyEpoch);
    return part;
  }
  template <typename F>
  void each(F f) const {
    for (unsigned i = 0; i < count_; ++i) f(parts_[(head_ + i) % kMost]);
  }

 private:
  static constexpr unsigned kMost = 4;
  std::array<Part, kMost> parts_;
  unsigned head_ = 0, count_ = 0;
};

/// What the leader of a communicator (its rank 0) keeps.
struct Leadership {
  std::vector<MemberLogs> members;          ///< [ranks]
  std::unique_ptr<core::Learner> learner;   ///< where plans may be announced
  std::vector<core::Signature> signatures;  ///< of the calls in the leader's log, but those before it led
  core::Learner::Announcement announced;    ///< on its way to being in force
  std::vector<core::SlotReport> reports;    ///< what the learner last said
  std::vector<std::string> decisions;       ///< the same as JSON; under the job's lock
  Nanoseconds words_next = 0;               ///< not before: words are for people and may cost as little as snapshots do
  std::optional<std::pair<std::uint64_t, core::Plan>> latest;  ///< announced at that call and not yet put into words
  // Work space.
  std::vector<Nanoseconds> uncertainty;          ///< [ranks] of the clocks, as last told
  std::vector<Nanoseconds> offsets;              ///< [ranks]
  std::vector<core::Bytes> sizes;                ///< work space: of the blocks of one call
  std::vector<const profiles::CallRecord*> row;  ///< [ranks]
  Nanoseconds waited =
      0;  ///< by members for this rank at boundaries, all together, as logs that came since the last announcement say
  std::vector<char> body;
  explicit Leadership(int ranks)
      : members(static_cast<std::size_t>(ranks)),
        uncertainty(static_cast<std::size_t>(ranks)),
        offsets(static_cast<std::size_t>(ranks)),
        row(static_cast<std::size_t>(ranks)) {}
};

/// Agrees on identity and tag context with one blocking collective on the communicator; called by all its
/// ranks at the same operation number.
/// `waits`: members may come late to this; said after 10 s.
void identify(CommState& state, bool waits = false);

/// Makes this rank the leader of an identified communicator.
void lead(CommState& state);

/// Brings what the leader decided up to date, in the words of the profile, and the plan that was announced last.
void note_decisions(CommState& state);

/// LATECOMER_CHECK: all ranks tell the leader what they are about to run. False: they differ, and the leader has said
/// how. Waits for all of them.
bool check_call(CommState& state, const core::Signature& signature, std::uint64_t n, std::uint64_t site);

/// Sends the log to the leader (the leader takes it in), unless the epoch `rested`, and starts a new one.
void end_epoch(CommState& state, bool rested);

/// Leader: takes in whatever logs have come.
void collect(CommState& state);

/// Leader: tells all ranks the plan from what was collected.
void announce(CommState& state, std::uint64_t n);

/// Brings the outstanding announcement in force; others than the leader wait for it if it has not come.
/// `waits`: the leader may be late itself; how long that takes is measured, and after 10 s said.
void hear(CommState& state, std::uint64_t n, bool waits);

/// The communicator is going away: takes its outstanding announcement, if that has come, and drops it. MPICH over UCX
/// looks through all messages that nobody has asked for whenever a receive is posted, so none may be left behind.
void hear_last(CommState& state);

/// Receives an announcement that has arrived early, and builds the schedules of its plan. So no schedule is built
/// inside a collective for a kind of call that was seen before. Call it right after an operation.
void hear_early(CommState& state);

/// Without an exchange: keeps the log for the end and starts a new one.
void set_log_aside(CommState& state);

/// Keeps what no leader has digested for the end of the job; the communicator is going away.
void retain_log(const CommState& state);

/// At teardown, after everybody has sent: takes in logs whose communicator is gone.
void retain_strays();
/// Of these, those that were no logs.
extern int dropped_strays;

/// Fills state.world and the unagreed identity; returns false for communicators that reach beyond
/// MPI_COMM_WORLD.
bool resolve_members(CommState& state);

}  // namespace latecomer::shim
