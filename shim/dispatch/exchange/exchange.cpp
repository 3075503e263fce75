// SPDX-License-Identifier: BSD-3-Clause
// The exchange with the leader.
#include "shim/dispatch/exchange/exchange.hpp"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "core/base/text.hpp"
#include "shim/dispatch/engine/engine.hpp"
#include "shim/dispatch/executor/executor.hpp"
#include "shim/log.hpp"
#include "shim/patience.hpp"
#include "shim/sites/names.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/post.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {
namespace {

struct Header {
  std::uint64_t identity = 0;
  std::uint64_t first = 0;  // log: number of the first record; plan: the announcing call
  std::uint32_t count = 0;  // log: records; plan: Learner::Announcement::Kind
  std::int32_t comm_rank = 0, comm_size = 0;
  std::uint32_t rest = 0;       // plan: the epoch that it begins is not logged,
  std::uint64_t epoch = 0;      // and how many calls it has
  Nanoseconds uncertainty = 0;  // of the sender's clock
  Nanoseconds waited = 0;       // log: for the leader, since the last
};

/// A wait for other ranks at a boundary of a communicator with rooted calls only. Warns if it takes long, because a
/// program that relies on gathers not to synchronize would hang here.
class BoundaryWait {
 public:
  explicit BoundaryWait(const CommState& state) : state_(state) {}
  void again() {
    constexpr Nanoseconds kLong = 10'000'000'000;
    patience_.wait();
    if (said_ || ++turns_ % 64 != 0 || now() - begin_ < kLong) return;
    said_ = true;
    warn(
        "rank %d has waited 10 s before call %llu of a communicator of %d, a boundary at which plans for rooted "
        "collectives are agreed on, for rank %d (rank 0 there) or another that is "
        "not there yet; \"rooted_waits\": false in the policy never waits",
        job().rank, static_cast<unsigned long long>(state_.sequence.next_number() - 1), state_.size, state_.world[0]);
  }
  Nanoseconds so_far() const { return now() - begin_; }

 private:
  const CommState& state_;
  Patience patience_{job().courteous};
  Nanoseconds begin_ = now();
  unsigned turns_ = 0;
  bool said_ = false;
};

// Records of freed communicators kept for the end: 2.6 MB. Beyond, calls are counted without patterns.
constexpr std::size_t kRetainedRecords = 1 << 16;
bool post(Rank world, int tag, const Header& header, const void* data, std::size_t size, bool may_refuse) {
  return shim::post(world, tag, &header, sizeof header, data, size, may_refuse);
}

/// A message of that tag from that rank if one is there; messages of dead communicators are dropped.
bool take(Rank world, int tag, std::uint64_t identity, Header& header, std::vector<char>& body) {
  for (;;) {
    int there = 0;
    MPI_Message message;
    MPI_Status status;
    if (PMPI_Improbe(world, tag, job().comm, &there, &message, &status) != MPI_SUCCESS || !there) return false;
    int size = 0;
    PMPI_Get_count(&status, MPI_BYTE, &size);
    body.resize(static_cast<std::size_t>(std::max(size, 0)));
    if (PMPI_Mrecv(body.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (body.size() < sizeof header) continue;
    std::memcpy(&header, body.data(), sizeof header);
    if (header.identity == identity) return true;
  }
}

void records_in(const Header& header, const std::vector<char>& body, std::vector<profiles::CallRecord>& records) {
  records.resize(std::min<std::size_t>(header.count, (body.size() - sizeof header) / sizeof(profiles::CallRecord)));
  if (!records.empty())
    std::memcpy(static_cast<void*>(records.data()), body.data() + sizeof header, records.size() * sizeof records[0]);
}

/// Accounts for one call of which every record is there. `signature`: nullptr if the leader does not have it.
void digest(CommState& state, const std::vector<const profiles::CallRecord*>& records, std::uint64_t n,
            const core::Signature* signature) {
  Job& j = job();
  Leadership& lead = *state.leadership;
  bool divergent = false;
  {
    const JobLock lock;
    // Of two ranks, each may be off by its own uncertainty.
    const Nanoseconds tie =
        j.clocks.domains == 1 ? 0 : 2 * *std::max_element(lead.uncertainty.begin(), lead.uncertainty.end());
    divergent = j.mine.patterns.add(records, state.world, tie, j.policy.network_given ? &j.policy.network : nullptr);
  }
  if (!lead.learner || !signature) return;
  core::CallSeen call;
  call.n = n;
  call.signature = *signature;
  call.site = records[static_cast<std::size_t>(std::max(signature->root, 0))]->site;
  call.divergent = divergent;
  call.algorithm = static_cast<int>(records[0]->algorithm) - 1;
  Nanoseconds first = INT64_MAX, last = INT64_MIN, exit = 0;
  bool complete = true;
  std::size_t said = 0;
  double elapsed = 0;
  for (const auto* r : records) {
    first = std::min(first, r->arrival), last = std::max(last, r->arrival);
    exit = std::max(exit, r->exit), complete = complete && r->exit != 0;
    said += (r->edge & profiles::kSaid) != 0;
    elapsed += static_cast<double>(r->exit - r->arrival);
  }
  call.edge = 2 * said >= records.size();
  for (std::size_t i = 0; i < records.size(); ++i) lead.offsets[i] = records[i]->arrival - first;
  call.offsets = lead.offsets;
  if (core::is_irregular(signature->op)) {
    lead.sizes.clear();
    for (const auto* r : records)
      if (r->bytes >= 0) lead.sizes.push_back(r->bytes);
    if (lead.sizes.size() == records.size()) call.sizes = lead.sizes;
  }
  if (complete)
    call.after_last = std::max<Nanoseconds>(exit - last, 0),
    call.mean_elapsed = elapsed / static_cast<double>(records.size());
  lead.learner->see(call);
}

}  // namespace

bool resolve_members(CommState& state) {
  if (!state.world.empty()) return !state.foreign;
  Job& j = job();
  MPI_Group group;
  PMPI_Comm_group(state.comm, &group);
  std::vector<int> all(static_cast<std::size_t>(state.size));
  std::iota(all.begin(), all.end(), 0);
  state.world.resize(all.size());
  PMPI_Group_translate_ranks(group, state.size, all.data(), j.world_group, state.world.data());
  PMPI_Group_free(&group);
  std::uint64_t hash = static_cast<std::uint64_t>(state.size);
  for (const Rank r : state.world) {
    if (r == MPI_UNDEFINED) state.foreign = true;
    hash = core::mix64(hash ^ static_cast<std::uint64_t>(r));
  }
  const JobLock lock;
  state.identity = core::mix64(hash + j.creations[hash]++);
  return !state.foreign;
}

namespace {
/// MPI_Allreduce of words by MPI_BOR; where members may be waited for, in a form that can be watched.
int unite(CommState& state, std::uint64_t* words, int count, bool waits) {
  if (!waits) return PMPI_Allreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, MPI_BOR, state.comm);
  MPI_Request request;
  int rc = PMPI_Iallreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, MPI_BOR, state.comm, &request);
  BoundaryWait wait(state);
  for (int done = 0; rc == MPI_SUCCESS && !done;)
    if (rc = PMPI_Test(&request, &done, MPI_STATUS_IGNORE); !done) wait.again();
  return rc;
}
}  // namespace

void identify(CommState& state, bool waits) {
  Job& j = job();
  constexpr int kWords = kContexts / 64;
  // Used contexts of all members, the leader's serial number, and whether a member could not offer its contexts.
  std::array<std::uint64_t, kWords + 2> words;
  std::uint64_t& serial = words[kWords];
  std::uint64_t& busy = words[kWords + 1];
  // A process that leads many communicators numbers them higher and higher: a number comes first sooner or later,
  // whatever the others go on to agree on.
  std::uint64_t number =
      state.rank == 0 ? std::uint64_t{++j.identities} << 32 | (static_cast<std::uint32_t>(j.rank) + 1) : 0;
  int context = kContexts;
  for (int attempt = 0;; ++attempt) {
    // One agreement at a time may take contexts of this process. With threads the first round only brings the members
    // together, so that no context is offered to a member that has not come yet. It also gives each communicator a
    // number. All processes prefer the same number, so that communicator gets a context within a few rounds. No lock is
    // held during the wait, because a thread that frees a communicator needs it.
    bool mine = !j.threads;
    {
      const std::lock_guard lock(j.context_mutex);
      if (j.threads && attempt > 0) {
        j.agreeing.insert(number);
        mine = !j.offering && *j.agreeing.begin() == number;
      }
      j.offering = j.offering || mine;
      for (int w = 0; w < kWords; ++w)
        words[static_cast<std::size_t>(w)] = j.used_contexts[static_cast<std::size_t>(w)];
    }
    serial = attempt > 0 && state.rank != 0 ? 0 : number;
    busy = !mine;
    const int rc = unite(state, words.data(), kWords + 2, waits);
    if (rc != MPI_SUCCESS) {
      // Nothing more is exchanged here; ranks that were told otherwise run into the same communicator's next error.
      const std::lock_guard lock(j.context_mutex);
      if (mine) j.offering = false;
      j.agreeing.erase(number);
      state.broken = true, state.context = kContexts;
      return;
    }
    number = serial;
    context = kContexts;
    for (int c = 0; c < kContexts && context == kContexts && busy == 0; ++c)
      if ((words[static_cast<std::size_t>(c) / 64] >> (c % 64) & 1) == 0) context = c;
    {
      const std::lock_guard lock(j.context_mutex);
      if (context < kContexts)
        j.used_contexts[static_cast<std::size_t>(context) / 64] |= std::uint64_t{1} << (context % 64);
      if (mine) j.offering = false;
      if (busy == 0) j.agreeing.erase(number);
    }
    if (busy == 0) break;  // on all members: the union is the same
    const timespec nap{0, 10'000 * (1 + (j.rank * 7 + attempt) % 13)};
    if (attempt > 0) nanosleep(&nap, nullptr);
  }
  {
    const JobLock lock;
    state.context = context;
    state.identity = core::mix64(number);
  }
  if (!state.usable()) warn("no tag context is free: a communicator of %d ranks stays native", state.size);
  if (state.rank == 0) lead(state);
  watch(state);
}

void lead(CommState& state) {
  Job& j = job();
  auto leadership = std::make_unique<Leadership>(state.size);
  const int size = state.size;
  if (j.announces)
    leadership->learner = std::make_unique<core::Learner>(
        j.policy, size, [size](std::uint64_t site, core::Collective op, const std::string& glob) {
          return site_is({site, op, size}, glob);
        });
  if (leadership->learner && engine_runs()) leadership->learner->allow_edges();
  if (leadership->learner && state.context == kWorldContext)
    leadership->learner->remember(
        [size](std::uint64_t site, core::Collective op) -> const std::vector<Nanoseconds>* {
          const auto found = job().history.offsets.find(profiles::SiteKey{site, op, size}.id());
          return found == job().history.offsets.end() ? nullptr : &found->second;
        },
        state.plan.plan());
  const JobLock lock;  // another thread may be writing a snapshot of all communicators
  state.leadership = std::move(leadership);
}

void note_decisions(CommState& state) {
  if (!state.leadership || !state.leadership->learner) return;
  Leadership& lead = *state.leadership;
  const Nanoseconds begin = now();
  lead.reports = lead.learner->reports();
  std::vector<std::string> texts;
  for (const auto& report : lead.reports)
    if (report.signature.kind == core::CallKind::blocking) texts.push_back(profiles::decision_json(report, state.size));
  std::string plan;
  if (lead.latest)
    plan = profiles::plan_json(state.identity, state.size, lead.latest->first, lead.latest->second, lead.reports);
  lead.latest.reset();
  const JobLock lock;
  lead.decisions = std::move(texts);
  if (!plan.empty()) job().keep_plan(std::move(plan));
  lead.words_next = now() + kPauseAfterWriting * (now() - begin);
}

bool check_call(CommState& state, const core::Signature& signature, std::uint64_t n, std::uint64_t site) {
  struct Said {
    std::uint64_t n, signature, plan, site;
  };
  const Said mine{n, signature.hash(), state.plan.hash(), site};
  const int tag = tag_of(state.context, kCheckChannel);
  int good = 1;
  MPI_Request request;
  if (state.rank != 0) {
    PMPI_Isend(&mine, sizeof mine, MPI_BYTE, state.world[0], tag, job().comm, &request);
    wait_courteously(request);
    PMPI_Irecv_c(&good, 1, MPI_INT, state.world[0], tag, job().comm, &request);
    wait_courteously(request);
    return good != 0;
  }
  std::vector<Said> all(static_cast<std::size_t>(state.size), mine);
  for (Rank r = 1; r < state.size; ++r) {
    PMPI_Irecv_c(&all[static_cast<std::size_t>(r)], sizeof mine, MPI_BYTE, state.world[static_cast<std::size_t>(r)],
                 tag, job().comm, &request);
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
    PMPI_Isend(&good, 1, MPI_INT, state.world[static_cast<std::size_t>(r)], tag, job().comm, &request);
    wait_courteously(request);
  }
  return good != 0;
}

void end_epoch(CommState& state, bool rested) {
  sites_refresh();
  const JobLock lock;  // another thread may be completing a non-blocking call of this communicator
  if (state.usable() && state.size > 1 && !rested) {
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
  }
  state.waited = 0;
  if (state.log_missed > 0)
    warn("a log was full: %u calls without arrival patterns", state.log_missed), state.log_missed = 0;
  state.logged_from = state.sequence.next_number() - 1;  // the call that ended the epoch is the first of the next
  state.log.clear();
  state.log.reserve(2 * core::Sequence::kSteadyEpoch);  // a communicator with one epoch usually has more
}

void collect(CommState& state) {
  if (!state.leadership || !state.usable()) return;
  Leadership& lead = *state.leadership;
  while (!lead.members[0].empty()) {  // without its own, which it has at once, nobody else's can be matched
    bool all = true;
    std::uint64_t newest = 0;
    for (std::size_t r = 0; r < lead.members.size(); ++r) {
      Header header;
      MemberLogs& logs = lead.members[r];
      if (r != 0 && logs.empty() &&
          take(state.world[r], tag_of(state.context, kLogChannel), state.identity, header, lead.body)) {
        auto& part = logs.push();
        part.first = header.first;
        lead.uncertainty[r] = header.uncertainty;
        lead.waited += header.waited;
        records_in(header, lead.body, part.records);
      }
      all = all && !logs.empty();
      if (!logs.empty()) newest = std::max(newest, logs.front().first);
    }
    if (!all) return;
    bool level = true;
    std::size_t count = SIZE_MAX;
    for (MemberLogs& logs : lead.members) {
      if (logs.front().first < newest) logs.pop(), level = false;  // the others' part was lost
      else count = std::min(count, logs.front().records.size());
    }
    if (!level) continue;
    for (std::size_t i = 0; i < count; ++i) {
      bool same = true;
      for (std::size_t r = 0; r < lead.members.size(); ++r) {
        lead.row[r] = &lead.members[r].front().records[i];
        same = same && lead.row[r]->op == lead.row[0]->op;
      }
      const auto& own = lead.members[0].front();
      const std::size_t before = own.records.size() - std::min(own.signatures.size(), own.records.size());
      if (same) digest(state, lead.row, newest + i, i >= before ? &own.signatures[i - before] : nullptr);
    }
    for (MemberLogs& logs : lead.members) logs.pop();
  }
}

void announce(CommState& state, std::uint64_t n) {
  if (state.rank != 0 || !state.usable()) return;
  Job& j = job();
  Leadership& lead = *state.leadership;
  lead.announced = {};
  // Programs with hundreds of slots and calls of a few microseconds: what is learned may cost this and so many parts of
  // the time.
  constexpr Nanoseconds kSpentAtFirst = 20'000'000, kPartOfTime = 50;
  const Nanoseconds begin = now();
  if (state.sequence.waits() && lead.learner) lead.learner->waited(lead.waited / state.size), lead.waited = 0;
  if (!state.broken)
    lead.announced = lead.learner->announce(n, state.plan.dropped(), begin,
                                            j.learning > kSpentAtFirst + (begin - j.started) / kPartOfTime);
  using Kind = core::Learner::Announcement::Kind;
  auto bytes = lead.announced.kind == Kind::plan ? lead.announced.plan.serialize() : std::vector<char>{};
  // What the others could not read, the leader must not use either.
  if (core::Plan read; lead.announced.kind == Kind::plan && !core::Plan::deserialize(bytes, state.size, read))
    lead.announced = {}, bytes.clear();
  const bool plan = lead.announced.kind == Kind::plan;
  const Header header{state.identity,
                      n,
                      static_cast<std::uint32_t>(lead.announced.kind),
                      0,
                      state.size,
                      lead.announced.rest,
                      lead.announced.epoch,
                      0,
                      0};
  for (Rank r = 1; r < state.size; ++r)
    post(state.world[static_cast<std::size_t>(r)], tag_of(state.context, kPlanChannel), header, bytes.data(),
         bytes.size(), false);
  if (lead.learner && !lead.learner->modelled()) j.learning += now() - begin;
  // Words after what others may wait for. A plan that the next one replaces before there was time for words is not in
  // the profile.
  constexpr std::size_t kPlansAtOnce = 16;
  if (plan) lead.latest = {n, lead.announced.plan};
  if ((plan && j.mine.plans.size() < kPlansAtOnce) || now() >= lead.words_next) note_decisions(state);
  if (!plan) return;
  int dispatched = 0;
  for (const core::PlanEntry& e : lead.announced.plan.entries) dispatched += e.algorithm >= 0;
  say(2, "plan announced at call %llu of a communicator of %d: %zu %s, %d of them not native, %zu patterns",
      static_cast<unsigned long long>(n), state.size, lead.announced.plan.entries.size(),
      lead.announced.plan.period ? "slots" : "entries", dispatched, lead.announced.plan.patterns.size());
}

namespace {
/// Fills state.heard unless it is filled; false if nothing has come.
bool take_announcement(CommState& state) {
  using Kind = core::Learner::Announcement::Kind;
  if (state.heard) return true;
  auto heard = std::make_unique<core::Learner::Announcement>();
  if (state.rank == 0) {
    *heard = std::move(state.leadership->announced);
  } else {
    Header header;
    std::vector<char> body;
    if (!take(state.world[0], tag_of(state.context, kPlanChannel), state.identity, header, body)) return false;
    heard->kind = static_cast<Kind>(header.count);
    heard->rest = header.rest != 0;
    heard->epoch = header.epoch;
    // The leader's bytes came whole or not at all: what is no plan here is none on any rank.
    if (heard->kind == Kind::plan)
      core::Plan::deserialize({body.data() + sizeof header, body.size() - sizeof header}, state.size, heard->plan);
  }
  state.heard = std::move(heard);
  return true;
}
}  // namespace

void hear_last(CommState& state) {
  if (state.rank == 0 || state.heard || !state.usable() || !state.sequence.awaits()) return;
  Header header;
  std::vector<char> body;
  take(state.world[0], tag_of(state.context, kPlanChannel), state.identity, header, body);
}

void hear_early(CommState& state) try {
  if (state.heard || !state.usable() || state.broken || !take_announcement(state)) return;
  if (state.heard->kind == core::Learner::Announcement::Kind::plan && state.executor)
    state.executor->prepare(state, state.heard->plan);
} catch (...) {
  // Whether the message was taken is not known: no stepping back alone.
  warn("out of memory while taking a plan");
  PMPI_Comm_call_errhandler(state.comm, MPI_ERR_NO_MEM);
}

void hear(CommState& state, std::uint64_t n, bool waits) {
  using Kind = core::Learner::Announcement::Kind;
  if (!state.usable()) return;
  if (waits) {
    BoundaryWait wait(state);
    while (!take_announcement(state)) wait.again();
    state.waited += wait.so_far();
  }
  Patience patience(job().courteous);
  while (!take_announcement(state)) patience.wait();
  const auto heard = std::move(state.heard);
  if (state.rank == 0 && !heard->rest) state.leadership->learner->in_force(n);
  state.sequence.lasts(heard->epoch);
  state.resting = heard->rest && heard->kind == Kind::none;
  if (heard->kind == Kind::keep || (heard->kind == Kind::none && state.plan.plan().empty())) return;
  state.plan.install(std::move(heard->plan));
  engine_plan(state);
  if (state.executor) state.executor->change_plans();
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
    if (j.retained_records + records.size() > kRetainedRecords) {
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
    // Others may already be sending their part of the profile, which is not for us to take.
    if (PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, j.comm, &there, &status) != MPI_SUCCESS || !there ||
        status.MPI_TAG == kFinalChannel)
      break;
    if (PMPI_Improbe(status.MPI_SOURCE, status.MPI_TAG, j.comm, &there, &message, &status) != MPI_SUCCESS || !there)
      break;
    PMPI_Get_count(&status, MPI_BYTE, &size);
    std::vector<char> body(static_cast<std::size_t>(std::max(size, 0)));
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
