// SPDX-License-Identifier: BSD-3-Clause
// A rank's schedule: a list of operations that is generated lazily, one operation at a time.
// The shim executes schedules on MPI, core/model simulates them, and core/verify verifies them.
// Owns the shape of operations. Knows nothing of MPI, of time, or of any algorithm.
#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

#include "core/collective/call.hpp"

namespace latecomer::core {

/// Index of an operation in its rank's list. kNoOp means that no operation has to complete first.
using OpId = std::int32_t;
inline constexpr OpId kNoOp = -1;

/// Number of channels. Messages between two ranks match by channel. Dependencies must order two messages on the same
/// channel between the same ranks, on both sides; the verifier enforces this.
/// Derived: shim/tags.hpp gives each context 4096 tags, and the shim uses the tags from 4000 on for itself.
inline constexpr int kChannels = 4000;

/// How many operations a rank generates ahead of those that have started, where a schedule is generated as it runs.
/// Derived: the limit never delays an operation. The most that wait at once are four operations for each segment of a
/// chain, whose number is kChainSegments at most. A test compares with an unlimited lookahead.
inline constexpr int kChainSegments = 512;
inline constexpr int kLookahead = 4 * kChainSegments;

enum class OpKind : std::uint8_t { send, recv, reduce, copy };
inline constexpr int kBuffers = 3;

/// Foreground operations start after the local process has arrived in the call. Background operations do not wait for
/// the arrival.
enum class Lane : std::uint8_t { foreground, background };

/// A range of elements of one buffer. Holds no pointer, so a schedule has the same meaning in every process.
struct Slice {
  Buffer buffer = Buffer::scratch;
  Elements offset = 0;
  Elements count = 0;
  Elements end() const { return offset + count; }
  bool overlaps(const Slice& o) const {
    return buffer == o.buffer && offset < o.end() && o.offset < end() && count > 0 && o.count > 0;
  }
  bool operator==(const Slice&) const = default;
};

/// One operation of one rank. The kinds send, reduce and copy read `src`. The kinds recv, reduce and copy write `dst`.
/// A reduce computes dst := src o dst for each element: src is the LEFT operand, as in MPI_Reduce_local.
/// An operation starts when every operation in `deps` is complete.
struct Operation {
  static constexpr int kMaxDeps = 8;  ///< measured: all algorithms of the catalogue on 2 to 32 ranks need at most 5
  OpKind kind = OpKind::copy;
  Lane lane = Lane::foreground;
  std::uint8_t dep_count = 0;
  Rank peer = -1;            // send, recv
  std::int32_t channel = 0;  // send, recv; in [0, kChannels)
  std::int32_t round = -1;   // for listings only; -1: none
  Slice dst = {}, src = {};
  std::array<OpId, kMaxDeps> deps{};

  /// Adds dependencies. Ignores kNoOp and duplicates.
  template <typename... Ids>
  Operation after(Ids... ids) const {
    Operation out = *this;
    (out.add(ids), ...);
    return out;
  }
  Operation in_round(int r) const {
    Operation out = *this;
    out.round = r;
    return out;
  }
  Operation in_lane(Lane which) const {
    Operation out = *this;
    out.lane = which;
    return out;
  }
  /// The number of elements that the operation moves or combines.
  Elements count() const { return kind == OpKind::send ? src.count : dst.count; }
  bool communicates() const { return kind == OpKind::send || kind == OpKind::recv; }
  bool operator==(const Operation&) const = default;

 private:
  void add(OpId id) {
    if (id == kNoOp) return;
    for (int i = 0; i < dep_count; ++i)
      if (deps[i] == id) return;
    if (dep_count == kMaxDeps) std::terminate();  // an error in an algorithm, which its first test finds
    deps[dep_count++] = id;
  }
};

inline Operation send(Rank to, Slice what, int channel) {
  return {.kind = OpKind::send, .peer = to, .channel = channel, .src = what};
}
inline Operation recv(Rank from, Slice into, int channel) {
  return {.kind = OpKind::recv, .peer = from, .channel = channel, .dst = into};
}
/// into := left o into
inline Operation reduce(Slice into, Slice left) { return {.kind = OpKind::reduce, .dst = into, .src = left}; }
inline Operation copy(Slice into, Slice from) { return {.kind = OpKind::copy, .dst = into, .src = from}; }

/// Declares the number of scratch elements that the schedule uses. A schedule may declare a larger number later.
struct ScratchNeed {
  Elements elements = 0;
};

/// A lazily generated list of operations. An algorithm is a coroutine that returns a Schedule:
///   const OpId got = co_yield recv(left, slice, channel).after(sent);
/// Supports a single pass. Not thread-safe. Reference arguments of the coroutine must outlive the Schedule.
class Schedule {
 public:
  struct promise_type {
    Operation current;
    OpId next_id = 0;
    Elements scratch = 0;

    Schedule get_return_object() { return Schedule(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }

    struct Yield {
      OpId id;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<>) const noexcept {}
      OpId await_resume() const noexcept { return id; }
    };
    Yield yield_value(const Operation& op) {
      current = op;
      return Yield{next_id++};
    }
    std::suspend_never yield_value(ScratchNeed need) {
      if (need.elements > scratch) scratch = need.elements;
      return {};
    }
  };

  Schedule(Schedule&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Schedule& operator=(Schedule&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Schedule() {
    if (handle_) handle_.destroy();
  }

  /// The next operation, or nullptr at the end. The pointer is valid until the next call.
  const Operation* next() {
    if (!handle_ || handle_.done()) return nullptr;
    handle_.resume();
    return handle_.done() ? nullptr : &handle_.promise().current;
  }
  /// The scratch size declared so far, in elements.
  Elements scratch_elements() const { return handle_.promise().scratch; }

 private:
  using Handle = std::coroutine_handle<promise_type>;
  explicit Schedule(Handle handle) : handle_(handle) {}
  Handle handle_;
};

}  // namespace latecomer::core
