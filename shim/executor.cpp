// SPDX-License-Identifier: BSD-3-Clause
// Compiling schedules to flat arrays, and running them.
#include "shim/executor.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/schedule/verify.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {
namespace {

constexpr std::size_t kKeptSchedules = 64;  // per communicator: slots of a period, sizes that alternate inside one iteration

}  // namespace

constinit std::atomic<int> Executor::built_inside{0}, Executor::built_ahead{0};

/// One schedule in arrays, with the work space of a run.
struct Executor::Compiled {
  std::vector<core::Operation> ops;
  std::vector<std::int32_t> dependent_begin, dependents;  // dependents of i: [begin[i], begin[i+1])
  std::vector<std::int32_t> initial_waiting;
  core::Elements scratch = 0;
  // Work space.
  std::vector<std::int32_t> waiting, ready, active, finished;
  std::vector<MPI_Request> requests;

  explicit Compiled(core::RankProgram program) : ops(std::move(program.ops)), scratch(program.scratch) {
    const std::size_t n = ops.size();
    dependent_begin.assign(n + 1, 0);
    initial_waiting.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      initial_waiting[i] = ops[i].dep_count;
      for (int d = 0; d < ops[i].dep_count; ++d) ++dependent_begin[static_cast<std::size_t>(ops[i].deps[d]) + 1];
    }
    for (std::size_t i = 0; i < n; ++i) dependent_begin[i + 1] += dependent_begin[i];
    dependents.resize(static_cast<std::size_t>(dependent_begin[n]));
    std::vector<std::int32_t> at(dependent_begin.begin(), dependent_begin.end() - 1);
    for (std::size_t i = 0; i < n; ++i)
      for (int d = 0; d < ops[i].dep_count; ++d)
        dependents[static_cast<std::size_t>(at[static_cast<std::size_t>(ops[i].deps[d])]++)] = static_cast<std::int32_t>(i);
    waiting.resize(n), ready.resize(n), active.resize(n), finished.resize(n), requests.resize(n);
  }
};

namespace {

/// Datatype geometry in bytes. Slices are element ranges: element i lies at base + i * extent.
struct Layout {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  bool gapless = false;
  int fill(MPI_Datatype type) {
    int rc = PMPI_Type_size_x(type, &size);
    if (rc == MPI_SUCCESS) rc = PMPI_Type_get_extent_x(type, &lower, &extent);
    if (rc == MPI_SUCCESS) rc = PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
    gapless = size == extent && true_lower == 0 && true_extent == extent;
    return rc;
  }
  std::size_t bytes_for(core::Elements n) const {
    return n == 0 ? 0 : static_cast<std::size_t>((n - 1) * extent + true_extent);
  }
};

}  // namespace

core::Call Executor::Key::call(int ranks) const {
  core::Call out;
  out.op = algorithm->op;
  out.root = root;
  out.ranks = ranks;
  out.count = count;
  out.element_bytes = element_bytes;
  out.in_place = in_place;
  out.commutative = commutative;
  return out;
}

std::shared_ptr<Executor::Compiled> Executor::build(const CommState& state, const Key& key, const core::Plan& plan) {
  core::Parameters parameters;
  parameters.segments = key.segments;
  parameters.overlap = key.overlap;
  parameters.network = job().policy.network;
  const core::Instance instance(key.call(state.size), key.pattern < 0 ? core::Pattern() : core::Pattern(plan.patterns[static_cast<std::size_t>(key.pattern)]), parameters);
  return std::make_shared<Compiled>(core::materialize(*key.algorithm, instance, state.rank));
}

Executor::Compiled& Executor::compiled(CommState& state, const Key& key) {
  for (auto& [known, program] : kept_)
    if (known == key) return *program;
  auto program = build(state, key, state.plan.plan());
  built_inside.fetch_add(1, std::memory_order_relaxed);
  if (kept_.size() < kKeptSchedules) {
    kept_.emplace_back(key, std::move(program));
    return *kept_.back().second;
  }
  next_victim_ = (next_victim_ + 1) % kKeptSchedules;
  kept_[next_victim_] = {key, std::move(program)};
  return *kept_[next_victim_].second;
}

Executor::Key Executor::shape_of(const CommState& state, const core::Signature& signature, const Operands& operands) {
  const core::Call call = core::call_of(signature, state.size);
  Key shape;
  shape.count = call.count;
  shape.element_bytes = call.element_bytes;
  shape.root = call.root;
  // Whoever is not the root of a scatter may pass anything as what it does not send.
  const bool matters = !core::is_rooted(signature.op) || state.rank == call.root;
  shape.in_place = matters && (signature.op == core::Collective::scatter ? operands.recv : operands.send) == MPI_IN_PLACE;
  shape.commutative = call.commutative;
  return shape;
}

void Executor::note(const CommState& state, const core::Signature& signature, std::uint64_t hash, const Operands& operands) {
  for (const Seen& s : seen_)
    if (s.signature == hash) return;
  const Key shape = shape_of(state, signature, operands);
  constexpr std::size_t kKinds = 16;
  if (seen_.size() < kKinds) seen_.push_back({hash, shape});
  else seen_[next_seen_] = {hash, shape}, next_seen_ = (next_seen_ + 1) % kKinds;
}

void Executor::prepare(CommState& state, const core::Plan& plan) {
  prepared_.clear();
  for (const core::PlanEntry& e : plan.entries)
    for (const Seen& s : seen_) {
      if (e.algorithm < 0 || s.signature != e.signature || prepared_.size() == kKeptSchedules) continue;
      Key key = s.shape;
      key.algorithm = &core::algorithm_at(e.algorithm);
      key.segments = e.segments, key.pattern = e.pattern, key.overlap = e.overlap != 0;
      if (std::any_of(prepared_.begin(), prepared_.end(), [&](const auto& p) { return p.first == key; })) continue;
      prepared_.emplace_back(key, build(state, key, plan));
      built_ahead.fetch_add(1, std::memory_order_relaxed);
      // The memory too: what a run would allocate is allocated now.
      const std::size_t need = static_cast<std::size_t>(prepared_.back().second->scratch * key.element_bytes);
      if (scratch_.size() < need + 64) scratch_.resize(need + 64);
    }
}

void Executor::change_plans() {
  std::erase_if(kept_, [](const auto& entry) { return entry.first.pattern >= 0; });
  for (auto& entry : prepared_) {
    if (kept_.size() == kKeptSchedules) break;
    if (std::none_of(kept_.begin(), kept_.end(), [&](const auto& k) { return k.first == entry.first; })) kept_.push_back(std::move(entry));
  }
  prepared_.clear();
}

/// What a scatter, gather or bcast works on: bytes one after the other. Types with gaps go through a buffer of ours.
class Executor::Bytewise {
 public:
  Bytewise(const core::Call& call, const CommState& state, const Operands& operands, std::vector<char>& memory) : call_(call), state_(state) {
    const core::Elements in = core::buffer_elements(call, state.rank, core::Buffer::input), out = core::buffer_elements(call, state.rank, core::Buffer::output);
    if (in > 0) input_ = {const_cast<void*>(operands.send), operands.send_count * in / call.count, operands.send_type, in};
    if (out > 0) output_ = {operands.recv, operands.count * out / call.count, operands.datatype, out};
    std::size_t need = 0;
    for (Side* side : {&input_, &output_}) {
      if (side->bytes == 0) continue;
      Layout layout;
      if (rc_ == MPI_SUCCESS) rc_ = layout.fill(side->type);
      if (!layout.gapless) side->staged = true, need += static_cast<std::size_t>(side->bytes);
    }
    if (memory.size() < need) memory.resize(need);
    char* at = memory.data();
    for (Side* side : {&input_, &output_})
      if (side->staged) side->plain = at, at += side->bytes;
      else side->plain = static_cast<char*>(side->user);
    const bool root = state.rank == call.root;
    if (input_.staged) move(true, input_, 0, input_.bytes);
    if (output_.staged && call.op == core::Collective::bcast && root) move(true, output_, 0, output_.bytes);
  }
  char* input() const { return input_.plain; }
  char* output() const { return output_.plain; }
  /// After the schedule has run.
  int finish() {
    const bool root = state_.rank == call_.root;
    if (!output_.staged || (call_.op == core::Collective::bcast && root)) return rc_;
    if (call_.op == core::Collective::gather && call_.in_place) {  // the own block was never fetched
      const core::Elements own = state_.rank * call_.count;
      move(false, output_, 0, own);
      move(false, output_, own + call_.count, output_.bytes);
    } else {
      move(false, output_, 0, output_.bytes);
    }
    return rc_;
  }
  int rc() const { return rc_; }

 private:
  struct Side {
    void* user = nullptr;
    MPI_Count count = 0;  // of type, in all of the buffer
    MPI_Datatype type = MPI_DATATYPE_NULL;
    core::Elements bytes = 0;
    bool staged = false;
    char* plain = nullptr;
  };
  /// Bytes [from, to), which are whole blocks.
  void move(bool pack, Side& side, core::Elements from, core::Elements to) {
    if (rc_ != MPI_SUCCESS || from >= to) return;
    MPI_Count lower = 0, extent = 0, position = 0;
    rc_ = PMPI_Type_get_extent_x(side.type, &lower, &extent);
    const auto items = [&](core::Elements bytes) { return static_cast<MPI_Count>(static_cast<__int128>(side.count) * bytes / side.bytes); };
    char* user = static_cast<char*>(side.user) + items(from) * extent;
    const MPI_Count count = items(to) - items(from);
    if (rc_ != MPI_SUCCESS) return;
    rc_ = pack ? PMPI_Pack_c(user, count, side.type, side.plain + from, to - from, &position, job().comm)
               : PMPI_Unpack_c(side.plain + from, to - from, &position, user, count, side.type, job().comm);
  }

  const core::Call call_;
  const CommState& state_;
  Side input_, output_;
  int rc_ = MPI_SUCCESS;
};

int Executor::run(CommState& state, const core::Decision& decision, const core::Signature& signature, const Operands& given) {
  Key key = shape_of(state, signature, given);
  key.algorithm = decision.algorithm;
  key.segments = decision.segments, key.pattern = decision.pattern, key.overlap = decision.overlap;
  Operands operands = given;
  std::optional<Bytewise> bytes;
  if (!core::is_reduction(signature.op)) {
    bytes.emplace(key.call(state.size), state, given, staged_);
    operands.send = bytes->input(), operands.recv = bytes->output(), operands.datatype = MPI_BYTE;
  }
  Layout layout;
  int rc = bytes ? bytes->rc() : MPI_SUCCESS;
  if (rc == MPI_SUCCESS) rc = layout.fill(operands.datatype);
  Compiled& program = compiled(state, key);
  const std::size_t need = layout.bytes_for(program.scratch);
  if (scratch_.size() < need + 64) scratch_.resize(need + 64);

  char* base[core::kBuffers];
  base[static_cast<int>(core::Buffer::input)] = operands.send == MPI_IN_PLACE ? nullptr : static_cast<char*>(const_cast<void*>(operands.send));
  base[static_cast<int>(core::Buffer::output)] = static_cast<char*>(operands.recv);
  // Aligned for any type; the first byte in use is at true_lower.
  auto aligned = reinterpret_cast<std::uintptr_t>(scratch_.data());
  aligned = (aligned + 63) & ~std::uintptr_t{63};
  base[static_cast<int>(core::Buffer::scratch)] = reinterpret_cast<char*>(aligned) - layout.true_lower;
  const auto at = [&](const core::Slice& s) { return base[static_cast<int>(s.buffer)] + s.offset * layout.extent; };

  const MPI_Comm comm = job().comm;
  const int self = job().rank;
  std::size_t head = 0, tail = 0;
  int active = 0;
  std::size_t done = 0;
  const std::size_t total = program.ops.size();
  for (std::size_t i = 0; i < total; ++i)
    if ((program.waiting[i] = program.initial_waiting[i]) == 0) program.ready[tail++] = static_cast<std::int32_t>(i);
  const auto complete = [&](std::int32_t op) {
    ++done;
    for (std::int32_t e = program.dependent_begin[static_cast<std::size_t>(op)]; e < program.dependent_begin[static_cast<std::size_t>(op) + 1]; ++e) {
      const std::int32_t next = program.dependents[static_cast<std::size_t>(e)];
      if (--program.waiting[static_cast<std::size_t>(next)] == 0) program.ready[tail++] = next;
    }
  };
  Patience patience(job().courteous);
  while (rc == MPI_SUCCESS && done < total) {
    while (head < tail && rc == MPI_SUCCESS) {
      const std::int32_t id = program.ready[head++];
      const core::Operation& op = program.ops[static_cast<std::size_t>(id)];
      switch (op.kind) {
        case core::OpKind::send:
        case core::OpKind::recv: {
          const Rank peer = state.world[static_cast<std::size_t>(op.peer)];
          const int tag = tag_of(state.context, op.channel);
          MPI_Request& request = program.requests[static_cast<std::size_t>(active)];
          program.active[static_cast<std::size_t>(active)] = id;
          rc = op.kind == core::OpKind::send ? PMPI_Isend_c(at(op.src), op.src.count, operands.datatype, peer, tag, comm, &request)
                                             : PMPI_Irecv_c(at(op.dst), op.dst.count, operands.datatype, peer, tag, comm, &request);
          if (rc == MPI_SUCCESS) ++active;
          break;
        }
        case core::OpKind::reduce:
          rc = PMPI_Reduce_local_c(at(op.src), at(op.dst), op.dst.count, operands.datatype, operands.op);
          complete(id);
          break;
        case core::OpKind::copy:
          if (layout.gapless) std::memcpy(at(op.dst), at(op.src), static_cast<std::size_t>(op.dst.count * layout.extent));
          else
            rc = PMPI_Sendrecv_c(at(op.src), op.src.count, operands.datatype, self, tag_of(state.context, kSelfChannel), at(op.dst),
                                 op.dst.count, operands.datatype, self, tag_of(state.context, kSelfChannel), comm, MPI_STATUS_IGNORE);
          complete(id);
          break;
      }
    }
    if (active == 0 || rc != MPI_SUCCESS) continue;
    int count = 0;
    rc = PMPI_Testsome(active, program.requests.data(), &count, program.finished.data(), MPI_STATUSES_IGNORE);
    if (rc != MPI_SUCCESS || count <= 0) {
      patience.wait();
      continue;
    }
    patience.reset();
    for (int k = 0; k < count; ++k) complete(program.active[static_cast<std::size_t>(program.finished[static_cast<std::size_t>(k)])]);
    int kept = 0;
    for (int k = 0; k < active; ++k) {
      if (program.requests[static_cast<std::size_t>(k)] == MPI_REQUEST_NULL) continue;
      program.requests[static_cast<std::size_t>(kept)] = program.requests[static_cast<std::size_t>(k)];
      program.active[static_cast<std::size_t>(kept++)] = program.active[static_cast<std::size_t>(k)];
    }
    active = kept;
  }
  if (rc == MPI_SUCCESS && bytes) rc = bytes->finish();
  if (rc == MPI_SUCCESS) return MPI_SUCCESS;
  // Other ranks are inside the same schedule: no stepping back, the program's error handler decides.
  warn("an operation of %s failed inside MPI; the communicator's error handler decides", std::string(decision.algorithm->name).c_str());
  for (int k = 0; k < active; ++k)
    if (program.requests[static_cast<std::size_t>(k)] != MPI_REQUEST_NULL) PMPI_Request_free(&program.requests[static_cast<std::size_t>(k)]);
  PMPI_Comm_call_errhandler(state.comm, rc);
  return rc;
}

}  // namespace latecomer::shim
