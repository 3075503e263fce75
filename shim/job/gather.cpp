// SPDX-License-Identifier: BSD-3-Clause
// Gathers the profile of all ranks at the end of the job.
#include <algorithm>

#include "profiles/profile.hpp"
#include "shim/dispatch/exchange/exchange.hpp"
#include "shim/dispatch/executor/executor.hpp"
#include "shim/job/parts.hpp"
#include "shim/log.hpp"
#include "shim/state/post.hpp"
#include "shim/waiting/alive.hpp"

namespace latecomer::shim {
namespace {

// The longest wait for logs that a communicator's leader may never receive. Afterwards, the profile omits them. A
// shorter wait could omit logs to a rank without a core, a longer one delays the end of the job.
constexpr Nanoseconds kDrainWait = 30'000'000'000;

void write_whole(Job& j, std::vector<profiles::Contribution> parts) {
  std::vector<std::string> never_ran;
  const auto result = profiles::write_file(
      j.output, [&](const profiles::Sink& sink) { profiles::write_profile(std::move(parts), sink, &never_ran); });
  std::string lines;
  for (const std::string& line : never_ran) lines += (lines.empty() ? "" : "; ") + line;
  if (!lines.empty()) warn("a rule's algorithm never ran: %s", lines.c_str());
  if (!result) warn("%s", result.error().c_str());
  else say(1, "profile written to %s", j.output.c_str());
  say(2, "schedules built: %d ahead of their plan, %d inside a call; exchanges planned: %llu",
      Executor::built_ahead.load(), Executor::built_inside.load(), static_cast<unsigned long long>(plans_made()));
}

/// Waits courteously for `done`. Returns false if a rank has died that the others wait for (RankWait).
template <typename Done>
bool wait_until(Done done) {
  RankWait wait;
  while (!done())
    if (!wait.again()) return false;
  return true;
}

/// Waits until all ranks are here. Writes a snapshot before a long wait, because the launcher may end the job
/// meanwhile.
bool meet(Job& j, void (*meanwhile)(Job&)) {
  MPI_Request all_here = MPI_REQUEST_NULL;
  PMPI_Ibarrier(j.comm, &all_here);
  RankWait wait;
  for (int done = 0;;) {
    PMPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
    meanwhile(j);
    if (done) return true;
    if (wait.became_long() && !j.profile_gathered) {
      const JobLock lock;
      write_spool(j, false);
    }
    if (!wait.again()) return false;
  }
}

}  // namespace

bool gather_profile(Job& j) {
  const auto collect_all = [](Job& job_) {
    for (CommState* s = job_.states; s; s = s->next) collect(*s);
    sweep_outgoing();
  };
  if (!meet(j, collect_all)) return false;
  for (CommState* s = j.states; s; s = s->next) collect(*s), note_decisions(*s), retain_log(*s), s->log.clear();
  // The second barrier: no rank sends its profile until all ranks have stopped receiving logs of any tag.
  retain_strays();
  drain_outgoing(now() + kDrainWait);
  if (!meet(j, [](Job&) { retain_strays(); })) return false;
  say(2, "announcements of communicators that are gone: %d", dropped_strays);
  if (j.retained_missed > 0)
    warn("%zu calls have no arrival patterns: the logs kept until the end were full", j.retained_missed);
  refresh(j, true);
  j.profile_gathered = true;
  bool whole = true;
  if (j.rank != 0) {
    std::string bytes;
    j.mine.serialize(bytes);
    MPI_Request sent = MPI_REQUEST_NULL;
    PMPI_Isend_c(bytes.data(), static_cast<MPI_Count>(bytes.size()), MPI_BYTE, 0, kFinalChannel, j.comm, &sent);
    whole = wait_until([&] {
      int done = 0;
      PMPI_Test(&sent, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  } else {
    std::vector<profiles::Contribution> parts;
    parts.push_back(std::move(j.mine));
    int missing = j.size - 1;
    while (missing > 0 && whole) {
      MPI_Message message;
      MPI_Status status;
      whole = wait_until([&] {
        int there = 0;
        PMPI_Improbe(MPI_ANY_SOURCE, kFinalChannel, j.comm, &there, &message, &status);
        return there != 0;
      });
      if (!whole) break;
      int size = 0;
      PMPI_Get_count(&status, MPI_BYTE, &size);
      std::string bytes(static_cast<std::size_t>(std::max(size, 0)), '\0');
      PMPI_Mrecv(bytes.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      profiles::Contribution part;
      if (profiles::Contribution::deserialize(bytes, part)) parts.push_back(std::move(part));
      --missing;
    }
    if (missing > 0) warn("%d ranks did not send their part of the profile", missing);
    write_whole(j, std::move(parts));
  }
  // The snapshots stay until the profile is written. Rank 0 may take long for a large profile.
  return meet(j, [](Job&) {}) && whole;
}

}  // namespace latecomer::shim
