// SPDX-License-Identifier: BSD-3-Clause
// Chooses the schedule of a call and its memory.
#include "shim/executor/executor.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <string_view>
#include <utility>

#include "core/select/planning.hpp"
#include "shim/engine/engine.hpp"
#include "shim/executor/arguments.hpp"
#include "shim/executor/call.hpp"
#include "shim/executor/irregular.hpp"
#include "shim/guard.hpp"
#include "shim/log.hpp"
#include "shim/mpi/end_job.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

// Per communicator. A search of 64 keys takes 0.07 us (measured, one quiet core). Derived: a schedule takes about 150
// bytes per operation, so 64 schedules of 100 operations take 1 MB. Beyond, an old schedule makes room for each new one
// in turn, and its next call builds it again.
constexpr std::size_t kKeptSchedules = 64;

// Derived: a schedule of 1,000 operations takes 150 KiB. A larger one without memory ends the job.
constinit char* reserve = nullptr;  // no destructor: wrappers may run before and after those of the library
constexpr std::size_t kReserve = 256 << 10;

int run_to_end(Running& running) {
  const int rc = running.run_until(job_rules().courteous, [&] { return running.done(); });
  if (rc != MPI_SUCCESS) running.drop_messages();
  return rc == MPI_SUCCESS ? running.failure() : rc;
}

}  // namespace

void spend_reserve() noexcept {
  const JobLock lock;
  delete[] std::exchange(reserve, nullptr);
}

void no_memory_left(const char* purpose) noexcept {
  warn("no memory is left for %s, and other ranks rely on this one: the job ends", purpose);
  end_job(job_world().comm, MPI_ERR_NO_MEM);
}

Executor::Executor() {
  const JobLock lock;
  if (!reserve) reserve = new char[kReserve];
}
Executor::~Executor() = default;

constinit std::atomic<int> Executor::built_inside{0}, Executor::built_ahead{0};

Compiled& Executor::find_or_compile(CommState& state, const ScheduleKey& key) {
  for (auto& [known, program] : kept_)
    if (known == key) return *program;
  auto program = build_schedule(state.rank, state.world, key, &state.member.plan());
  built_inside.fetch_add(1, std::memory_order_relaxed);
  if (kept_.size() < kKeptSchedules) {
    kept_.emplace_back(key, std::move(program));
    return *kept_.back().second;
  }
  next_victim_ = (next_victim_ + 1) % kKeptSchedules;
  kept_[next_victim_] = {key, std::move(program)};
  return *kept_[next_victim_].second;
}

ScheduleKey Executor::key_of(ScheduleKey shape, const core::Decision& decision) {
  shape.algorithm = decision.algorithm;
  shape.segments = decision.segments;
  shape.pattern = decision.pattern;
  shape.sizes = decision.sizes;
  shape.overlap = decision.overlap;
  return shape;
}

ScheduleKey Executor::shape_of(const CommState& state, const core::Signature& signature, const Operands& operands) {
  const core::Call call = core::call_of(signature, state.size);
  ScheduleKey shape;
  shape.count = call.count;
  shape.element_bytes = call.element_bytes;
  shape.root = call.root;
  // Ranks other than the root may pass any pointer as the buffer that they do not use.
  const bool matters = !core::is_rooted(signature.op) || state.rank == call.root;
  const Operands o = with_in_place(signature, state.rank, operands);
  shape.in_place = matters && (core::is_scatter(signature.op) ? o.recv : o.send) == MPI_IN_PLACE;
  shape.commutative = call.commutative;
  return shape;
}

void Executor::note_call(const CommState& state, const core::Signature& signature, std::uint64_t hash,
                         const Operands& operands) {
  // Begin small: most communicators have a few kinds of calls only, and many live for a few calls.
  if (seen_.empty()) seen_.resize(4);
  for (;;) {
    Seen& seen = seen_[hash % seen_.size()];
    if (seen.known && seen.signature == hash) return;
    if (!seen.known || seen_.size() == kKinds) {
      seen = {hash, signature, shape_of(state, signature, operands), true};
      return;
    }
    std::vector<Seen> more(2 * seen_.size());
    for (const Seen& s : seen_)
      if (s.known) more[s.signature % more.size()] = s;
    seen_ = std::move(more);
  }
}

/// Whether the plan `after` needs the schedule that was built for the plan `before`. Equal patterns or sizes may have
/// different indexes in the two plans.
static bool carried_over(ScheduleKey key, const core::Plan& before, const core::Plan& after,
                         const ScheduleKey& wanted) {
  const auto same = [](const auto& xs, int x, const auto& ys, int y) {
    return x < 0 || y < 0 ? x == y : xs.at(static_cast<std::size_t>(x)) == ys.at(static_cast<std::size_t>(y));
  };
  if (!same(before.patterns, key.pattern, after.patterns, wanted.pattern) ||
      !same(before.sizes, key.sizes, after.sizes, wanted.sizes))
    return false;
  key.pattern = wanted.pattern;
  key.sizes = wanted.sizes;
  return key == wanted;
}

static void greet_peers(const CommState& state, const Compiled& program) {
  std::vector<Rank> peers;
  for (const core::Operation& op : program.ops)
    if (op.kind == core::OpKind::send) peers.push_back(state.world[static_cast<std::size_t>(op.peer)]);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  engine_greet(peers);
}

void Executor::prepare_schedules(CommState& state, const core::Plan& plan) {
  prepared_.clear();
  if (seen_.empty()) return;
  const auto build = [&](const core::PlanEntry& e) {
    const Seen& seen = seen_[e.signature % seen_.size()];
    if (e.algorithm < 0 || !seen.known || seen.signature != e.signature || prepared_.size() == kKeptSchedules) return;
    const core::Decision decision = core::decide_planned_call(job_rules().policy, seen.call, state.size, e);
    if (!decision.algorithm || (decision.algorithm->background && state.dispatch.watched))
      return;  // the engine keeps its own
    const ScheduleKey key = key_of(seen.shape, decision);
    if (std::any_of(prepared_.begin(), prepared_.end(), [&](const auto& p) { return p.first == key; })) return;
    const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const auto& k) {
      return carried_over(k.first, state.member.plan(), plan, key);
    });
    if (known != kept_.end()) {
      prepared_.emplace_back(key, known->second);
      return;
    }
    prepared_.emplace_back(key, build_schedule(state.rank, state.world, key, &plan));
    built_ahead.fetch_add(1, std::memory_order_relaxed);
    if (engine_runs()) greet_peers(state, *prepared_.back().second);
    // Allocate the memory of a run now.
    const std::size_t need = static_cast<std::size_t>(prepared_.back().second->scratch * key.element_bytes);
    if (scratch_.size() < need + 64) scratch_.resize(need + 64);
  };
  for (const core::PlanEntry& e : plan.entries) build(e);
  for (const core::PlanEntry& e : plan.turns) build(e);
}

void Executor::change_plans() {
  std::erase_if(kept_, [](const auto& entry) { return entry.first.pattern >= 0 || entry.first.sizes >= 0; });
  for (auto& entry : prepared_) {
    if (kept_.size() == kKeptSchedules) break;
    if (std::none_of(kept_.begin(), kept_.end(), [&](const auto& k) { return k.first == entry.first; })) try {
        kept_.push_back(std::move(entry));
      } catch (const std::bad_alloc&) {
        break;  // the other schedules are built inside their calls
      }
  }
  prepared_.clear();
}

int Executor::run_call(ObservedCall& call) {
  const std::string_view name = call.decision.algorithm->name;
  int failure = MPI_SUCCESS, rc = MPI_SUCCESS;
  try {
    rc = run_decided(call, failure);
  } catch (const std::bad_alloc&) {
    // Without the schedule, this rank does not know the messages that others wait for.
    no_memory_left("the schedule of a collective");
    return MPI_ERR_NO_MEM;
  }
  if (rc == MPI_SUCCESS || thrown_) return rc;
  // The other ranks ran the same schedule, so the native collective is no way out. The program's error handler decides.
  warn("%.*s could not complete on this rank (%s); the communicator's error handler decides",
       static_cast<int>(name.size()), name.data(),
       failure == MPI_ERR_BUFFER || failure == MPI_ERR_ARG ? "MPI does not allow its buffers"
       : failure == MPI_ERR_TYPE                           ? "its datatype is not committed"
       : rc == MPI_ERR_NO_MEM                              ? "out of memory"
       : rc == MPI_ERR_OTHER                               ? "another rank failed in the call"
                                                           : "an operation failed inside MPI");
  PMPI_Comm_call_errhandler(call.state->comm, rc);  // code of the program: it may throw
  return rc;
}

int Executor::run_decided(ObservedCall& call, int& failure) {
  CommState& state = *call.state;
  const core::Decision& decision = call.decision;
  if (std::exchange(runs_, true)) {
    warn("an operator left a collective by a jump, and other ranks need its messages: the job ends");
    end_job(job_world().comm, MPI_ERR_OTHER);
  }
  const Operands given = with_in_place(call.signature, state.rank, call.operands);
  std::optional<OwnPattern> own;
  if (decision.edge && state.dispatch.watched) own = engine_pattern(state, decision.pattern, call.arrival);
  if (own) call.forecast = {true, own->pattern.arrival(state.rank)};
  else if (decision.pattern >= 0)
    call.forecast = {
        false,
        state.member.plan().patterns[static_cast<std::size_t>(decision.pattern)][static_cast<std::size_t>(state.rank)]};
  const ScheduleKey key = key_of(shape_of(state, call.signature, given), decision);
  failure = check_arguments(call.signature, state.rank, given);
  int rc = MPI_SUCCESS;
  try {
    rc = run_by_kind(call, key, given, own ? &*own : nullptr, failure);
  } catch (const std::bad_alloc&) {
    spend_reserve();
    rc = run_by_kind(call, key, given, own ? &*own : nullptr, MPI_ERR_NO_MEM);
  }
  runs_ = false;
  return rc;
}

int Executor::run_by_kind(const ObservedCall& call, const ScheduleKey& key, const Operands& operands,
                          const OwnPattern* own, int failure) {
  const core::Collective op = key.algorithm->op;
  const core::Pattern* const pattern = own ? &own->pattern : nullptr;
  if (core::is_irregular(op)) return run_irregular(call, key, operands, pattern, failure);
  if (!core::is_reduction(op)) return run_movement(call, key, operands, own, failure);
  Layout layout;
  if (failure == MPI_SUCCESS) failure = layout.read_type(operands.datatype);
  return run_schedule(*call.state, key, operands, layout, pattern, failure);
}

int Executor::run_movement(const ObservedCall& call, const ScheduleKey& key, const Operands& given,
                           const OwnPattern* own, int failure) {
  CommState& state = *call.state;
  std::optional<Bytewise> bytes;
  Operands plain = given;
  if (failure == MPI_SUCCESS) {
    bytes.emplace(key.call(state.size), state.rank, job_world().comm, given, staged_);
    failure = bytes->rc();
    plain.send = bytes->input();
    plain.recv = bytes->output();
  }
  const int rc = key.algorithm->background && state.dispatch.watched
                     ? run_with_engine(state, call.n, key, plain, own, failure)
                     : run_schedule(state, key, plain, Layout::bytes(), own ? &own->pattern : nullptr, failure);
  return rc == MPI_SUCCESS ? bytes->finish_copies() : rc;
}

int Executor::run_irregular(const ObservedCall& call, const ScheduleKey& key, const Operands& operands,
                            const core::Pattern* own, int failure) {
  CommState& state = *call.state;
  const core::Call of_key = key.call(state.size);
  const bool root = state.rank == of_key.root;
  if (!irregular_) irregular_ = std::make_unique<Irregular>();
  std::shared_ptr<Compiled> once;
  if (key.algorithm->built_together && key.sizes < 0) {
    core::TreePart part;
    part.children.reserve(std::bit_width(static_cast<unsigned>(state.size)));
    const int rc = build_adaptive(state, core::tree_problem(job_rules().policy.network), of_key.root,
                                  std::max<core::Bytes>(call.block, 0), part);
    if (rc != MPI_SUCCESS) return rc;
    const auto compile = [&] {
      core::TreePart copy = part;
      once = compile_irregular(core::materialize(core::is_gather(of_key.op)
                                                     ? core::gather_part(of_key, state.rank, std::move(copy), {})
                                                     : core::scatter_part(of_key, state.rank, std::move(copy), {})));
    };
    try {
      compile();
    } catch (const std::bad_alloc&) {  // the tree's messages are sent
      spend_reserve();
      failure = MPI_ERR_NO_MEM;
      compile();
    }
  }
  if (own && !once)
    once = build_schedule(
        state.rank, state.world, key, *own,
        key.sizes < 0 ? std::vector<core::Bytes>{} : state.member.plan().sizes[static_cast<std::size_t>(key.sizes)]);
  Compiled& program = once ? *once : find_or_compile(state, key);
  if (failure == MPI_SUCCESS)
    failure = irregular_->begin_call(program, of_key.op, state.rank, root, root && key.in_place, operands);
  Running running;
  running.begin_schedule(program, {job_world().comm, state.context, state.world, job_world().rank}, nullptr,
                         irregular_.get());
  running.note_failure(failure);
  running.set_buffers(nullptr, nullptr, MPI_PACKED, MPI_OP_NULL, Layout::bytes());
  return run_to_end(running);
}

int Executor::run_schedule(CommState& state, const ScheduleKey& key, const Operands& operands, const Layout& layout,
                           const core::Pattern* own, int failure) {
  const std::shared_ptr<Compiled> once = own ? build_schedule(state.rank, state.world, key, *own) : nullptr;
  Compiled& program = once ? *once : find_or_compile(state, key);
  const std::size_t need = failure == MPI_SUCCESS ? layout.bytes_for(program.scratch) + 64 : 0;
  if (scratch_.size() < need) scratch_.resize(need);
  Running running;
  running.begin_schedule(program, {job_world().comm, state.context, state.world, job_world().rank}, nullptr);
  running.note_failure(failure);
  running.give_scratch(scratch_.data(), layout);
  running.set_buffers(operands.send == MPI_IN_PLACE ? nullptr : static_cast<char*>(const_cast<void*>(operands.send)),
                      static_cast<char*>(operands.recv),
                      core::is_reduction(key.algorithm->op) ? operands.datatype : MPI_BYTE, operands.op, layout);
  const int rc = run_to_end(running);
  thrown_ = running.thrown();
  return rc;
}

}  // namespace latecomer::shim
