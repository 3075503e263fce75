// SPDX-License-Identifier: BSD-3-Clause
// Edge: the predicted arrivals of all ranks in one coming call of a communicator, combined into one pattern.
//
// The ranks of the communicator form a tree with rank 0 at its root. Predictions go up. A rank sends its own once, with
// all predictions of its part of the tree, when these are complete. A rank that arrives before it has the pattern sends
// at once everything that it has, and its own arrival. The root freezes the pattern when it has all predictions, when
// the first such message arrives, or when its own process arrives. A rank that has predicted recently, but not for this
// call, counts as late: by as much as other predictions precede their arrivals. A rank that never predicts gets its
// forecast. The bytes go down the tree, and every rank uses them. A rank sends at most two messages up and one to each
// child, whatever P is. A process that has arrived waits for the engines between it and the root, never for another
// process. See docs/explanation/learning.md.
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
#include "shim/mpi.hpp"

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
  /// `comm`: over MPI_COMM_WORLD, of so many ranks.
  Edges(MPI_Comm comm, int ranks) : comm_(comm), sent_(static_cast<std::size_t>(ranks), 0) {}

  void watch(std::shared_ptr<Watched> watched);
  void unwatch(const Watched& watched);
  /// A plan is in force whose calls are to have patterns of their own; `offsets`: what it forecasts, or nothing.
  void expect(const Watched& watched, std::span<const Nanoseconds> offsets);

  /// This process says at `now` that it will arrive then, on the common clock: in the next such call of the
  /// communicator that the last was on.
  void say(Nanoseconds arrival, Nanoseconds now);
  /// Takes and passes on what has come. False: nothing had.
  bool advance();
  /// Sends an empty message to a rank of MPI_COMM_WORLD that has got none before, so that a connection exists when an
  /// algorithm needs it (Proficz 2018, section 3).
  void greet(Rank world);
  /// The process has arrived, at `arrival`, in the next call with a pattern of its own. Empty: nobody has said
  /// anything, and the plan's pattern serves. Waits for the engines on the way to the tree's root.
  std::optional<OwnPattern> take(const Watched& watched, std::span<const Nanoseconds> offsets, Nanoseconds arrival);
  /// The pattern of an exchange, if it is frozen here and not yet taken; empty where the plan's serves.
  std::optional<core::Pattern> frozen(const Watched& watched, std::uint64_t number);

  const std::vector<int>& sent() const { return sent_; }  ///< messages, by world rank; once no thread sends any more
  /// Something was said of an exchange that this process has yet to come to: more is about to come.
  bool open();

  int received() const { return received_; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t patterns() const { return patterns_; }
  /// At the end: completes what was sent.
  void finish();

 private:
  static constexpr Nanoseconds kUnsaid = INT64_MIN;
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
    std::int32_t lead;  ///< said so long before, in units of 100 ns; -1: not said, it is there
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
    std::vector<std::uint64_t>
        says;  ///< [ranks], at the root: 1 + the last exchange before whose freezing the rank said; 0: none
    Rank parent() const;
  };
  struct Outgoing {
    std::vector<char> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  // All under the mutex.
  Round& round(Member& member, std::uint64_t number);
  void note(Round& round, const Entry& entry);
  void move_up(Member& member, std::uint64_t number, bool urgent);
  void freeze(Member& member, std::uint64_t number);
  void move_down(const Member& member, std::uint64_t number, const Round& round);
  void send(Rank world, const Header& header, const void* data, std::size_t size);
  void came(Member& member, const std::vector<char>& message);
  bool advance_locked();

  MPI_Comm comm_;
  std::vector<int> sent_;
  std::mutex mutex_;
  std::map<std::uint64_t, Member> members_;  ///< by identity
  std::set<std::uint64_t> gone_;
  std::vector<std::vector<char>> early_;  ///< for communicators that this process has yet to agree on
  std::list<Outgoing> outgoing_;
  std::uint64_t current_ = 0;  ///< identity of the communicator that what is said is for
  bool active_ = false;
  int received_ = 0;
  std::uint64_t messages_ = 0, patterns_ = 0;
};

}  // namespace latecomer::shim
