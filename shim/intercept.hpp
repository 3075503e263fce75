// SPDX-License-Identifier: BSD-3-Clause
// What happens around an intercepted collective: describe it, count it, decide, run it, record it.
// The wrappers in wrap.cpp and fortran.cpp are made of these templates.
#pragma once

#include <cerrno>

#include "shim/executor.hpp"
#include "shim/job.hpp"
#include "shim/requests.hpp"

namespace latecomer::shim {

/// now() on the job's common clock.
Nanoseconds common_now();

/// Fills U(n) from the arguments of one call; see collectives.def.
class Describe {
 public:
  Describe(const CommState& state, core::Collective op, core::CallKind kind) : state_(state) {
    signature.op = op;
    signature.kind = kind;
  }
  core::Signature signature;
  Operands operands;

  int size() const { return state_.size; }
  bool is(int root) const { return state_.rank == root; }
  Describe& rooted(int root) {
    signature.root = root;
    return *this;
  }
  void empty() { signature.bytes = 0; }
  void unsized() { signature.bytes = -1; }
  void total(MPI_Count count, MPI_Datatype type, int times) { signature.bytes = bytes_of(count, type, times); }
  void either(bool first, MPI_Count count, MPI_Datatype type, MPI_Count other_count, MPI_Datatype other_type) {
    if (first) total(count, type, size());
    else total(other_count, other_type, size());
  }
  template <typename Count>
  void sum(const Count* counts, MPI_Datatype type) {
    MPI_Count all = 0;
    for (int i = 0; counts && i < size(); ++i) all += counts[i];
    signature.bytes = bytes_of(all, type, 1);
  }
  void reduction(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op);

 private:
  static core::Bytes bytes_of(MPI_Count count, MPI_Datatype type, int times);
  const CommState& state_;
};

/// One intercepted call from arrival to exit.
struct Call {
  CommState* state = nullptr;
  core::Signature signature;
  core::Decision decision;
  profiles::CallRecord record;
  std::uint64_t n = 0;
};

/// Counts the call, does what the agreement asks for at this point, and decides.
void begin_call(Call& call, const Describe& description, void* return_address) noexcept;
/// Records the call; may agree on the communicator's identity.
void end_call(Call& call) noexcept;
/// A non-blocking call was started or a persistent one made: remembers the request.
void defer_call(Call& call, MPI_Request request) noexcept;
/// Exit time of a call that completed later, or of a blocking one.
void finish_record(CommState* state, std::uint64_t n, const profiles::CallRecord& record, int comm_size);

/// Set while latecomer is on the stack: MPI calls made from inside are not observed.
extern thread_local bool inside;

template <typename Fill, typename Native>
int intercept(core::Collective op, core::CallKind kind, MPI_Comm comm, void* return_address, MPI_Request* request, Fill fill, Native native) {
  if (!active.load(std::memory_order_acquire) || inside) return native();
  const int saved = errno;
  CommState* state = state_of(comm);
  if (!state) return native();
  inside = true;
  Describe description(*state, op, kind);
  fill(description);
  Call call;
  call.state = state;
  begin_call(call, description, return_address);
  inside = false;  // callbacks of user-defined operators may call MPI
  errno = saved;
  int rc;
  if (call.decision.algorithm) {
    inside = true;
    rc = state->executor->run(*state, call.decision, call.signature, description.operands);
    inside = false;
  } else {
    rc = native();
  }
  const int after = errno;
  inside = true;
  if (kind == core::CallKind::blocking) end_call(call);
  else if (rc == MPI_SUCCESS) defer_call(call, *request);
  inside = false;
  errno = after;
  return rc;
}

}  // namespace latecomer::shim
