// SPDX-License-Identifier: BSD-3-Clause
// Around an intercepted collective.
#include "shim/intercept.hpp"

#include <algorithm>
#include <array>

#include "core/base/text.hpp"
#include "shim/exchange.hpp"
#include "shim/log.hpp"
#include "shim/sites.hpp"

namespace latecomer::shim {

thread_local bool inside = false;

namespace {

// Which predefined operators MPI defines on which predefined datatypes (MPI 4.0, 6.9.2). A pair that is
// not listed stays native, so that MPI reports the mistake; no listed pair is a mistake.
enum TypeGroup : std::uint8_t { kInteger = 1, kFloating = 2, kLogical = 4, kComplex = 8, kByte = 16, kPair = 32, kMulti = 64 };

struct KnownType {
  MPI_Datatype type;
  std::uint8_t group;
};

const auto& known_types() {
  static const auto table = [] {
    std::array<KnownType, 46> t{{
        {MPI_CHAR, 0}, {MPI_SIGNED_CHAR, kInteger}, {MPI_UNSIGNED_CHAR, kInteger}, {MPI_SHORT, kInteger},
        {MPI_UNSIGNED_SHORT, kInteger}, {MPI_INT, kInteger}, {MPI_UNSIGNED, kInteger}, {MPI_LONG, kInteger},
        {MPI_UNSIGNED_LONG, kInteger}, {MPI_LONG_LONG, kInteger}, {MPI_UNSIGNED_LONG_LONG, kInteger},
        {MPI_INT8_T, kInteger}, {MPI_INT16_T, kInteger}, {MPI_INT32_T, kInteger}, {MPI_INT64_T, kInteger},
        {MPI_UINT8_T, kInteger}, {MPI_UINT16_T, kInteger}, {MPI_UINT32_T, kInteger}, {MPI_UINT64_T, kInteger},
        {MPI_INTEGER, kInteger}, {MPI_INTEGER1, kInteger}, {MPI_INTEGER2, kInteger}, {MPI_INTEGER4, kInteger}, {MPI_INTEGER8, kInteger},
        {MPI_FLOAT, kFloating}, {MPI_DOUBLE, kFloating}, {MPI_LONG_DOUBLE, kFloating}, {MPI_REAL, kFloating},
        {MPI_DOUBLE_PRECISION, kFloating}, {MPI_REAL4, kFloating}, {MPI_REAL8, kFloating},
        {MPI_LOGICAL, kLogical}, {MPI_C_BOOL, kLogical}, {MPI_COMPLEX, kComplex}, {MPI_DOUBLE_COMPLEX, kComplex},
        {MPI_C_FLOAT_COMPLEX, kComplex}, {MPI_C_DOUBLE_COMPLEX, kComplex}, {MPI_BYTE, kByte},
        {MPI_FLOAT_INT, kPair}, {MPI_DOUBLE_INT, kPair}, {MPI_LONG_INT, kPair}, {MPI_2INT, kPair}, {MPI_SHORT_INT, kPair},
        {MPI_AINT, kMulti}, {MPI_OFFSET, kMulti}, {MPI_COUNT, kMulti}}};
    std::sort(t.begin(), t.end(), [](const KnownType& a, const KnownType& b) { return a.type < b.type; });
    return t;
  }();
  return table;
}

std::uint8_t group_of(MPI_Datatype type) {
  const auto& table = known_types();
  const auto at = std::lower_bound(table.begin(), table.end(), type, [](const KnownType& k, MPI_Datatype t) { return k.type < t; });
  return at != table.end() && at->type == type ? at->group : 0;
}

void classify(core::Signature& s, MPI_Datatype type, MPI_Op op) {
  using core::OpClass;
  struct Row {
    MPI_Op op;
    OpClass op_class;
    std::uint8_t groups;
  };
  static constexpr Row kRows[] = {
      {MPI_SUM, OpClass::sum, kInteger | kFloating | kComplex | kMulti}, {MPI_PROD, OpClass::prod, kInteger | kFloating | kComplex | kMulti},
      {MPI_MAX, OpClass::max, kInteger | kFloating | kMulti}, {MPI_MIN, OpClass::min, kInteger | kFloating | kMulti},
      {MPI_LAND, OpClass::logical, kInteger | kLogical}, {MPI_LOR, OpClass::logical, kInteger | kLogical},
      {MPI_LXOR, OpClass::logical, kInteger | kLogical}, {MPI_BAND, OpClass::bitwise, kInteger | kByte | kMulti},
      {MPI_BOR, OpClass::bitwise, kInteger | kByte | kMulti}, {MPI_BXOR, OpClass::bitwise, kInteger | kByte | kMulti},
      {MPI_MAXLOC, OpClass::loc, kPair}, {MPI_MINLOC, OpClass::loc, kPair}};
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    const std::uint8_t group = group_of(type);
    s.op_class = row.op_class;
    s.servable = (group & row.groups) != 0;
    // Equal maxima of floating point may differ in the sign of zero: exact only where bits are.
    s.exact = (group & (kInteger | kLogical | kByte | kMulti)) != 0 || row.op_class == OpClass::loc;
    return;
  }
  if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP) return;
  int commutes = 0;
  if (PMPI_Op_commutative(op, &commutes) != MPI_SUCCESS) return;
  s.op_class = commutes ? OpClass::user : OpClass::user_noncommutative;
  s.servable = true;
}

core::CallKind kind_of(const Call& call) { return call.signature.kind; }

}  // namespace

Nanoseconds common_now() { return now() + job().clock_offset; }

core::Bytes Describe::bytes_of(MPI_Count count, MPI_Datatype type, int times) {
  if (count < 0 || type == MPI_DATATYPE_NULL) return -1;
  MPI_Count size = 0;
  if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return -1;
  return static_cast<core::Bytes>(size * count * times);
}

void Describe::reduction(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  total(count, type, 1);
  signature.count = count;
  if (signature.bytes < 0) return;
  if (signature.op == core::Collective::allreduce) operands = {send, recv, count, type, op};
  classify(signature, type, op);
}

void begin_call(Call& call, const Describe& description, void* return_address) noexcept try {
  CommState& state = *call.state;
  Job& j = job();
  call.signature = description.signature;
  call.record.site = site_of(return_address);
  call.record.bytes = call.signature.bytes;
  call.record.root = call.signature.root;
  call.record.op = call.signature.op;
  call.record.kind = call.signature.kind;
  call.record.arrival = common_now();
  if (state.size == 1 || state.foreign || !core::counted(kind_of(call))) return;

  const bool talks = j.together && j.policy.exchange == core::Exchange::epoch;
  const auto step = state.sequence.begin(call.signature, talks && j.announces, talks && state.identified());
  call.n = step.n;
  if (step.hear) hear(state);
  if (step.ends_epoch) {
    end_epoch(state);
    collect(state);
    if (step.announce) announce(state, step.n);
    sweep_outgoing();
  }
  if (j.together) {
    call.decision = core::decide(j.policy, call.signature, state.size);
    if (call.decision.algorithm) {
      if (!state.identified()) {
        if (resolve_members(state)) identify(state);
      }
      if (!state.usable()) call.decision = {};
      else if (!state.executor) state.executor = std::make_unique<Executor>();
    }
    if (call.decision.algorithm)
      call.record.algorithm = static_cast<std::uint8_t>(1 + (call.decision.algorithm - core::catalogue().data()));
  }
  const JobLock lock;  // another thread may be completing a non-blocking call of this communicator
  if (state.log.size() == call.n - state.logged_from && state.log.size() < core::Sequence::kRootedEpoch)
    state.log.push_back(call.record);
  else
    ++state.log_missed;
} catch (...) {
  warn("out of memory while preparing a collective");
  PMPI_Comm_call_errhandler(call.state->comm, MPI_ERR_NO_MEM);
}

void finish_record(CommState* state, std::uint64_t n, const profiles::CallRecord& record, int comm_size) {
  const JobLock lock;
  if (state && n >= state->logged_from && n - state->logged_from < state->log.size() && record.kind != core::CallKind::persistent)
    state->log[n - state->logged_from].exit = record.exit;
  const profiles::SiteKey key{record.site, record.op, comm_size};
  profiles::LocalSite* local = state && state->last_local && state->last_key == key ? state->last_local : &job().local[key];
  if (state) state->last_local = local, state->last_key = key;
  local->add(record);
}

void end_call(Call& call) noexcept try {
  CommState& state = *call.state;
  Job& j = job();
  call.record.exit = common_now();
  finish_record(&state, call.n, call.record, state.size);
  if (state.size == 1 || state.foreign) return;
  const bool talks = j.together && j.policy.exchange == core::Exchange::epoch;
  if (state.sequence.end(call.signature, state.identified()) && talks && resolve_members(state)) identify(state);
} catch (...) {
  warn("out of memory while recording a collective");
}

void defer_call(Call& call, MPI_Request request) noexcept try {
  PendingCall pending;
  pending.request = request;
  pending.state = call.state;
  pending.n = call.n;
  pending.record = call.record;
  pending.comm_size = call.state->size;
  pending.persistent = call.signature.kind == core::CallKind::persistent;
  note_pending(pending);
} catch (...) {
  warn("out of memory while recording a collective");
}

}  // namespace latecomer::shim
