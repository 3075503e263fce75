// SPDX-License-Identifier: BSD-3-Clause
// The background engine: one thread that runs the background lane of coming calls before the process arrives in them.
//
// Notices. A rank that has arrived in call n sends a notice just before a message: which call, which algorithm, which
// plan. It sends one to each rank that it sends to, or whose token it needs. A notice is no forecast: call n is the
// same call on all ranks, and its decision is the same. The engine keeps or drops a notice that it cannot serve
// (unknown communicator, unknown plan, no memory, an earlier call open). The process then does this part itself when it
// arrives. So a late or lost notice costs time, never correctness.
//
// Ownership. The engine owns a run until the process arrives. The process owns it during the call. The engine owns it
// again for messages that are under way when the process leaves. Messages use a communicator of their own. A run for
// call n begins only when all messages of earlier calls of the same communicator have been posted there, so that
// messages match in the order of calls. See docs/explanation/schedules.md.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shim/engine/edges.hpp"
#include "shim/runner/compile.hpp"
#include "shim/runner/operands.hpp"
#include "shim/state/communicator.hpp"

namespace latecomer::shim {

/// The engine's data of one communicator.
struct Watched {
  std::uint64_t identity = 0;
  int context = 0, size = 0, rank = 0;
  std::vector<Rank> world;
  std::atomic<std::uint64_t> begun{0};     ///< calls that the process has entered
  std::atomic<std::uint64_t> posted{0};    ///< calls before this one have posted all their messages
  std::shared_ptr<const core::Plan> plan;  ///< under the engine's lock
  std::uint64_t plan_hash = 0;
};

/// Starts the thread if all ranks of the job can; collective over job_world().comm. `granted`: this rank's MPI is
/// MPI_THREAD_MULTIPLE.
void start_engine(bool granted);
bool engine_runs();
/// Ends the thread. Messages under way are completed, as MPI_Finalize would wait for them.
void stop_engine() noexcept;
/// Ends the thread of a process that has not called MPI_Finalize. Completes no message.
void halt_engine() noexcept;

/// Registers an identified communicator, if there is an engine.
void add_to_engine(CommState& state);
void remove_from_engine(CommState& state);
/// Another plan is in force.
void engine_plan(CommState& state);

/// The process runs call n. It takes over the run that the engine began. When it leaves, the engine completes the
/// remaining messages. `operands`: in bytes. `own`: the pattern of this call alone, or nullptr. `failure`: as in
/// Running::note_failure. Returns an MPI error code.
int run_with_engine(CommState& state, std::uint64_t n, const ScheduleKey& key, const Operands& operands,
                    const OwnPattern* own, int failure);

/// The program reports that `fraction` of the work before its next collective is done, at `at` on the common clock.
/// Predicts the arrival there: the time since the last collective, divided by the fraction (Proficz 2018, Proficz
/// 2020). Tells the other ranks of the communicator of the last such call. Has no effect without an engine.
void engine_edge(double fraction, Nanoseconds at);
/// The predicted arrivals of all ranks in this call, equal on all of them, on a watched communicator whose plan asks
/// for it. Empty if no rank has predicted: then the plan's pattern, number `planned`, applies. `arrival`: of this
/// process, on the common clock. Waits for engines, not for processes (shim/engine/edges.hpp).
std::optional<OwnPattern> engine_pattern(CommState& state, int planned, Nanoseconds arrival);
/// A coming call will send to these ranks of MPI_COMM_WORLD: connections are made now, if there is an engine.
void engine_greet(std::span<const Rank> world);
/// The process has left a blocking collective: the work before its next one begins.
void engine_iteration(Nanoseconds at);

/// Call n uses none of the engine's messages.
inline void skip_engine(CommState& state, std::uint64_t n) {
  if (!state.dispatch.watched) return;
  state.dispatch.watched->begun.store(n + 1, std::memory_order_relaxed);
  state.dispatch.watched->posted.store(n + 1, std::memory_order_release);
}

/// Runs begun before the process arrived, so far; patterns exchanged for single calls and messages sent for them;
/// processor time of the thread, ns.
struct EngineFigures {
  std::uint64_t notices = 0, begun = 0, complete = 0, patterns = 0, edge_messages = 0;
  Nanoseconds busy = 0;
};

}  // namespace latecomer::shim
