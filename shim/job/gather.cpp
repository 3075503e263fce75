// SPDX-License-Identifier: BSD-3-Clause
// Gathers the profile of all ranks at the end of the job.
#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "profiles/format/profile.hpp"
#include "shim/dispatch/exchange/exchange.hpp"
#include "shim/dispatch/executor/executor.hpp"
#include "shim/guard.hpp"
#include "shim/job/parts.hpp"
#include "shim/log.hpp"
#include "shim/sites/names.hpp"
#include "shim/state/post.hpp"
#include "shim/waiting/alive.hpp"

namespace latecomer::shim {
namespace {

// The longest wait for logs that a communicator's leader may never receive. Afterwards, the profile omits them. A
// shorter wait could omit logs to a rank without a core, a longer one delays the end of the job.
constexpr Nanoseconds kDrainWait = 30'000'000'000;

// Derived: the merged sites and the JSON values of a profile take less than four times the parts, and these amounts for
// a small job. The texts of the 256 decisions of a leader take 1 KiB each.
constexpr std::size_t kForProfile = 8 << 20, kForDecisions = 1 << 20;

/// Throws unless so much memory is to be had. nlohmann/json needs this look ahead: its destructors allocate, and would
/// end a process without memory.
void need_memory(std::size_t bytes) {
  void* some = ::operator new(bytes);
  ::operator delete(some);
}

/// Returns whether the profile is on disk.
bool write_whole(Job& j, std::vector<profiles::Contribution>& parts) {
  std::vector<std::string> never_ran;
  const Nanoseconds begin = now();
  const auto result = profiles::write_profile_file(j.output, j.replaces, [&](const profiles::Sink& sink) {
    profiles::write_profile(parts, sink, &never_ran, name_frames);
  });
  if (result) j.written = *result, j.wrote = now() - begin;
  std::string lines;
  for (const std::string& line : never_ran) lines += (lines.empty() ? "" : "; ") + line;
  if (!lines.empty()) warn("a rule's algorithm never ran: %s", lines.c_str());
  if (!result && j.spool.written())
    warn("%s; the snapshots stay: to get a profile, run latecomer recover %s", result.error().c_str(),
         j.spool.directory().c_str());
  else if (!result && !j.loss_said) warn("%s; the profile is lost", result.error().c_str());
  else if (result) say(*result == j.output ? 1 : 0, "profile written to %s", result->c_str());
  say(2, "schedules built: %d ahead of their plan, %d inside a call; exchanges planned: %llu",
      Executor::built_ahead.load(), Executor::built_inside.load(), static_cast<unsigned long long>(plans_made()));
  return static_cast<bool>(result);
}

/// Waits courteously for `done`. Returns false if a rank has died that the others wait for (RankWait).
template <typename Done>
bool wait_until(Done done) {
  RankWait wait;
  while (!done())
    if (!wait.again()) return false;
  return true;
}

bool wait_for(MPI_Request& request) {
  return wait_until([&] {
    int done = 0;
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

/// Does local work for arrival patterns. Without memory they are lost, and this rank goes on, because the others wait.
template <typename Work>
void try_patterns(Work work) {
  if (const Outcome done = attempt(work); !done) warn("some arrival patterns are lost: %s", done.why);
}

/// Waits until all ranks are here. Writes a snapshot before a long wait, because the launcher may end the job
/// meanwhile.
bool meet(Job& j, void (*meanwhile)(Job&)) {
  MPI_Request all_here = MPI_REQUEST_NULL;
  PMPI_Ibarrier(j.comm, &all_here);
  RankWait wait;
  for (int done = 0;;) {
    PMPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
    try_patterns([&] { meanwhile(j); });
    if (done) return true;
    if (wait.became_long() && !j.profile_gathered)
      attempt([&] {
        const JobLock lock;
        write_spool(j, false);
      });
    if (!wait.again()) return false;
  }
}

/// Whether all ranks say `good`. Returns `cut` if a rank dies first.
Gathered agree(Job& j, bool good) {
  static int all;  // MPI may still write it after a wait that was given up
  all = good;
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Iallreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, j.comm, &request);
  return !wait_for(request) ? Gathered::cut : all != 0 ? Gathered::whole : Gathered::partly;
}

/// The messages of a part: its size, where 0 means that the rank could not make it; rank 0's answer, 0 without memory
/// for it; the part. Never freed, because MPI may still use them after a wait that was given up.
long long part_size, part_wanted;
std::string& part_bytes() {
  alignas(std::string) static char place[sizeof(std::string)];
  static auto& bytes = *new (place) std::string;
  return bytes;
}

bool send(const Job& j, const void* data, std::size_t size, int to) {
  MPI_Request sent = MPI_REQUEST_NULL;
  PMPI_Isend_c(data, static_cast<MPI_Count>(size), MPI_BYTE, to, kFinalChannel, j.comm, &sent);
  return wait_for(sent);
}

bool receive(const Job& j, void* data, std::size_t size, int from) {
  MPI_Request received = MPI_REQUEST_NULL;
  PMPI_Irecv_c(data, static_cast<MPI_Count>(size), MPI_BYTE, from, kFinalChannel, j.comm, &received);
  return wait_for(received);
}

/// Returns whether the part has left, or nothing if a rank died.
std::optional<bool> send_part(Job& j) {
  const Outcome made = attempt([&] {
    refresh(j, true);
    j.mine.serialize(part_bytes());
  });
  if (!made) warn("the profile lacks this rank: %s", made.why);
  part_size = made ? static_cast<long long>(part_bytes().size()) : 0;
  if (!send(j, &part_size, sizeof part_size, 0)) return {};
  if (part_size == 0) return false;
  if (!receive(j, &part_wanted, sizeof part_wanted, 0)) return {};
  if (part_wanted == 0) return false;
  if (!send(j, part_bytes().data(), part_bytes().size(), 0)) return {};
  return true;
}

/// Receives the next part, of `rank`. Returns whether it is good, or nothing if a rank died.
std::optional<bool> receive_part(Job& j, std::vector<profiles::Contribution>& parts, int& rank) {
  MPI_Status status;
  const bool came = wait_until([&] {
    int there = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, kFinalChannel, j.comm, &there, &status);
    return there != 0;
  });
  if (!came || !receive(j, &part_size, sizeof part_size, rank = status.MPI_SOURCE)) return {};
  if (part_size == 0) return false;
  Outcome done = attempt([&] { part_bytes().resize(static_cast<std::size_t>(part_size)); });
  part_wanted = done ? 1 : 0;
  if (!send(j, &part_wanted, sizeof part_wanted, rank)) return {};
  if (done && !receive(j, part_bytes().data(), part_bytes().size(), rank)) return {};
  bool good = false;
  if (done)
    done = attempt([&] {
      profiles::Contribution part;
      good = profiles::Contribution::deserialize(part_bytes(), part);
      if (good) parts.push_back(std::move(part));
    });
  if (!done) warn("no part of rank %d: %s", rank, done.why);
  return good && done;
}

/// On rank 0. Returns whether the profile is written with all parts, or nothing if a rank died. The contribution of
/// this rank is then back in j.mine.
std::optional<bool> write_parts(Job& j) {
  std::vector<profiles::Contribution> parts;
  attempt([&] { parts.reserve(static_cast<std::size_t>(j.size)); });
  int missing = j.size - 1, failed = 0, first = j.size;
  std::size_t received = 0;
  bool died = false;
  if (const Outcome mine = attempt([&] { refresh(j, true); }); !mine) {
    warn("the profile lacks data of this rank: %s", mine.why);
    ++failed, first = 0;
  }
  for (; missing > 0 && !died; --missing) {
    int rank = 0;
    const std::optional<bool> good = receive_part(j, parts, rank);
    died = !good.has_value();
    if (good == false) ++failed, first = std::min(first, rank);
    else received += part_bytes().size();
  }
  if (died) warn("%d ranks did not send their part of the profile", missing + 1);
  if (failed > 0)
    warn("%d of %d ranks could not send their part of the profile, the first of them rank %d%s%s", failed, j.size,
         first, j.spool.begun() ? "; the last snapshots of all ranks are in " : "", j.spool.directory().c_str());
  bool written = false;
  const Outcome done = attempt([&] {
    need_memory(kForProfile + 4 * received);
    take_warnings(j);
    parts.push_back(std::move(j.mine));
    written = write_whole(j, parts);
  });
  if (!done)
    warn("cannot write '%s': %s%s%s", j.output.c_str(), done.why,
         j.spool.begun() ? "; the last snapshots of all ranks are in " : "", j.spool.directory().c_str());
  if (written && failed == 0 && !died) return true;
  for (profiles::Contribution& part : parts)
    if (part.rank == j.rank) attempt([&] { j.mine = std::move(part); });
  if (died) return {};
  return false;
}

}  // namespace

Gathered gather_profile(Job& j) noexcept {
  const auto collect_all = [](Job& job_) {
    for (CommState* s = job_.states; s; s = s->next) collect(*s);
    sweep_outgoing();
  };
  if (!meet(j, collect_all)) return Gathered::cut;
  try_patterns([&] {
    need_memory(kForDecisions);
    for (CommState* s = j.states; s; s = s->next) collect(*s), note_outcome(*s), retain_log(*s), s->log.clear();
  });
  // The second barrier: no rank sends its profile until all ranks have stopped receiving logs of any tag.
  try_patterns(retain_strays);
  drain_outgoing(now() + kDrainWait);
  if (!meet(j, [](Job&) { retain_strays(); })) return Gathered::cut;
  say(2, "announcements of communicators that are gone: %d", dropped_strays);
  if (j.retained_missed > 0)
    warn("%zu calls have no arrival patterns: the logs kept until the end were full", j.retained_missed);
  j.profile_gathered = true;
  std::string learned;
  attempt([&] { learned = j.mine.learned; });
  const std::optional<bool> good = j.rank != 0 ? send_part(j) : write_parts(j);
  if (j.rank == 0) keep_history(j, learned);
  // The snapshots stay until the profile is written. Rank 0 may take long for a large profile.
  return good ? agree(j, *good) : Gathered::cut;
}

}  // namespace latecomer::shim
