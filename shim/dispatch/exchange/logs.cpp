// SPDX-License-Identifier: BSD-3-Clause
// The logs of a rank: sent at the end of an epoch, set aside without an exchange, or kept for the end of the job.
#include <algorithm>
#include <cstring>
#include <new>

#include "shim/dispatch/exchange/messages.hpp"
#include "shim/log.hpp"
#include "shim/sites/sites.hpp"

namespace latecomer::shim {

using namespace exchange;

void end_epoch(CommState& state, bool rested) {
  sites_refresh();
  const JobLock lock;  // another thread may be completing a non-blocking call of this communicator
  if (state.usable() && state.size > 1 && !rested) try {
      if (state.rank == 0) {
        auto& part = state.leadership->members[0].push();
        part.first = state.logged_from;
        part.records.assign(state.log.begin(), state.log.end());
        part.signatures.swap(state.leadership->signatures);
        state.leadership->signatures.clear();
        state.leadership->uncertainty[0] = job().clocks.uncertainty_now();
      } else {
        const Header header{state.identity,
                            state.logged_from,
                            static_cast<std::uint32_t>(state.log.size()),
                            state.rank,
                            state.size,
                            0,
                            0,
                            job().clocks.uncertainty_now(),
                            state.waited};
        if (!state.broken && !post(state.world[0], tag_of(state.context, kLogChannel), header, state.log.data(),
                                   state.log.size() * sizeof state.log[0], true))
          warn("the leader does not take its logs: some arrival patterns are lost");
      }
    } catch (const std::bad_alloc&) {
      state.log_missed += static_cast<std::uint32_t>(state.log.size());
    }
  state.waited = 0;
  if (state.log_missed > 0)
    warn("a log was full, or had no memory: %u calls have no arrival patterns", state.log_missed), state.log_missed = 0;
  state.logged_from = state.sequence.next_number() - 1;  // the call that ended the epoch is the first of the next
  state.log.clear();
  try {
    state.log.reserve(2 * core::Sequence::kSteadyEpoch);  // a communicator with one epoch usually has more
  } catch (const std::bad_alloc&) {
    // Each record asks again.
  }
}

void set_log_aside(CommState& state) {
  retain_log(state);
  const JobLock lock;
  state.log_missed = 0;
  state.logged_from = state.sequence.next_number() - 1;
  state.log.clear();
}

void retain_log(const CommState& state) {
  Job& j = job();
  if (state.foreign || state.size < 2 || state.world.empty()) return;
  const JobLock lock;
  j.retained_missed += state.log_missed;
  const auto keep = [&](Rank member, std::uint64_t first, const std::vector<profiles::CallRecord>& records) {
    if (records.empty()) return;
    if (state.identity == 0 || j.retained_records + records.size() > kRetainedRecords) {
      j.retained_missed += records.size();
      return;
    }
    j.retained_records += records.size();
    j.mine.logs.push_back(
        {state.identity, state.size, member, state.world[static_cast<std::size_t>(member)], first, records});
  };
  keep(state.rank, state.logged_from, state.log);
  if (!state.leadership) return;
  for (std::size_t r = 0; r < state.leadership->members.size(); ++r)
    state.leadership->members[r].each(
        [&](const MemberLogs::Part& part) { keep(static_cast<Rank>(r), part.first, part.records); });
}

int dropped_strays = 0;

void retain_strays() {
  Job& j = job();
  for (;;) {
    int there = 0, size = 0;
    MPI_Message message;
    MPI_Status status;
    // Leave the ranks' parts of the profile to gather_profile().
    if (PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, j.comm, &there, &status) != MPI_SUCCESS || !there ||
        status.MPI_TAG == kFinalChannel)
      break;
    // Allocate first: a message that is taken out of the queue must be received.
    PMPI_Get_count(&status, MPI_BYTE, &size);
    std::vector<char> body(static_cast<std::size_t>(std::max(size, 0)));
    if (PMPI_Improbe(status.MPI_SOURCE, status.MPI_TAG, j.comm, &there, &message, &status) != MPI_SUCCESS || !there)
      break;
    PMPI_Mrecv(body.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    Header header;
    if (status.MPI_TAG % kTagsPerContext != kLogChannel || body.size() < sizeof header) {
      ++dropped_strays;
      continue;
    }
    std::memcpy(&header, body.data(), sizeof header);
    std::vector<profiles::CallRecord> records;
    records_in(header, body, records);
    j.mine.logs.push_back(
        {header.identity, header.comm_size, header.comm_rank, status.MPI_SOURCE, header.first, std::move(records)});
  }
}

}  // namespace latecomer::shim
