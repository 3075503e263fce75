// SPDX-License-Identifier: BSD-3-Clause
// Records the exits of calls that complete through a request.
#include "shim/call/completion.hpp"

#include <algorithm>

#include "shim/state/communicator.hpp"
#include "shim/state/shared.hpp"

namespace latecomer::shim {

void finish_later(CommState* state, std::uint64_t n, const profiles::CallRecord& record, int comm_size, bool rested,
                  profiles::Tally share) {
  const JobLock lock;
  if (state && record.kind != core::CallKind::persistent) write_exit(lock, *state, n, record.exit);
  lock->queue.add(&lock->mine.local[{record.site, record.op, comm_size, record.callers}],
                  record.exit == 0 ? -1 : std::max<Nanoseconds>(record.exit - record.arrival, 0),
                  core::is_irregular(record.op) ? -1 : record.bytes, rested, share);
}

}  // namespace latecomer::shim
