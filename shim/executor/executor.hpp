// SPDX-License-Identifier: BSD-3-Clause
// The executor: runs one rank's schedule with non-blocking point-to-point messages on the private
// communicator, in the tag context of the program's communicator. Schedules are compiled once and kept;
// in steady state nothing is allocated.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/agreement/agreement.hpp"
#include "shim/runner/compile.hpp"
#include "shim/runner/operands.hpp"
#include "shim/state/communicator.hpp"

namespace latecomer::shim {

class Irregular;      // shim/executor/irregular.hpp
struct ObservedCall;  // shim/executor/call.hpp
struct OwnPattern;    // shim/engine/edges.hpp

/// Memory for the schedule and the decision of a call that find none: with it, this rank can tell the others that it
/// failed. Runs `step` again with the reserve if it throws std::bad_alloc.
void spend_reserve() noexcept;
template <typename Step>
auto with_reserve(Step step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    spend_reserve();
    return step();
  }
}

/// Ends the job, where this rank would otherwise hang it.
void no_memory_left(const char* purpose) noexcept;

struct Executor {
  Executor();
  ~Executor();
  /// Runs the algorithm that was decided for the call. Returns an MPI error code, after it has called the
  /// communicator's error handler.
  int run_call(ObservedCall& call);
  /// After run_call(): if the program's operator threw an exception there, throws it now.
  void rethrow_exception() {
    if (thrown_) [[unlikely]]
      std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  /// The numbers of schedules that this process built inside a collective, and ahead of one.
  static std::atomic<int> built_inside, built_ahead;

  /// Remembers a call that may be dispatched, for prepare_schedules(). `hash`: the signature's.
  void note_call(const CommState& state, const core::Signature& signature, std::uint64_t hash,
                 const Operands& operands);
  /// Builds the schedules of a plan that is not in force yet, for the kinds of calls that were noted. Keeps those that
  /// the plan in force uses, too.
  void prepare_schedules(CommState& state, const core::Plan& plan);
  /// A new plan is in force: drops the schedules for the previous plan's patterns, and takes over the prepared ones.
  void change_plans();

 private:
  std::vector<std::pair<ScheduleKey, std::shared_ptr<Compiled>>> kept_, prepared_;
  bool runs_ = false;  ///< inside run_call(), before the error handler
  std::exception_ptr thrown_;
  struct Seen {
    std::uint64_t signature = 0;
    core::Signature call;
    ScheduleKey shape;  ///< with neither algorithm nor pattern
    bool known = false;
  };
  /// Derived: 128 entries of 96 bytes take 12 KiB per communicator. In a full table, a kind replaces the kind with
  /// the same index. The schedule of the replaced kind is then built inside its call, not ahead of the call.
  static constexpr std::size_t kKinds = 128;
  std::vector<Seen> seen_;  ///< by signature modulo the size; doubles at a collision up to kKinds entries
  std::size_t next_victim_ = 0;
  std::vector<char> scratch_, staged_;
  std::unique_ptr<Irregular> irregular_;

  /// The key of a call of that shape under a decision.
  static ScheduleKey key_of(ScheduleKey shape, const core::Decision& decision);
  /// The part of the key that comes from the call. note_call() and run_call() must agree on it.
  static ScheduleKey shape_of(const CommState& state, const core::Signature& signature, const Operands& operands);
  Compiled& find_or_compile(CommState& state, const ScheduleKey& key);
  /// run_call() as far as the error handler. `failure`: set to why this rank could not take part.
  int run_decided(ObservedCall& call, int& failure);
  /// The following functions run the schedule of `key`. `operands`: those of the call, in another form. `failure`: an
  /// MPI error code if this rank has failed before (Running::note_failure). `own`: the pattern of this call alone. A
  /// std::bad_alloc leaves them before the first message.
  int run_by_kind(const ObservedCall& call, const ScheduleKey& key, const Operands& operands, const OwnPattern* own,
                  int failure);
  int run_movement(const ObservedCall& call, const ScheduleKey& key, const Operands& operands, const OwnPattern* own,
                   int failure);
  int run_irregular(const ObservedCall& call, const ScheduleKey& key, const Operands& operands,
                    const core::Pattern* own, int failure);
  /// `layout`: of the operands' datatype.
  int run_schedule(CommState& state, const ScheduleKey& key, const Operands& operands, const Layout& layout,
                   const core::Pattern* own, int failure);
};

}  // namespace latecomer::shim
