// SPDX-License-Identifier: BSD-3-Clause
// The one currency of latecomer: a rank's schedule, generated lazily, operation by operation.
// The same schedule is executed on MPI (shim), simulated (core/model) and verified (core/verify/verify).
// Owns the shape of operations; knows nothing of MPI, time or any algorithm.
#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

#include "core/base/types.hpp"

namespace latecomer::core {

/// Index of an operation in its rank's list. kNoOp stands for "nothing to wait for".
using OpId = std::int32_t;
inline constexpr OpId kNoOp = -1;

/// Messages of one pair of ranks are matched by channel. Two messages on the same channel between the
/// same pair must be ordered by dependencies on both sides; the verifier enforces it.
inline constexpr int kChannels = 4000;

/// Operations that are generated ahead of those that have started, per rank, where a schedule is generated as it runs.
/// More than any algorithm's own window reaches ahead (kWindow steps of at most five operations; of late_exchange a way
/// of 144 messages), so it never delays one; a test compares with no limit.
inline constexpr int kLookahead = 256;

enum class OpKind : std::uint8_t { send, recv, reduce, copy };
enum class Buffer : std::uint8_t { input, output, scratch };
inline constexpr int kBuffers = 3;

/// Foreground operations wait until the local process has arrived in the call; background ones do not.
enum class Lane : std::uint8_t { foreground, background };

/// A range of elements of one buffer: never a pointer, so that a schedule means the same everywhere.
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

/// One step of one rank. `src` is read by send, reduce and copy; `dst` is written by recv, copy and
/// reduce. reduce means dst := src o dst, element by element: src is the LEFT operand, as in
/// MPI_Reduce_local. An operation starts when every operation in `deps` is complete.
struct Operation {
  static constexpr int kMaxDeps = 8;
  OpKind kind = OpKind::copy;
  Lane lane = Lane::foreground;
  std::uint8_t dep_count = 0;
  Rank peer = -1;            // send, recv
  std::int32_t channel = 0;  // send, recv; in [0, kChannels)
  std::int32_t round = -1;   // for people; -1: none
  Slice dst, src;
  std::array<OpId, kMaxDeps> deps{};

  /// Adds dependencies; kNoOp is ignored, duplicates are kept once.
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
  /// Elements moved or combined.
  Elements count() const { return kind == OpKind::send ? src.count : dst.count; }
  bool communicates() const { return kind == OpKind::send || kind == OpKind::recv; }

 private:
  void add(OpId id) {
    if (id == kNoOp) return;
    for (int i = 0; i < dep_count; ++i)
      if (deps[i] == id) return;
    if (dep_count == kMaxDeps) std::terminate();  // a bug in an algorithm, found by its first test
    deps[dep_count++] = id;
  }
};

inline Operation send(Rank to, Slice what, int channel) {
  Operation op;
  op.kind = OpKind::send, op.peer = to, op.src = what, op.channel = channel;
  return op;
}
inline Operation recv(Rank from, Slice into, int channel) {
  Operation op;
  op.kind = OpKind::recv, op.peer = from, op.dst = into, op.channel = channel;
  return op;
}
/// into := left o into
inline Operation reduce(Slice into, Slice left) {
  Operation op;
  op.kind = OpKind::reduce, op.dst = into, op.src = left;
  return op;
}
inline Operation copy(Slice into, Slice from) {
  Operation op;
  op.kind = OpKind::copy, op.dst = into, op.src = from;
  return op;
}

/// Declares how many elements of scratch the schedule uses; may be given again with a larger number.
struct ScratchNeed {
  Elements elements = 0;
};

/// A lazily generated list of operations: an algorithm is a coroutine that returns one.
///   const OpId got = co_yield recv(left, slice, channel).after(sent);
/// Not thread-safe; single pass; arguments of the coroutine must outlive it.
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

  /// The next operation, or nullptr at the end. Valid until the following call.
  const Operation* next() {
    if (!handle_ || handle_.done()) return nullptr;
    handle_.resume();
    return handle_.done() ? nullptr : &handle_.promise().current;
  }
  /// Scratch declared so far, in elements.
  Elements scratch_elements() const { return handle_.promise().scratch; }

 private:
  using Handle = std::coroutine_handle<promise_type>;
  explicit Schedule(Handle handle) : handle_(handle) {}
  Handle handle_;
};

}  // namespace latecomer::core
