// SPDX-License-Identifier: BSD-3-Clause
// One rank's schedule in flat arrays, and one run of it on MPI, operation by operation. A run may begin before the
// process arrives, with operations of the background lane in scratch memory. Threads may hand a run to each other, but
// only one thread at a time may use a run.
#pragma once

#include <algorithm>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule/pieces.hpp"
#include "shim/mpi/api.hpp"
#include "shim/patience.hpp"
#include "shim/runner/layout.hpp"

namespace latecomer::shim {

using core::Rank;

/// A schedule, with the work space of one run at a time.
struct Compiled {
  /// `pieces`: of messages whose elements are bytes, ascending.
  explicit Compiled(core::RankProgram program, const std::vector<core::Pieces>& pieces = {});
  ~Compiled();
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  std::vector<core::Operation> ops;
  std::vector<std::int32_t> dependent_begin, dependents;  // dependents of i: [begin[i], begin[i+1])
  std::vector<std::int32_t> initial_waiting;
  core::Elements scratch = 0;
  int messages = 0, foreground = 0;
  struct Indexed {
    core::OpId message;
    core::Buffer buffer;
    MPI_Datatype type;
  };
  std::vector<Indexed> indexed;      ///< messages that lie in pieces, ascending
  std::vector<core::Pieces> pieces;  ///< the same for gatherv and scatterv, whose element sizes each call brings
  // Work space.
  std::vector<std::int32_t> waiting, ready, held, active, finished;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Status> statuses;
  std::vector<void*> tickets;
};

/// The entry of a message in a list by message, or nullptr.
template <typename Entry>
const Entry* entry_of(const std::vector<Entry>& entries, core::OpId message) {
  const auto at = std::lower_bound(entries.begin(), entries.end(), message,
                                   [](const Entry& e, core::OpId m) { return e.message < m; });
  return at != entries.end() && at->message == message ? &*at : nullptr;
}

/// Carries a schedule's messages in another way than MPI's messages on one communicator. All functions but `done` and
/// `drop` return an MPI error code.
class Wire {
 public:
  /// `ticket`: identifies the message until `done` returns true for it.
  virtual int send(const void* data, MPI_Count count, MPI_Datatype type, Rank to, int channel, void** ticket) = 0;
  virtual int receive(void* data, MPI_Count count, MPI_Datatype type, Rank from, int channel, void** ticket) = 0;
  /// Whether the message is complete. `rc`: its MPI error code.
  virtual bool done(void* ticket, int* rc) = 0;
  /// Gives the ticket back before its message is complete.
  virtual void drop(void* ticket) = 0;

 protected:
  ~Wire() = default;
};

/// Blocks of any size and place. An element of the schedule is a block, a message is one block, and no block lies in
/// scratch memory.
struct Blocks {
  struct Side {
    char* base = nullptr;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Count extent = 0;
    const MPI_Count* counts = nullptr;        ///< [blocks]; nullptr: `count` for the only one
    const MPI_Aint* displacements = nullptr;  ///< [blocks], in extents
    MPI_Count count = 0;
    char* at(core::Elements block) const { return base + (displacements ? displacements[block] * extent : 0); }
    MPI_Count items(core::Elements block) const { return counts ? counts[block] : count; }
  };
  Side input, output;
  const Side& of(core::Buffer b) const { return b == core::Buffer::input ? input : output; }
};

/// Where a schedule runs.
struct Where {
  MPI_Comm comm = MPI_COMM_NULL;
  int context = 0;
  std::span<const Rank> world;  ///< comm rank -> rank in `comm`
  int self = 0;                 ///< own rank in `comm`
  Wire* wire = nullptr;         ///< carries the messages; `comm` then serves for copies to the rank itself only
};

/// Gets a call before a run posts a send, or a receive of a token.
class Herald {
 public:
  virtual void before_message(Rank peer) = 0;

 protected:
  ~Herald() = default;
};

/// Serves a schedule whose elements are not items of one datatype. All functions return an MPI error code. `id`: the
/// operation's number.
class Blockwise {
 public:
  virtual int send_blocks(const core::Operation& op, core::OpId id, Rank to, int tag, MPI_Comm comm,
                          MPI_Request* request) = 0;
  /// `there`: false if the message must arrive before it can be received. Then the run calls again.
  virtual int receive_blocks(const core::Operation& op, core::OpId id, Rank from, int tag, MPI_Comm comm,
                             MPI_Request* request, bool& there) = 0;
  virtual int copy_blocks(const core::Operation& op, int self, int tag, MPI_Comm comm) = 0;
  /// A message of `bytes` bytes was received. Returns an error if data are missing. Allocates nothing.
  virtual int accept_blocks(const core::Operation& op, core::OpId id, MPI_Count bytes) = 0;

 protected:
  ~Blockwise() = default;
};

/// A rank that fails (bad arguments, no memory, an operator that returns an error) still runs all messages of its
/// schedule, so that no rank waits for it forever. From then on it moves no data: it sends an empty message in place of
/// each message with data. Such a message is the mark of a failure, and a rank that receives it fails, too. So a rank
/// either has all data that its result depends on, or returns an error. Where a Wire carries the messages, a failure
/// ends the run instead.
class Running {
 public:
  Running() = default;
  ~Running() { free_slot_type(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  /// `herald`: gets every peer to which a send goes or from which a token comes; may be nullptr. `blocks`:
  /// nullptr for elements of one datatype; else foreground operations only.
  void begin_schedule(Compiled& program, const Where& where, Herald* herald, Blockwise* blocks = nullptr);
  /// Memory of at least layout.bytes_for(program.scratch) + 64 bytes.
  void give_scratch(char* memory, const Layout& layout);
  /// The process has arrived: sets its buffers, and the datatype and operator of the foreground operations.
  /// `items`: the number of items of `type` in an element of the schedule. They follow each other without gaps.
  /// `layout`: of an element.
  void set_buffers(char* input, char* output, MPI_Datatype type, MPI_Op op, const Layout& layout, MPI_Count items = 1);
  /// Sets the buffers of elements that are blocks of different sizes. `blocks` must stay until the run has ended.
  void set_buffers(const Blocks& blocks);
  /// This rank fails with an MPI error code. Without memory and buffers of its own it fails before it begins.
  void note_failure(int rc) {
    if (failure_ == MPI_SUCCESS) failure_ = rc;
  }
  /// The failure of this rank or of another, or MPI_SUCCESS. Final when the run is done.
  int failure() const { return failure_; }
  /// The exception of the program's operator. For this rank, it is a failure.
  const std::exception_ptr& thrown() const { return thrown_; }
  /// Starts the operations that are ready, and completes messages. Returns an MPI error code if the run cannot go on.
  /// `moved`: whether it started or completed an operation.
  int step(bool& moved);

  bool done() const { return done_ == program_->ops.size(); }
  bool foreground_done() const { return foreground_left_ == 0; }
  bool background_done() const { return program_->ops.size() - done_ == static_cast<std::size_t>(foreground_left_); }
  /// Every message has been given to MPI.
  bool all_posted() const { return unposted_ == 0; }
  /// Steps until `reached()`, and gives the core away meanwhile if `courteous`. Returns an MPI error code.
  template <typename Reached>
  int run_until(bool courteous, Reached reached) {
    Patience patience(courteous);
    int rc = MPI_SUCCESS;
    while (rc == MPI_SUCCESS && !reached()) {
      bool moved = false;
      const unsigned before = network_progress;
      rc = step(moved);
      // A nap while bytes move delays the next message.
      if (moved || network_progress != before) patience.reset();
      else patience.wait();
    }
    return rc;
  }
  /// Drops the pending messages after an error, or at the end if the process never entered the call.
  void drop_messages();

 private:
  void complete_operation(std::int32_t op);
  int start_operation(std::int32_t id);
  int post_message(std::int32_t id, bool& posted);
  struct Items {
    char* data;
    MPI_Count count;
    MPI_Datatype type;
  };
  Items items_of(const core::Slice& s) const;
  Items items_of(core::OpId message) const;
  int test_requests(int& count);
  int check_received(std::int32_t id, MPI_Status& status);
  void keep_unfinished();
  MPI_Count distance(core::Buffer b) const { return b == core::Buffer::scratch ? layout_.pitch : layout_.extent; }
  char* at(const core::Slice& s, core::Elements i = 0) const {
    return base_[static_cast<int>(s.buffer)] + (s.offset + i) * distance(s.buffer);
  }
  int reduce_elements(const core::Operation& op);
  int apply_operator(const void* in, void* inout, MPI_Count count);
  int copy_elements(const core::Operation& op) const;
  int make_slot_type();
  void free_slot_type();

  Compiled* program_ = nullptr;
  Where where_;
  Herald* herald_ = nullptr;
  Blockwise* blocks_ = nullptr;
  const Blocks* table_ = nullptr;
  Layout layout_;
  MPI_Datatype type_ = MPI_BYTE;
  MPI_Count per_element_ = 1;
  MPI_Datatype slot_type_ = MPI_DATATYPE_NULL;  ///< the type at the pitch of scratch memory, if that is not the extent
  MPI_Op op_ = MPI_OP_NULL;
  int failure_ = MPI_SUCCESS;
  std::exception_ptr thrown_;
  char* base_[core::kBuffers] = {};
  std::size_t head_ = 0, tail_ = 0, held_ = 0, done_ = 0;
  int active_ = 0, unposted_ = 0, foreground_left_ = 0;
  bool arrived_ = false;
};

}  // namespace latecomer::shim
