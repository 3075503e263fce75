// SPDX-License-Identifier: BSD-3-Clause
// Holds the table of datatypes and operators (shim/mpi/operators.hpp) against the MPI library. MPI_Reduce_local with
// count 0 tells pairs that it takes from those that it refuses. Needs no launcher.
#include <cstdio>
#include <string>
#include <vector>

#include "shim/mpi/operators.hpp"

using namespace latecomer::shim;

namespace {

int bad = 0;

void check(const char* what, MPI_Datatype type, std::uint8_t group) {
  char in[64] = {}, out[64] = {};
  for (const KnownOperator& known : known_operators()) {
    const bool taken = MPI_Reduce_local(in, out, 0, type, known.op) == MPI_SUCCESS;
    if (taken == ((group & known.groups) != 0)) continue;
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    MPI_Type_get_name(type, name, &length);
    std::printf("%s %s: the library %s operator class %d\n", what, name, taken ? "takes" : "refuses",
                static_cast<int>(known.op_class));
    ++bad;
  }
}

}  // namespace

int main() {
  MPI_Init(nullptr, nullptr);
  if (!find_beneath()) return 2;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (const KnownType& known : known_types())
    if (int size = 0; known.type != MPI_DATATYPE_NULL &&
                      (!may_lack(known.type) || (MPI_Type_size(known.type, &size) == MPI_SUCCESS && size > 0)))
      check("predefined", known.type, known.group);

  // Datatypes of the program, by their envelope.
  std::vector<MPI_Datatype> made;
  const auto make = [&](auto function, auto... arguments) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (function(arguments..., &type) != MPI_SUCCESS || type == MPI_DATATYPE_NULL) return;
    MPI_Type_commit(&type);
    made.push_back(type);
  };
  for (const int digits : {1, 2, 4, 8, 9, 18}) make(MPI_Type_create_f90_integer, digits);
  for (const auto& [digits, range] : {std::pair(6, 30), std::pair(15, 300), std::pair(18, 4000)}) {
    make(MPI_Type_create_f90_real, digits, range);
    make(MPI_Type_create_f90_complex, digits, range);
  }
  if (made.size() < 8) {
    ++bad;
    std::printf("%zu datatypes of Fortran 90\n", made.size());
  }
  make(MPI_Type_dup, MPI_INT);
  make(MPI_Type_contiguous, 1, MPI_INT);
  make(MPI_Type_create_resized, MPI_INT, MPI_Aint{0}, MPI_Aint{4});
  make(MPI_Type_dup, made.front());
  for (const MPI_Datatype type : made) check("made", type, group_by_envelope(type));
  std::printf("%d differences\n", bad);
  MPI_Finalize();
  return bad != 0;
}
