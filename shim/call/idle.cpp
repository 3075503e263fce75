// SPDX-License-Identifier: BSD-3-Clause
// The rare steps around the calls of a communicator in an idle epoch: begin, stop, and report to the sites.
#include "shim/call/idle.hpp"

#include <algorithm>

#include "shim/call/describe.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"

namespace latecomer::shim {

LATECOMER_TOGETHER constinit Idle idle;

namespace {
/// Adds the counts of `site` to its profile entry, and replaces the site by `now`.
void replace(Idle::Site& site, const Idle::Site& now) {
  if (site.calls > 0)
    site.local->add_rested(site.calls, site.sized, site.bytes_min, site.bytes_max, static_cast<double>(site.bytes_sum));
  site = now;
}
}  // namespace

void idle_begin(CommState& state, const SiteSlot& slot, core::Collective op) {
  const std::uintptr_t address = slot.address.load(std::memory_order_relaxed);
  // Several threads would have to share the counts, and the background engine reads the sequence.
  if (!state.member.rests() || !job_rules().may_idle || job_process().threads || state.dispatch.watched ||
      address == 0 || !state.member.sequence().settled() || job_process().edge_said)
    return;
  // The last calls before the boundary take the full path: one of them receives the announcement and prepares its
  // plan. Derived: every eighth call looks for it (AgreementMember::looks_after), so one of the last 8 does.
  constexpr std::int64_t kAwakeBefore = 8;
  // One call of 64 takes the full path and reads the clock, so that snapshots go on. Derived: its 120 ns are 2 ns per
  // call, and with a call per second it comes after a minute.
  constexpr std::int64_t kUnclocked = 63;
  const std::int64_t left = std::min(kUnclocked, static_cast<std::int64_t>(state.member.sequence().next_boundary() -
                                                                           state.member.sequence().next_number()) -
                                                     kAwakeBefore);
  const std::uint64_t id = slot.site.load(std::memory_order_relaxed);
  if (left <= 0 || id == 0 || !slot.serves(op, state.size)) return;
  // The return address does not tell callers apart: the site itself counts these calls.
  profiles::LocalSite* local = &JobLock()->mine.local[{id, op, state.size}];
  if (idle.size != state.size) idle_forget();  // the counts of a site are per communicator size
  Idle::Site& site = idle.site_at(address);
  if (site.address != address || site.local != local)
    replace(site, {.address = address, .local = local, .op = op, .id = id});
  const auto [type, size] = Describe::known_type();
  idle.type = type;
  idle.type_size = size;
  idle.op = Describe::accepted_for(type);
  idle.comm = state.comm;
  idle.size = state.size;
  idle.state = &state;
  idle.granted = idle.left = left;
  idle.first = state.member.sequence().next_number();
}

void idle_stop() {
  if (!idle.state) return;
  idle.state->member.pass_calls(static_cast<std::uint64_t>(idle.granted - idle.left));
  idle.state = nullptr;
  idle.left = 0;
}

void idle_drain() {
  for (Idle::Site& site : idle.sites)
    replace(site, {.address = site.address, .local = site.local, .op = site.op, .id = site.id});
}

void idle_forget() {
  for (Idle::Site& site : idle.sites) replace(site, {});
}

}  // namespace latecomer::shim
