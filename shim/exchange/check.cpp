// SPDX-License-Identifier: BSD-3-Clause
// LATECOMER_CHECK: compares the calls of all ranks before they run.
#include "shim/exchange/exchange.hpp"
#include "shim/log.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/world.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {

bool check_call(CommState& state, const core::Signature& signature, std::uint64_t n, std::uint64_t site) {
  struct Said {
    std::uint64_t n, signature, plan, site;
  };
  const Said mine{n, signature.hash(), state.member.in_force().hash(), site};
  const int tag = tag_of(state.context, kCheckChannel);
  int good = 1;
  MPI_Request request;
  // A rank that left at once could take the messages of others with it, out of MPI.
  const auto leave_together = [&] {
    if (PMPI_Ibarrier(state.comm, &request) == MPI_SUCCESS) wait_courteously(request);
    return good != 0;
  };
  if (state.rank != 0) {
    PMPI_Isend(&mine, sizeof mine, MPI_BYTE, state.world[0], tag, job_world().comm, &request);
    wait_courteously(request);
    PMPI_Irecv_c(&good, 1, MPI_INT, state.world[0], tag, job_world().comm, &request);
    wait_courteously(request);
    return leave_together();
  }
  std::vector<Said> all(static_cast<std::size_t>(state.size), mine);
  for (Rank r = 1; r < state.size; ++r) {
    PMPI_Irecv_c(&all[static_cast<std::size_t>(r)], sizeof mine, MPI_BYTE, state.world[static_cast<std::size_t>(r)],
                 tag, job_world().comm, &request);
    wait_courteously(request);
  }
  const auto id = [&](const Said& s) { return profiles::SiteKey{s.site, signature.op, state.size}.id(); };
  for (Rank r = 1; r < state.size; ++r) {
    const Said& s = all[static_cast<std::size_t>(r)];
    const bool same = s.n == mine.n && s.signature == mine.signature && s.plan == mine.plan;
    if (!same)
      warn(
          "check: rank %d is at call %llu of a communicator of %d with another %s than rank 0 at call %llu (sites %s "
          "and %s): native from here on",
          r, static_cast<unsigned long long>(s.n), state.size, s.plan != mine.plan ? "plan" : "operation",
          static_cast<unsigned long long>(mine.n), id(s).c_str(), id(mine).c_str());
    else if (s.site != mine.site)
      warn("check: ranks reach one %s on %d ranks from sites %s and %s: allowed, but forecasts are of the first",
           std::string(core::name_of(signature.op)).c_str(), state.size, id(mine).c_str(), id(s).c_str());
    good = good && same;
  }
  for (Rank r = 1; r < state.size; ++r) {
    PMPI_Isend(&good, 1, MPI_INT, state.world[static_cast<std::size_t>(r)], tag, job_world().comm, &request);
    wait_courteously(request);
  }
  return leave_together();
}

}  // namespace latecomer::shim
