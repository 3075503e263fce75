// SPDX-License-Identifier: BSD-3-Clause
// This process's nodes in the trees of the exchange, one per identified communicator. A node outlives its communicator
// until its neighbours have sent their last message about it.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "profiles/record/digest_node.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/exchange/mail.hpp"
#include "shim/state/communicator.hpp"

namespace latecomer::shim {

/// The end of a tree. A rank sends its last message to its parent once its communicator has ended, no message of its
/// node is under way, and the last messages of all its children have arrived. The leader then sends a last message to
/// its children, and they pass it down. A rank deletes its node when it has sent and received the last messages of all
/// neighbours: no message can follow. After an error, a rank sends it as soon as its communicator ends.
struct Branch final : profiles::DigestNode::Host {
  explicit Branch(CommState& of);
  bool send_message(Rank to, std::span<const char> message) override;
  profiles::CallSums apply_facts(const profiles::CallRecord& record, const profiles::CallFacts& facts,
                                 const profiles::StandsFor& stands_for) override;
  void take_call(std::uint64_t n, const profiles::CallDigest& call, const profiles::CallFacts& facts,
                 const profiles::CallSampled& sampled, const profiles::StandsFor& stands_for) override;
  void take_sums(const profiles::CallDigest& call, const profiles::CallFacts& facts, const profiles::CallSums& sums,
                 const profiles::StandsFor& stands_for) override;
  void count_missing(std::uint64_t calls) override;
  void report_difference(std::uint64_t n, const profiles::CallDigest& call) override;
  void add_wait(Nanoseconds sum) override;

  /// The rank of the parent or of a child in MPI_COMM_WORLD.
  Rank world_of(Rank peer) const;
  /// Takes the last message of a neighbour.
  void take_last_message(Rank from);
  /// Sends the last message to the neighbours that may get it now.
  void say_end();
  /// Whether no message of this tree can come or go any more.
  bool is_over() const;

  CommState* state;  ///< nullptr after the end of the communicator
  profiles::DigestNode node;
  std::uint64_t next = 0;                    ///< number of the first call after the epochs so far
  Rank own_world;                            ///< this rank in MPI_COMM_WORLD
  std::vector<std::pair<Rank, Rank>> peers;  ///< parent and children: rank in the communicator and in MPI_COMM_WORLD
  std::vector<Rank> world;                   ///< leader: [comm_size]
  std::optional<std::uint32_t> group;        ///< leader: of these ranks, once a call is known
  std::vector<char> announcement;            ///< that has arrived and is not yet heard
  bool ended = false;                        ///< this rank's calls are over
  bool broken = false;                       ///< after an error
  std::size_t ended_children = 0;
  bool ended_parent = false, told_parent = false, told_children = false;

 private:
  void tell_end(Rank to);
  bool is_leader() const { return node.place().parent < 0; }
};

/// Makes this rank's node of an identified communicator.
void make_branch(CommState& state);

/// Gives the log of an epoch to the node. `first`: number of its first call; `next`: of the next epoch's.
void pass_log(CommState& state, std::uint64_t first, std::span<const profiles::CallRecord> log, std::uint64_t next);

/// The price of a logged epoch on the rank where it is highest, as far as this rank has heard of it. `own`: on this
/// rank. The leader tells the others.
Nanoseconds agree_on_price(CommState& state, Nanoseconds own);
/// Leader: an epoch of that length was not logged.
void note_left_out(CommState& state, Nanoseconds length);

/// Sends what waits for the end of an epoch.
void flush_digests(CommState& state);

/// Whether messages of this communicator's tree are expected, or wait in the mailbox.
bool expects_mail(const CommState& state);

/// Sends an announcement to the children of this rank.
void announce_below(const CommState& state, std::span<const char> announcement);

/// Moves an announcement that has arrived to `out`. Returns false if none has.
bool take_announcement(CommState& state, std::vector<char>& out);

/// The calls of this rank on the communicator are over, and its log is with the node.
void end_branch(CommState& state);
/// At the end of a communicator: lets the node go on without it.
void detach_branch(CommState& state);

/// At the end of the job: whether messages of a tree can still come or go.
bool trees_are_open();
/// Trees of communicators that have ended before.
std::size_t trees_left();

/// Adds the records of this process that a leader may not have counted. A leader adds the place where its count ends,
/// without records. `last`: all ranks are at their end, so a node that waits for no message has no such records. The
/// records are valid while the returned lock lives. If another thread has the nodes, this function adds nothing.
MailLock add_open_logs(std::vector<profiles::LiveLog>& logs, bool last);

}  // namespace latecomer::shim
