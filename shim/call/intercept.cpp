// SPDX-License-Identifier: BSD-3-Clause
// Implements the steps around an intercepted collective.
#include "shim/call/intercept.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "core/base/text.hpp"
#include "shim/causes/usage.hpp"
#include "shim/engine/engine.hpp"
#include "shim/exchange/branch.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/log.hpp"
#include "shim/mpi/operators.hpp"
#include "shim/runner/layout.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/post.hpp"

namespace latecomer::shim {

namespace {

/// The predefined types by hash of the handle. Their sizes never change, so ask MPI once.
class TypeTable {
 public:
  struct Entry {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::uint8_t group = 0;
    std::int32_t size = 0;
  };
  TypeTable() {
    for (const KnownType& known : known_types()) {
      if (known.type == MPI_DATATYPE_NULL) continue;
      std::size_t at = place(known.type);
      while (entries_[at].type != MPI_DATATYPE_NULL && entries_[at].type != known.type) at = (at + 1) % kSize;
      MPI_Count size = 0;
      if (PMPI_Type_size_x(known.type, &size) == MPI_SUCCESS)
        entries_[at] = {known.type, known.group, static_cast<std::int32_t>(size)};
    }
  }
  /// nullptr if the type is not one of them.
  const Entry* find(MPI_Datatype type) const {
    for (std::size_t at = place(type);; at = (at + 1) % kSize) {
      if (entries_[at].type == type) return &entries_[at];
      if (entries_[at].type == MPI_DATATYPE_NULL) return nullptr;
    }
  }

 private:
  // Derived: the hash has 8 bits. The 73 types fill 29%, so a search is short and always ends at a free entry. 3 KiB.
  static constexpr std::size_t kSize = 256;
  static std::size_t place(MPI_Datatype type) {
    return static_cast<std::uint32_t>(bits_of(type) ^ bits_of(type) >> 4) * 2654435761u >> 24;
  }
  Entry entries_[kSize];
};
const TypeTable* types = nullptr;

[[gnu::noinline, gnu::cold]] const TypeTable& make_types() {
  static const TypeTable made;
  __atomic_store_n(&types, &made, __ATOMIC_RELEASE);
  return made;
}

inline const TypeTable& predefined() {
  const TypeTable* there = __atomic_load_n(&types, __ATOMIC_ACQUIRE);
  return there ? *there : make_types();
}

/// A predefined operator and a datatype. MPI uses neither handle for anything else, so the last pair stays valid.
struct KnownPair {
  MPI_Op op{};
  MPI_Datatype type{};
  core::OpClass op_class = core::OpClass::none;
  bool defined = false, exact = false;
};
constinit thread_local KnownPair last_pair;
constinit thread_local std::pair<MPI_Op, MPI_Datatype> last_accepted{};

/// Makes it the last pair. Returns false if the operator is the program's.
[[gnu::noinline]] bool look_up(MPI_Datatype type, MPI_Op op) {
  static const auto operators = known_operators();
  for (const KnownOperator& known : operators) {
    if (known.op != op) continue;
    const auto* of_table = predefined().find(type);
    const std::uint8_t group = of_table ? of_table->group : group_by_envelope(type);
    last_pair = {op, type, known.op_class, (group & known.groups) != 0, is_exact(group, known.op_class)};
    if (!of_table && group == 0) last_pair.type = MPI_Datatype{};  // the program's: its handle may get another meaning
    return true;
  }
  return false;
}

}  // namespace

bool may_wait_nonblocking(const CommState& state, const core::Signature& signature) {
  const Job& j = job();
  if (state.foreign || state.size == 1) return false;
  return !core::is_reduction(signature.op) || signature.exact ||
         (j.policy.mode == core::Mode::apply && j.policy.reproducible == core::Reproducible::any);
}

core::Bytes Describe::bytes_of(MPI_Count count, MPI_Datatype type, int times) {
  if (count < 0 || type == MPI_DATATYPE_NULL) return -1;
  MPI_Count size = 0;
  if (const auto* known = predefined().find(type)) [[likely]] {
    size = known->size;
    last_type.store(std::uint64_t{bits_of(type)} << kSizeBits | static_cast<std::uint64_t>(size),
                    std::memory_order_relaxed);
  } else if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return -1;
  // Modulo 2^64, as MPI computes the sizes of types: so all ranks get the same number.
  const auto bytes = static_cast<core::Bytes>(static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(count) *
                                              static_cast<std::uint64_t>(times));
  return bytes < 0 || (bytes == 0 && count > 0 && holds_data(type)) ? -1 : bytes;
}

Describe& Describe::operated(MPI_Datatype type, MPI_Op op) {
  if (signature_.bytes < 0) return *this;
  const bool known = (op == last_pair.op && type == last_pair.type) || look_up(type, op);
  signature_.refused |= known && !last_pair.defined;
  if (state_.resting && !signature_.refused) last_accepted = {op, type};
  if (!call_.decides) return *this;
  if (known) {
    signature_.op_class = last_pair.op_class;
    signature_.servable = last_pair.defined;
    signature_.exact = last_pair.exact;
  } else if (int commutes = 0; PMPI_Op_commutative(op, &commutes) == MPI_SUCCESS) {
    signature_.op_class = commutes ? core::OpClass::user : core::OpClass::user_noncommutative;
    signature_.servable = true;
  }
  return *this;
}

MPI_Op Describe::accepted_for(MPI_Datatype type) {
  return last_accepted.second == type ? last_accepted.first : MPI_Op{};
}

namespace {

bool talking(const Job& j) { return j.together && j.policy.exchange == core::Exchange::epoch; }

// Rare steps are functions of their own (noinline), so that the common path does not save registers for them.

/// All ranks take part, and wait for each other. So a rank that cannot ends the job.
[[gnu::noinline, gnu::cold]] void agree_on_identity(CommState& state, bool waits = false) noexcept {
  const KeepErrno keep;
  const Guard program(Layer::program);  // its error handler
  if (const Outcome done = attempt([&] {
        if (resolve_members(state)) identify(state, waits);
      });
      !done)
    no_memory_left("the agreement on a communicator");
}

[[gnu::noinline, gnu::cold]] void at_boundary(Call& call, const core::Sequence::Before& step) {
  const KeepErrno keep;
  CommState& state = *call.state;
  const bool rested = state.resting;
  if (step.identify) agree_on_identity(state, true);
  if (step.hear) hear(state, step.n, step.waits);
  if (!step.ends_epoch) return;
  try {
    sweep_outgoing();  // of earlier boundaries
  } catch (const std::bad_alloc&) {
    // The next boundary tries again.
  }
  call.ended_epoch = !rested;
  if (rested) idle_forget();
  end_epoch(state, rested);
  if (state.branch) pump_mail();
  if (step.announce) announce(state, step.n);
}

/// The decision of the policy alone. Cached by signature, because it may search for a number of segments.
core::Decision decide_alone(const core::Signature& signature, int comm_size) {
  struct Known {
    core::Signature signature;
    int comm_size = 0;
    core::Decision decision;
  };
  // Derived: 256 entries of 88 bytes take 22 KiB per process. Of two signatures with the same index, the later replaces
  // the earlier, and each change costs a new decision.
  constexpr std::size_t kKnown = 256;
  static std::array<Known, kKnown>& known =
      *new std::array<Known, kKnown>;  // never destroyed: callbacks may come after exit handlers
  const std::uint64_t place = core::mix64(signature.hash() ^ static_cast<std::uint64_t>(comm_size)) % kKnown;
  {
    const JobLock lock;
    if (const Known& k = known[place]; k.comm_size == comm_size && k.signature == signature) return k.decision;
  }
  const core::Decision decision = core::decide(job().policy, signature, comm_size);
  const JobLock lock;
  known[place] = {signature, comm_size, decision};
  return decision;
}

[[gnu::cold]] void note_unplanned(const core::Decision& decision) {
  const JobLock lock;
  auto& all = job().mine.unplanned;
  const int index = core::index_of(decision.unplanned);
  auto at = std::find_if(all.begin(), all.end(), [&](const profiles::Unplanned& u) { return u.algorithm == index; });
  if (at == all.end()) at = all.insert(all.end(), {index, -1, 0, 0});
  at->instead = core::index_of(decision.algorithm), ++at->calls,
  at->messages = std::max(at->messages, decision.planning);
}

[[gnu::noinline]] void decide_call(Call& call) {
  const KeepErrno keep;
  CommState& state = *call.state;
  const bool planned = !state.plan.plan().empty();
  const bool notes = job().announces && state.usable() && call.signature.dispatchable();
  const std::uint64_t hash = planned || notes ? call.signature.hash() : 0;
  const core::PlanEntry* entry = planned ? state.plan.at(call.n, hash) : nullptr;
  call.decision = with_reserve([&] {
    return entry ? core::decide_as(job().policy, call.signature, state.size, *entry)
                 : decide_alone(call.signature, state.size);
  });
  if (call.decision.unplanned) [[unlikely]]
    note_unplanned(call.decision);
  if (notes) {
    try {
      if (!state.executor) state.executor = std::make_unique<Executor>();
      state.executor->note(state, call.signature, hash, call.operands);
    } catch (const std::bad_alloc&) {
      // The schedule is built inside its call, not ahead of it.
    }
  }
  if (!call.decision.algorithm) return;
  // The agreement waits for all members. So it takes place only in calls that wait for all members anyway.
  if (!state.identified() && core::depends_on_all(call.signature.op, call.signature.bytes)) agree_on_identity(state);
  if (!state.usable() || state.refused) {
    call.decision = {};
    return;
  }
  if (job().checks && !check_call(state, call.signature, call.n, call.slot->site.load(std::memory_order_relaxed))) {
    state.refused = true;  // on all ranks: the leader told them
    call.decision = {};
    return;
  }
  if (!state.executor) state.executor = with_reserve([] { return std::make_unique<Executor>(); });
  call.algorithm = static_cast<std::uint8_t>(1 + core::index_of(call.decision.algorithm));
  if (entry && entry->remembered) ++job().remembered;
}

/// Whether the process has called latecomer_edge since the last call that may be dispatched. Clears the flag.
std::uint8_t edge_of(const Call& call) {
  Job& j = job();
  if (!j.edge_said.load(std::memory_order_relaxed)) [[likely]]
    return 0;
  return call.state->size > 1 && call.signature.dispatchable() && j.edge_said.exchange(false);
}

/// Whether the leader needs the arrivals of all ranks in this call: to decide about calls of its kind.
std::uint8_t wanted_of(const Call& call) {
  return job().announces && call.signature.dispatchable() ? profiles::kSampled : std::uint8_t{0};
}

/// `edge`: takes note of latecomer_edge.
profiles::CallRecord record_of(const Call& call, bool edge = true) {
  return {.arrival = call.arrival,
          .site = call.slot->site.load(std::memory_order_relaxed),
          .bytes = core::is_irregular(call.signature.op) ? call.block : call.signature.bytes,
          .root = call.signature.root,
          .op = call.signature.op,
          .kind = call.signature.kind,
          .algorithm = call.algorithm,
          .edge = edge ? static_cast<std::uint8_t>(edge_of(call) | wanted_of(call)) : std::uint8_t{0},
          .callers = call.slot->callers.load(std::memory_order_relaxed)};
}

void write_log(const Call& call) {
  CommState& state = *call.state;
  if (state.resting) {
    edge_of(call);  // clears the flag: latecomer_edge was about this call, although it is not logged
    return;
  }
  if (state.log.size() != call.n - state.logged_from || state.log.size() >= core::Sequence::kRootedEpoch) {
    if (!state.sequence.waits()) ++state.log_missed;  // with waits, an epoch may be longer than its log
    return;
  }
  try {
    state.log.push_back(record_of(call));
    if (state.leadership && state.leadership->learner) {
      state.leadership->signatures.push_back(call.signature);
      if (call.n == 0) {
        const LearnerLock lock(*state.leadership);
        state.leadership->learner->begin(call.arrival);
      }
    }
  } catch (const std::bad_alloc&) {
    // A record without its signature would shift the signatures behind it.
    if (state.log.size() > call.n - state.logged_from) state.log.pop_back();
    ++state.log_missed;
  }
}

[[gnu::noinline]] void write_forecast(CommState& state, std::uint64_t n, const Forecast& forecast) {
  if (n < state.logged_from || n - state.logged_from >= state.log.size()) return;
  profiles::CallRecord& record = state.log[n - state.logged_from];
  record.expected =
      static_cast<std::int32_t>(std::min<Nanoseconds>(forecast.expected / profiles::kExpectedUnit, INT32_MAX));
  if (forecast.edge) record.edge |= profiles::kRanByEdge;
}

[[gnu::noinline]] profiles::LocalSite* find_local(const Call& call) {
  profiles::LocalSite* local =
      &job().mine.local[{call.slot->site.load(std::memory_order_relaxed), call.signature.op, call.state->size,
                         call.slot->callers.load(std::memory_order_relaxed)}];
  if (call.slot->key.load(std::memory_order_relaxed) != 0)
    call.slot->local = local, call.slot->op = call.signature.op, call.slot->comm_size = call.state->size;
  return local;
}

[[gnu::noinline]] void add_to_sample(const Call& call, Nanoseconds exit) {
  profiles::CallRecord record = record_of(call, false);
  record.exit = exit;
  call.state->sample->add({call.n, record});
}

[[gnu::always_inline]] inline void finish_now(Call& call, Nanoseconds exit) {
  CommState& state = *call.state;
  SiteSlot& slot = *call.slot;
  write_exit(state, call.n, exit);
  if (call.forecast.expected >= 0) [[unlikely]]
    write_forecast(state, call.n, call.forecast);
  if (state.sample && call.counts() && state.sample->keeps(call.n)) [[unlikely]]
    add_to_sample(call, exit);
  profiles::LocalSite* local = slot.local;
  if (!slot.serves(call.signature.op, state.size)) [[unlikely]]
    local = find_local(call);
  const Nanoseconds spent = std::max<Nanoseconds>(exit - call.arrival, 0);
  mpi_time.collectives += spent;
  if (mpi_time.watched) sampler.leave(local->before, call.arrival, exit);
  job().queue.add(local, spent, call.bytes(), state.resting && call.algorithm == 0, state.share);
}

/// Shows in shared memory that the process is inside this call.
void show(const Call& call) {
  constexpr auto plain = std::memory_order_relaxed;
  live->communicator.store(call.state->identity, plain);
  live->comm_size.store(call.state->size, plain);
  live_enter(call.n, call.slot->site.load(plain), call.signature.bytes, call.signature.root, call.signature.op,
             call.arrival - job().clocks.offset.load(plain));
}

/// Whether this call looks for an announcement. Every eighth call does, and every call of a short epoch.
bool plan_may_be_there(const Call& call) {
  const core::Sequence& sequence = call.state->sequence;
  return ((call.n & 7) == 4 || sequence.brief()) && sequence.awaits() && !call.state->heard;
}

/// Whether the exchange has something to do after this call.
bool exchange_is_due(const Call& call) {
  return call.counts() && (call.n >= call.state->look_at || plan_may_be_there(call));
}

/// What all ranks do together behind a call that depends on all of them.
[[gnu::noinline, gnu::cold]] void do_together(CommState& state, core::Sequence::After after) {
  const KeepErrno keep;
  if (after.identify) agree_on_identity(state);
  if (!after.meet) return;
  meet(state, false);
  hear_early(state);
}

[[gnu::noinline, gnu::cold]] void after_call(const Call& call) {
  const KeepErrno keep;
  Job& j = job();
  CommState& state = *call.state;
  if (call.ended_epoch && j.clocks.domains > 1) {
    hear_offset(j.clocks);
    if (&state == j.world_state && core::depends_on_all(call.signature.op, call.signature.bytes))
      renew_offset(j.clocks);
  }
  if (call.ended_epoch) prepare_snapshot();
  if (plan_may_be_there(call)) hear_early(state);
  if (call.n >= state.look_at) look(state, call.n);
}

}  // namespace

void begin_call(Call& call, void* return_address, void* frame) noexcept {
  CommState& state = *call.state;
  Job& j = job();
  const bool talks = talking(j);
  core::Sequence::Before step{};
  if (state.size > 1 && !state.foreign && core::counted(call.signature)) {
    if (j.rooted_waits && core::is_rooted(call.signature.op)) [[unlikely]]
      if (talks && !state.sequence.waits() && core::waits_for_leader(j.policy, call.signature, state.size))
        state.sequence.allow_waits();
    // A jump has left the call before, if its end is not registered yet.
    if (const auto after = state.sequence.end(state.identified() || !talks); after.identify || after.meet) [[unlikely]]
      do_together(state, after);
    const bool plans = talks && j.announces && state.context != kContexts;
    step = state.sequence.begin(call.signature, plans, talks && state.identified());
    call.n = step.n;
  }
  try {
    call.slot = with_reserve([&] { return &site_of(return_address, frame); });
    if (!call.counts()) return;
    const bool blocks = call.signature.kind == core::CallKind::blocking;
    if (mpi_time.watched) blocks ? sampler.arrive() : sampler.discard();
    if (blocks) show(call);
    if (step.hear || step.ends_epoch) [[unlikely]]
      at_boundary(call, step);
    if (call.decides && j.together) decide_call(call);
    if (state.watched && !(call.decision.algorithm && call.decision.algorithm->background)) pass(state, call.n);
    if (!talks && state.log.size() >= core::Sequence::kRootedEpoch) [[unlikely]]
      set_log_aside(state);
    if (j.threads) {  // another thread may be completing a non-blocking call of this communicator
      const std::lock_guard lock(j.mutex);
      write_log(call);
    } else {
      write_log(call);
    }
  } catch (...) {
    // This rank does not know how the other ranks run the call. Native alone would hang the job or change its data.
    if (j.decides) no_memory_left("the decision about a collective");
    warn("no memory for the record of a collective: arrival patterns are lost");
    state.broken = true;
  }
}

void end_call(Call& call) noexcept {
  CommState& state = *call.state;
  Job& j = job();
  const Nanoseconds exit = common_now(), at = exit - j.clocks.offset.load(std::memory_order_relaxed);
  // What other ranks rely on needs no memory.
  const auto after = call.counts() ? state.sequence.end(state.identified() || !talking(j)) : core::Sequence::After{};
  live->since.store(at, std::memory_order_relaxed);
  live_leave();
  bool lost = false;
  if (call.slot) try {  // nullptr: there was no memory for the site
      if (j.threads) {
        const std::lock_guard lock(j.mutex);
        finish_now(call, exit);
      } else {
        finish_now(call, exit);
      }
    } catch (...) {
      lost = true;
    }
  if (after.identify || after.meet) [[unlikely]]
    do_together(state, after);
  try {
    if (j.engine_comm != MPI_COMM_NULL) [[unlikely]]
      engine_iteration(exit);
    if (call.ended_epoch || exchange_is_due(call)) [[unlikely]]
      after_call(call);
    keep_on_disk(at);
    if (state.resting && call.slot && !call.decision.algorithm) [[unlikely]] {
      idle_begin(state, *call.slot, call.signature.op);
      if (idle.state) sampler.discard();
    }
  } catch (...) {
    lost = true;
  }
  if (lost) [[unlikely]]
    warn("out of memory while recording a collective");
}

void defer_call(Call& call, MPI_Request request) noexcept try {
  if (!call.slot) return;
  PendingCall pending;
  pending.request = request;
  pending.state = call.state;
  pending.n = call.n;
  pending.record = record_of(call);
  pending.comm_size = call.state->size;
  pending.share = call.state->share;
  pending.rested = call.state->resting && call.counts();
  pending.persistent = call.signature.kind == core::CallKind::persistent;
  note_pending(pending);
  keep_on_disk(call.arrival - job().clocks.offset.load(std::memory_order_relaxed));
} catch (...) {
  warn("out of memory while recording a collective");
}

}  // namespace latecomer::shim
