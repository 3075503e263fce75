// SPDX-License-Identifier: BSD-3-Clause
// The rare steps around the calls of a communicator in an idle epoch: begin, stop, and report to the sites.
#include "shim/call/idle.hpp"

#include <algorithm>

#include "shim/call/describe.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"

namespace latecomer::shim {

constinit Idle idle;
LATECOMER_TOGETHER constinit std::size_t idle_sites = 0;

namespace {

/// Nanoseconds of a call on the short path, measured once. It is a warm one, so the least.
double cost_of_one = 0;

void time_short_path() {
  constexpr int kCalls = 512;
  CommState state;
  state.idle.left = state.idle.granted = kCalls;
  const auto address = reinterpret_cast<std::uintptr_t>(&state);
  const auto fill = [](auto& call) { call.empty(); };
  IdleSite& site = idle.site_at(address, MPI_COMM_NULL);
  if (site.address != 0) return;
  ++idle_sites;
  site.address = address;
  site.comm = MPI_COMM_NULL;
  site.state = &state;
  site.usual = 0;
  const Nanoseconds begin = now();
  for (int i = 0; i < kCalls; ++i) {
    count_on_short_path(core::Collective::barrier, MPI_COMM_NULL, &state, nullptr, fill);
    live_leave();
  }
  cost_of_one = static_cast<double>(now() - begin) / kCalls;
  --idle_sites;
  site = {};
}

/// Adds the counts of `site` to its profile entry.
void report(IdleSite& site) {
  if (site.calls == 0 && site.others == 0) return;
  spent.add(profiles::CostOf::count, static_cast<Nanoseconds>(cost_of_one * (site.calls + site.others)));
  core::Bytes least = site.bytes_min, most = site.bytes_max;
  std::uint32_t sized = site.sized;
  auto sum = static_cast<double>(site.bytes_sum);
  if (site.calls > 0 && site.usual >= 0) {
    least = std::min(least, site.usual);
    most = std::max(most, site.usual);
    sized += site.calls;
    sum += static_cast<double>(site.usual) * site.calls;
  }
  const std::uint32_t calls = site.calls + site.others;
  const bool owns_all = !core::is_rooted(site.op) && site.state && site.state->tally(-1) == profiles::Tally::owned;
  site.local->add_rested(calls, owns_all ? calls : site.owned, sized, least, most, sum, job_rules().samples_epochs);
  site.calls = site.owned = site.others = site.sized = 0;
  site.bytes_min = INT64_MAX;
  site.bytes_max = INT64_MIN;
  site.bytes_sum = 0;
}

/// How many of the next calls may take the short path.
std::int64_t calls_until_full(const CommState& state) {
  const core::Sequence& sequence = state.member.sequence();
  const std::uint64_t next = sequence.next_number();
  // The last calls before the boundary of an announcement take the full path: one of them receives it and prepares its
  // plan. Derived: every eighth call looks for it (AgreementMember::looks_after), so one of the last 8 does.
  const std::int64_t awake = job_rules().announces ? 8 : 0;
  // One call of 64 takes the full path and reads the clock, so that snapshots go on. Derived: its 120 ns are 2 ns per
  // call, and with a call per second it comes after a minute.
  constexpr std::int64_t kUnclocked = 63;
  const std::int64_t left = std::min(kUnclocked, static_cast<std::int64_t>(sequence.next_boundary() - next) - awake);
  // What a replay needs is kept on all ranks.
  return state.sample ? std::min(left, static_cast<std::int64_t>(state.sample->next_kept(next) - next)) : left;
}

/// Whether a call of this operation changes nothing in the sequence but its number.
bool changes_nothing(const CommState& state, const core::Signature& s) {
  return state.member.sequence().settled() ||
         (core::is_rooted(s.op) && !core::depends_on_all(s.op, s.bytes) &&
          (s.root != core::Sequence::kLeader || !core::depends_on_root(s.op, s.bytes)));
}

}  // namespace

void idle_begin(const ObservedCall& call) {
  CommState& state = *call.state;
  // Several threads would have to share the counts, and the background engine reads the sequence.
  if (!state.member.rests() || !job_rules().may_idle || job_process().threads || state.dispatch.watched ||
      call.plain_address == 0 || job_process().edge_said || !changes_nothing(state, call.signature))
    return;
  if (cost_of_one == 0) time_short_path();
  const std::int64_t left = calls_until_full(state);
  const std::uint64_t id = call.slot->site.load(std::memory_order_relaxed);
  if (left <= 0 || id == 0) return;
  IdleSite& site = idle.site_at(call.plain_address, state.comm);
  if (site.address == 0 && idle_sites >= Idle::kSites * 3 / 4) return;
  // The address does not tell callers apart: the calls count for the callers of this call.
  profiles::LocalSite* const local = call.slot->serves(call.signature.op, state.size)
                                         ? call.slot->local
                                         : &JobLock()->mine.local[{id, call.signature.op, state.size}];
  if (site.local != local || site.usual != call.bytes()) report(site);
  idle_sites += site.address == 0;
  const auto [type, size] = Describe::known_type();
  site.address = call.plain_address;
  site.comm = state.comm;
  site.state = &state;
  site.local = local;
  site.op = call.signature.op;
  site.id = id;
  site.usual = call.bytes();
  site.type = type;
  site.type_size = static_cast<std::uint16_t>(size);
  site.accepted = Describe::accepted_for(type);
  site.root = call.signature.root;
  site.only_root = !state.member.sequence().settled();
  if (call.through > 0) {
    idle.way_at(call.from) = {call.from, call.through};
    idle.stack_end = stack_end();
  }
  state.idle = {left, left, state.member.sequence().next_number(), true};
}

void idle_pass(CommState& state) {
  IdleCalls& calls = state.idle;
  const auto passed = static_cast<std::uint64_t>(calls.granted - calls.left);
  if (passed == 0) return;
  state.member.pass_calls(passed);
  calls.granted = calls.left;
  calls.first += passed;
}

void idle_stop(CommState& state) {
  idle_pass(state);
  state.idle.left = state.idle.granted = 0;
}

void idle_end(CommState& state) {
  idle_stop(state);
  if (!state.idle.begun) return;
  for (IdleSite& site : idle.sites)
    if (site.state == &state) {
      report(site);
      site.state = nullptr;
    }
}

void idle_drain() {
  if (idle_sites == 0) return;
  for (IdleSite& site : idle.sites) report(site);
}

void idle_forget() {
  if (idle_sites == 0) return;
  idle_drain();
  for (IdleSite& site : idle.sites) site = {};
  for (IdleWay& way : idle.ways) way = {};
  idle_sites = 0;
}

}  // namespace latecomer::shim
