// SPDX-License-Identifier: BSD-3-Clause
// This process's nodes in the trees of the exchange, one per identified communicator, and their messages over the
// private communicator. A node outlives its communicator until nothing of it is under way.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "profiles/record/digest_node.hpp"
#include "shim/dispatch/exchange/exchange.hpp"

namespace latecomer::shim {

struct Branch final : profiles::DigestNode::Host {
  explicit Branch(CommState& of);
  bool send(Rank to, std::span<const char> message) override;
  profiles::CallSums own(const profiles::CallRecord& record, const profiles::CallFacts& facts,
                         std::uint32_t stands_for) override;
  void whole(std::uint64_t n, const profiles::CallDigest& call, const profiles::CallFacts& facts,
             const profiles::CallSampled& sampled, std::uint32_t stands_for) override;
  void summed(const profiles::CallDigest& call, const profiles::CallFacts& facts,
              const profiles::CallSums& sums) override;
  void missing(std::uint64_t calls) override;
  void different(std::uint64_t n, const profiles::CallDigest& call) override;
  void waited(Nanoseconds sum) override;

  CommState* state;  ///< nullptr after the end of the communicator
  profiles::DigestNode node;
  std::uint64_t next = 0;                    ///< number of the first call after the epochs so far
  Rank own_world;                            ///< this rank in MPI_COMM_WORLD
  std::vector<std::pair<Rank, Rank>> peers;  ///< parent and children: rank in the communicator and in MPI_COMM_WORLD
  std::vector<Rank> world;                   ///< leader: [comm_size]
  std::optional<std::uint32_t> group;        ///< leader: of these ranks, once a call is known
};

/// Makes this rank's node of an identified communicator.
void grow(CommState& state);

/// Gives the log of an epoch to the node. `first`: number of its first call; `next`: of the next epoch's.
void pass_log(CommState& state, std::uint64_t first, std::span<const profiles::CallRecord> log, std::uint64_t next);

/// Sends what waits for the end of an epoch.
void flush_digests(CommState& state);

/// Takes all messages of all trees that have arrived. Never waits. With threads, one of them does it at a time.
void pump_digests();

/// Whether messages of this communicator's tree are expected.
bool expects_digests(const CommState& state);

/// At teardown: takes messages until nothing is under way, or nothing has come for some time. Asks `goes_on` whenever
/// nothing has come, and gives up when that says so.
void settle_digests(const std::function<bool()>& goes_on);

/// At the end of a communicator: lets the node go on without it. Its last epoch has ended.
void outlive(CommState& state);

/// Adds the records of this process that a leader may not have counted. A leader adds the place where its count ends,
/// without records. `last`: all ranks are at their end, so a node that waits for nothing has none. They are valid while
/// the returned lock lives; without it, another thread has the nodes, and nothing is added.
std::unique_lock<std::recursive_mutex> add_open_logs(std::vector<profiles::LiveLog>& logs, bool last);

}  // namespace latecomer::shim
