// SPDX-License-Identifier: BSD-3-Clause
// A communicator of the program on one rank. This file holds data. shim/call and shim/exchange act on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/agreement/epoch_sample.hpp"
#include "core/agreement/member.hpp"
#include "core/agreement/tree.hpp"
#include "profiles/record/record.hpp"
#include "shim/guard.hpp"
#include "shim/mpi/api.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;

inline constexpr int kWorldContext = 0;

class JobLock;      // shim/state/shared.hpp
struct Executor;    // shim/executor/executor.hpp
struct Leadership;  // shim/exchange/exchange.hpp
struct Branch;      // shim/exchange/branch.hpp
struct Watched;     // shim/engine/engine.hpp

/// The calls of a communicator's epoch on one rank, until they leave.
struct CallLog {
  std::uint64_t first = 0;                    ///< call number of records[0]
  std::vector<profiles::CallRecord> records;  ///< of calls with consecutive numbers
  std::vector<profiles::CallRecord> spare;    ///< memory of the log of the epoch before
  std::uint32_t missed = 0;                   ///< calls that did not fit

  profiles::CallRecord* find(std::uint64_t n) {
    return n >= first && n - first < records.size() ? &records[n - first] : nullptr;
  }
};

/// Which epochs of a communicator this rank logs in mode observe.
struct EpochChoice {
  int level = 0;               ///< core::EpochSample
  Nanoseconds began = 0;       ///< begin of the epoch; 0: it is the first
  Nanoseconds spent = 0;       ///< by latecomer before `began`
  Nanoseconds length = 0;      ///< of the last epoch, without what latecomer took in it
  Nanoseconds pace = 0;        ///< recent length of an epoch
  Nanoseconds beneath = 0;     ///< of the time in its blocking calls, that in the program and in other calls of MPI
  core::EpochClasses classes;  ///< of the epochs that this rank does not log
};

/// The calls of an idle epoch that take the short path (shim/call/idle.hpp).
struct IdleCalls {
  std::int64_t left = 0;     ///< that may still take it
  std::int64_t granted = 0;  ///< `left` at first; idle_stop() passes the difference to the sequence
  std::uint64_t first = 0;   ///< number of the first of them
  bool begun = false;        ///< some call has taken it, so the table of sites may have this communicator
};

/// A communicator's part in the exchange.
struct ExchangeState {
  std::unique_ptr<Leadership> leadership;  ///< on comm rank 0, once the communicator is identified
  Branch* branch = nullptr;                ///< its node of the tree, once it is identified; branch.hpp owns it
  core::TreePlace place;                   ///< of this rank in the tree
  bool broken = false;                     ///< no memory: exchange no more logs, and as the leader learn no more
  Nanoseconds waited = 0;                  ///< time at boundaries waiting for the leader, since the last log
  std::uint64_t look_at = UINT64_MAX;      ///< number of the call after which it looks for messages of the tree
  std::uint32_t look_distance = 0;         ///< calls from one look to the next
  void break_without_memory() {
    note_lack_of_memory();
    broken = true;
  }
};

/// The executor and the engine of a communicator's dispatched calls.
struct DispatchState {
  bool refused = false;  ///< LATECOMER_CHECK found a disagreement of ranks: dispatch nothing more
  std::unique_ptr<Executor> executor;
  std::shared_ptr<Watched> watched;  ///< the communicator's data in the background engine
};

/// A communicator of the program on one rank. An attribute with a null copy function holds it.
struct CommState {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0, rank = 0;                         ///< of an inter-communicator the size of both groups together
  bool foreign = false;                           ///< inter-communicator, or processes of another world: only observe
  profiles::Tally share = profiles::Tally::part;  ///< of this rank in its calls
  std::int32_t context = -1;                      ///< -1: not agreed; kContexts: none was free
  std::uint64_t identity = 0;                     ///< agreed, or the hash of members and order of creation
  std::vector<Rank> world;                        ///< [comm rank]: world rank
  bool same_numbers = true;                       ///< each rank has the same number in both, if `world` is known
  core::AgreementMember member;                   ///< its part in the agreement
  ExchangeState tree;
  EpochChoice choice;
  IdleCalls idle;
  DispatchState dispatch;
  profiles::CallSample* sample = nullptr;  ///< of its calls; nullptr: none
  CommState *next = nullptr, *previous = nullptr;

  /// How this rank counts a call with that root; -1: of an operation without one.
  profiles::Tally tally(std::int32_t root) const {
    return share == profiles::Tally::part && std::max(root, 0) == rank ? profiles::Tally::owned : share;
  }
  bool identified() const { return context >= 0; }
  bool usable() const { return context >= 0 && context < kContexts; }
  CallLog& log(const JobLock&) { return log_; }
  const CallLog& log(const JobLock&) const { return log_; }

 private:
  CallLog log_;  // another thread may be completing a call, or writing a snapshot
};

/// The state of a communicator, if it has one. `freed`: this thread frees the communicator, and the attribute is gone.
CommState* existing_state(MPI_Comm comm, bool& freed);

}  // namespace latecomer::shim
