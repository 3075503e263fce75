// SPDX-License-Identifier: BSD-3-Clause
// Edge: the predicted arrivals of all ranks in one coming call of a communicator, combined into one pattern.
//
// The ranks of the communicator form a tree with rank 0 at its root. Predictions go up. A rank sends its own once, with
// all predictions of its part of the tree, when these are complete. A rank that arrives before it has the pattern sends
// at once everything that it has, and its own arrival. The root freezes the pattern when it has all predictions, when
// the first such message arrives, or when its own process arrives. A rank that has predicted recently, but not for this
// call, counts as late: by as much as other predictions precede their arrivals. A rank that never predicts gets its
// forecast. The bytes go down the tree, and every rank uses them. A rank sends at most two messages up and one to each
// child, for any number of ranks. A process that has arrived waits for the engines between it and the root, never for
// another process. See docs/explanation/learning.md.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/pap/pattern.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;
struct Watched;

/// A pattern for one call alone.
struct OwnPattern {
  core::Pattern pattern;
  std::uint64_t number;  ///< of the exchange that made it, on its communicator
};

class Edges {
 public:
  /// `comm`: private, with the `ranks` ranks of MPI_COMM_WORLD.
  Edges(MPI_Comm comm, int ranks) : comm_(comm), sent_(static_cast<std::size_t>(ranks), 0) {}

  void add_communicator(std::shared_ptr<Watched> watched);
  void remove_communicator(const Watched& watched);
  /// A plan is in force whose calls get patterns of their own. `offsets`: the plan's forecast, or empty.
  void expect_predictions(const Watched& watched, std::span<const Nanoseconds> offsets);

  /// This process predicts at `now` that it arrives at `arrival` in the next call with a pattern of its own, on the
  /// communicator of the last such call. Both times are on the common clock.
  void predict_arrival(Nanoseconds arrival, Nanoseconds now);
  /// Takes a message that has arrived, and passes its contents on. Returns false if none has arrived.
  bool take_message();
  /// Sends an empty message to a rank of MPI_COMM_WORLD, if it is the first message to that rank. So a connection
  /// exists when an algorithm needs it (Proficz 2018, section 3).
  void greet_rank(Rank world);
  /// The process has arrived, at `arrival`, in the next call with a pattern of its own. Returns that pattern; empty if
  /// no rank has predicted, and the plan's pattern applies. Waits for the engines between this rank and the tree's
  /// root.
  std::optional<OwnPattern> take_pattern(const Watched& watched, std::span<const Nanoseconds> offsets,
                                         Nanoseconds arrival);
  /// The pattern of an exchange, if it is frozen here and not yet taken. Empty where the plan's pattern applies.
  std::optional<core::Pattern> frozen_pattern(const Watched& watched, std::uint64_t number);

  /// At the end: sends nothing from now on, and drops what arrives. Predictions may still come for a call that no
  /// process makes.
  void stop_sending();
  /// The number of messages sent to each world rank. Valid after stop_sending().
  const std::vector<int>& sent() const { return sent_; }
  /// Whether a prediction exists for a call that this process has not reached. Then more messages arrive soon.
  bool awaits_messages();

  int received() const { return received_; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t patterns() const { return patterns_; }
  /// At the end: completes all sends.
  void finish_sends();

 private:
  static constexpr Nanoseconds kUnsaid = INT64_MIN;
  /// Derived: three levels of the tree reach 585 ranks, and four reach 4,681. A wider tree is less deep, but a node
  /// then receives more messages one after the other. A level costs a poll of an engine.
  static constexpr int kChildren = 8;
  enum class Kind : std::int32_t { complete, urgent, pattern, plans };
  struct Header {
    std::uint64_t identity, number;
    Kind kind;
    std::int32_t unused = 0;
  };
  static constexpr std::uint64_t kNobody = 0;  ///< identity of no communicator: a greeting
  struct Entry {
    Rank rank;
    std::int32_t lead;  ///< time from the prediction to the arrival, in kLeadUnit; -1: the process has arrived
    Nanoseconds arrival;
    bool known() const { return arrival != kUnsaid; }
  };
  struct Round {
    std::vector<Entry> entries;  ///< [ranks]
    int have = 0;
    bool told = false, urged = false, frozen = false;
    std::optional<core::Pattern> pattern;  ///< once frozen
  };
  struct Member {
    std::shared_ptr<Watched> watched;
    int below = 1;           ///< ranks of this part of the tree
    bool edged = false;      ///< a plan had calls with patterns of their own
    std::uint64_t next = 0;  ///< the exchange that this process comes to next
    std::map<std::uint64_t, Round> rounds;
    std::vector<Nanoseconds> offsets;
    std::vector<std::uint64_t> says;  ///< [ranks], at the root: 1 + last exchange that has its prediction; 0: none
    Rank parent() const;
  };
  struct Outgoing {
    std::vector<char> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  // All under the mutex.
  Round& find_round(Member& member, std::uint64_t number);
  void add_entry(Round& round, const Entry& entry);
  void send_up(Member& member, std::uint64_t number, bool urgent);
  void freeze_round(Member& member, std::uint64_t number);
  void send_down(const Member& member, std::uint64_t number, const Round& round);
  void send_message(Rank world, const Header& header, const void* data, std::size_t size);
  void read_message(Member& member, const std::vector<char>& message);
  bool take_message_locked();

  MPI_Comm comm_;
  std::vector<int> sent_;
  std::mutex mutex_;
  std::map<std::uint64_t, Member> members_;  ///< by identity
  std::set<std::uint64_t> gone_;
  std::vector<std::vector<char>> early_;  ///< messages for communicators that are not identified here yet
  std::list<Outgoing> outgoing_;
  std::uint64_t current_ = 0;  ///< identity of the communicator that a prediction is for
  bool active_ = false, closed_ = false;
  int received_ = 0;
  std::uint64_t messages_ = 0, patterns_ = 0;
};

}  // namespace latecomer::shim
