// SPDX-License-Identifier: BSD-3-Clause
// A communicator of the program on one rank. This file holds data. shim/call and shim/exchange act on it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/agreement/member.hpp"
#include "core/agreement/tree.hpp"
#include "profiles/record/record.hpp"
#include "shim/mpi/api.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;

inline constexpr int kWorldContext = 0;

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

/// The state of a communicator, if it has one. `freed`: this thread frees the communicator, and the attribute is gone.
CommState* existing_state(MPI_Comm comm, bool& freed);

}  // namespace latecomer::shim
