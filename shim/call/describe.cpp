// SPDX-License-Identifier: BSD-3-Clause
// What Describe asks MPI about operators. Predefined ones are asked once.
#include "shim/call/describe.hpp"

#include "shim/mpi/operators.hpp"
#include "shim/mpi/type_sizes.hpp"
#include "shim/runner/layout.hpp"

namespace latecomer::shim {

namespace {

/// A predefined operator and a datatype. MPI uses neither handle for anything else, so the last pair stays valid.
struct KnownPair {
  MPI_Op op{};
  MPI_Datatype type{};
  core::OpClass op_class = core::OpClass::none;
  bool defined = false, exact = false;
};
constinit thread_local KnownPair last_pair;
constinit thread_local std::pair<MPI_Op, MPI_Datatype> last_accepted{};

/// Makes a pair the last pair. Returns false if the operator is the program's.
[[gnu::noinline]] bool look_up(MPI_Datatype type, MPI_Op op) {
  static const auto operators = known_operators();
  for (const KnownOperator& known : operators) {
    if (known.op != op) continue;
    const auto* of_table = predefined_types().find(type);
    const std::uint8_t group = of_table ? of_table->group : group_by_envelope(type);
    last_pair = {op, type, known.op_class, (group & known.groups) != 0, is_exact(group, known.op_class)};
    if (!of_table && group == 0) last_pair.type = MPI_Datatype{};  // the program's: its handle may get another meaning
    return true;
  }
  return false;
}

}  // namespace

core::Bytes Describe::bytes_of(MPI_Count count, MPI_Datatype type, int times) {
  if (count < 0 || type == MPI_DATATYPE_NULL) return -1;
  MPI_Count size = 0;
  if (!size_of_type(type, size)) return -1;
  // Modulo 2^64, as MPI computes the sizes of types: so all ranks get the same number.
  const auto bytes = static_cast<core::Bytes>(static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(count) *
                                              static_cast<std::uint64_t>(times));
  return bytes < 0 || (bytes == 0 && count > 0 && holds_data(type)) ? -1 : bytes;
}

Describe& Describe::operated(MPI_Datatype type, MPI_Op op) {
  if (signature_.bytes < 0) return *this;
  const bool known = (op == last_pair.op && type == last_pair.type) || look_up(type, op);
  signature_.refused |= known && !last_pair.defined;
  if (state_.member.rests() && !signature_.refused) last_accepted = {op, type};
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

}  // namespace latecomer::shim
