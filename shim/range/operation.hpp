// SPDX-License-Identifier: BSD-3-Clause
// Operations in flight. Every call that tests or waits advances all of them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "shim/range/hub.hpp"
#include "shim/runner/operands.hpp"

/// The operation behind a request.
struct latecomer_range_operation {
  latecomer_range_operation() { ++outstanding; }
  virtual ~latecomer_range_operation() { --outstanding; }
  latecomer_range_operation(const latecomer_range_operation&) = delete;
  latecomer_range_operation& operator=(const latecomer_range_operation&) = delete;
  /// Advances an operation that the library drives.
  virtual void step() {}
  /// Whether the operation is complete. Makes no progress itself.
  virtual bool look() { return complete; }
  /// Fills source in the range, tag and bytes of a receive. Other operations fill an empty status.
  virtual void fill(MPI_Status* status) const;
  bool complete = false;
  int rc = MPI_SUCCESS;
  latecomer_range_operation* next_discarded = nullptr;
  /// The number of operations of this process. Guarded by the library's lock.
  static inline int outstanding = 0;
};

namespace latecomer::range {

using Operation = latecomer_range_operation;

inline Hub& hub_of(const latecomer_range& r) { return *reinterpret_cast<Hub*>(r.hub); }
inline Rank to_mpi(const latecomer_range& r, int rank) { return r.first + rank * r.stride; }
/// The rank in the range of a rank of the hub's communicator; MPI_UNDEFINED if it is not a member.
int from_mpi(const Identity& where, int rank);
void fill_status(MPI_Status* status, int source, int tag, MPI_Count bytes);
void fill_received(MPI_Status* status, const Envelope& envelope, Rank source);
void empty_status(MPI_Status* status);

class PointToPoint final : public Operation {
 public:
  /// `message`: nullptr for an operation with MPI_PROC_NULL, which is complete at once.
  PointToPoint(Hub* hub, RangeMessage* message) : hub_(hub), message_(message) { look(); }
  ~PointToPoint() override;
  bool look() override;
  void fill(MPI_Status* status) const override;

 private:
  Hub* hub_;
  RangeMessage* message_;
};

/// The arguments of a collective.
struct Arguments {
  core::Collective op;
  Rank root = 0;
  MPI_Op reduction = MPI_OP_NULL;
  const void* send = nullptr;
  void* recv = nullptr;
  MPI_Count send_count = 0, recv_count = 0;
  MPI_Datatype send_type = MPI_DATATYPE_NULL, recv_type = MPI_DATATYPE_NULL;
  const MPI_Count *send_counts = nullptr, *recv_counts = nullptr;  ///< of collectives with blocks of different sizes
  const MPI_Aint *send_displacements = nullptr, *recv_displacements = nullptr;
};

/// A collective of core's catalogue that runs on the members of a range.
class RangeCollective final : public Operation, private shim::Wire {
 public:
  RangeCollective(const latecomer_range& range, const Arguments& arguments);
  ~RangeCollective() override;
  void step() override;

 private:
  int send(const void* data, MPI_Count count, MPI_Datatype type, Rank to, int channel, void** ticket) override;
  int receive(void* data, MPI_Count count, MPI_Datatype type, Rank from, int channel, void** ticket) override;
  bool done(void* ticket, int* rc) override;
  void drop(void* ticket) override;
  int begin_call(const Arguments& a);
  int begin_reduction(core::Call call, const Arguments& a);
  int begin_movement(core::Call call, const Arguments& a);
  int begin_irregular(core::Call call, const Arguments& a);
  /// Returns the number of elements of the call in an element of the schedule.
  MPI_Count compile_schedule(const core::Call& call, bool scales);

  const latecomer_range range_;
  const std::uint32_t number_;
  KeptType send_type_, recv_type_;
  std::shared_ptr<shim::Compiled> program_;
  shim::Running running_;
  std::unique_ptr<shim::Bytewise> bytes_;
  shim::Blocks blocks_;
  std::vector<char> scratch_, staged_;
  std::vector<MPI_Count> packed_counts_;
  std::vector<MPI_Aint> packed_places_;
};

/// The library's lock. A thread may take it again.
class Lock {
 public:
  void lock() {
    mutex_.lock();
    ++depth_;
  }
  void unlock() {
    --depth_;
    mutex_.unlock();
  }
  /// Returns false also if this thread has the lock: MPI may call us from within our own calls of MPI.
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    if (depth_++ == 0) return true;
    unlock();
    return false;
  }

 private:
  std::recursive_mutex mutex_;
  int depth_ = 0;
};

/// The state of the library in this process.
class Library {
 public:
  Lock lock;
  /// The hub of a communicator. The first call for a communicator is collective. Returns an MPI error class.
  int attach_hub(MPI_Comm comm, Hub** hub);
  void detach_hub(Hub* hub);
  void end_all();
  /// Advances every message and every operation. Returns an MPI error code.
  int progress();
  void drive_operation(Operation* operation) { driven_.push_back(operation); }
  void forget_operation(Operation* operation);
  /// Deletes the operation when it is complete. Takes no lock: MPI calls back with its own lock, for which the thread
  /// with the library's lock may wait.
  void discard_operation(Operation* operation);
  bool knows_hub(const Hub* hub) const;
  /// Whether a blocking collective may run straight: no operation would have to advance meanwhile, and no other thread
  /// may call.
  bool alone() const { return one_thread_ && Operation::outstanding == 0; }
  /// Whether a communicator is attached. MPI_Finalize detaches all.
  bool attached() const { return !hubs_.empty(); }

  /// borrow_memory(): memory of at least `bytes` for a collective. give_back_memory(): returns it, so that it stays
  /// mapped.
  std::vector<char> borrow_memory(std::size_t bytes);
  void give_back_memory(std::vector<char> memory);
  struct Schedule {
    std::shared_ptr<shim::Compiled> program;
    MPI_Count items = 1;  ///< an element of the schedule is so many elements of the call
  };
  /// The schedule of a rank of a range, from a cache unless a running operation uses it. `scales`: one schedule may
  /// serve all short lengths.
  Schedule find_schedule(const core::Call& call, Rank me, bool scales);

 private:
  void delete_discarded(bool incomplete);
  struct Kept {
    core::Call call;
    Rank me = -1;
    std::shared_ptr<shim::Compiled> program;
  };
  /// Serves the counts up to `most` like the call's count, which is 1.
  struct KeptClass : Kept {
    core::Elements most = 0;
  };
  std::vector<std::unique_ptr<Hub>> hubs_;
  std::vector<Operation*> driven_;
  std::vector<Kept> kept_;
  std::vector<KeptClass> classes_;  // by the hash of the call
  std::vector<std::vector<char>> spare_;
  std::atomic<Operation*> discarded_{nullptr};
  std::size_t next_victim_ = 0;
  bool one_thread_ = false;
  int keyval_ = MPI_KEYVAL_INVALID, end_keyval_ = MPI_KEYVAL_INVALID;
};
Library& library();

}  // namespace latecomer::range
