// SPDX-License-Identifier: BSD-3-Clause
// Asks MPI for the sizes of datatypes.
#include "shim/mpi/type_sizes.hpp"

#include "shim/mpi/operators.hpp"

namespace latecomer::shim {

TypeTable::TypeTable() {
  for (const KnownType& known : known_types()) {
    if (known.type == MPI_DATATYPE_NULL) continue;
    std::size_t at = place(known.type);
    while (entries_[at].type != MPI_DATATYPE_NULL && entries_[at].type != known.type) at = (at + 1) % kSize;
    MPI_Count size = 0;
    if (may_lack(known.type)) entries_[at] = {known.type, known.group, kUntold};
    else if (PMPI_Type_size_x(known.type, &size) == MPI_SUCCESS)
      entries_[at] = {known.type, known.group, static_cast<std::int32_t>(size)};
  }
}

namespace {

const TypeTable* types = nullptr;

[[gnu::noinline, gnu::cold]] const TypeTable& make_types() {
  static const TypeTable made;
  __atomic_store_n(&types, &made, __ATOMIC_RELEASE);
  return made;
}

}  // namespace

const TypeTable& predefined_types() {
  const TypeTable* there = __atomic_load_n(&types, __ATOMIC_ACQUIRE);
  return there ? *there : make_types();
}

bool size_of_type(MPI_Datatype type, MPI_Count& size) {
  if (const auto* known = predefined_types().find(type); known && known->size != kUntold) [[likely]] {
    size = known->size;
    last_type.set(type, size);
    return true;
  }
  return type != MPI_DATATYPE_NULL && PMPI_Type_size_x(type, &size) == MPI_SUCCESS && size >= 0;
}

}  // namespace latecomer::shim
