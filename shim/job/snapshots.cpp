// SPDX-License-Identifier: BSD-3-Clause
// Writes snapshots to disk in case the process is killed.
#include <algorithm>

#include "shim/dispatch/exchange/branch.hpp"
#include "shim/job/parts.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {

bool write_spool(Job& j, bool finished) {
  std::vector<profiles::LiveLog>& live = j.live;
  const Nanoseconds begin = now();
  refresh(j, finished);
  live.clear();
  // Room at once, since a steady program must not allocate at a later snapshot. Derived: the log at hand, two epochs
  // that are over, and rarely more than three under way.
  constexpr std::size_t kLogsOfOne = 6;
  std::size_t communicators = 0;
  for (const CommState* s = j.states; s; s = s->next) ++communicators;
  live.reserve(kLogsOfOne * communicators);
  for (const CommState* s = j.states; s; s = s->next)
    if (!s->log.empty() && !s->foreign && s->size > 1 && !s->world.empty())
      live.push_back(
          {s->identity, s->size, s->rank, s->world[static_cast<std::size_t>(s->rank)], s->logged_from, s->log});
  const auto held = add_open_logs(live, false);
  const auto result = j.spool.write(j.mine, live);
  if (!finished) write_prometheus(j);
  const Nanoseconds end = now();
  // While one rank writes, the other ranks wait for it sooner or later, so the shares of all ranks add up. The first
  // writes also create the two files, so their time counts as kAsIfMade at most. Derived: the second snapshot then
  // follows after 0.1 s, and not after 2,000 times the creation of a file.
  constexpr Nanoseconds kAsIfMade = 50'000;
  j.spool_next = end + kPauseAfterWriting * (j.spool.made() ? end - begin : std::min(end - begin, kAsIfMade));
  if (!result && (j.rank == 0 || !j.together)) warn("%s", result.error().c_str());
  return static_cast<bool>(result);
}

void keep_on_disk(bool due, Nanoseconds at) {
  // Without an end of an epoch. A kill loses the calls since the last snapshot: those of 5 s, or of the longer pause of
  // kPauseAfterWriting. A shorter time costs more writes, a longer one loses more calls.
  constexpr Nanoseconds kAtLeastEvery = 5'000'000'000;
  Job& j = job();
  if (due) {
    // Take new frames now: a steady program must not allocate later, at the next snapshot.
    const JobLock lock;
    take_frames(j);
  }
  const bool first = j.spool_late == 0;
  if (at < j.spool_next || (!j.spool.begun() && j.prometheus.empty())) {
    j.spool_late = std::max(at, j.spool_next.load()) + kAtLeastEvery;
    return;
  }
  const JobLock lock;
  if (due || !first) write_spool(j, false);
  j.spool_late = now() + kAtLeastEvery;
}

}  // namespace latecomer::shim
