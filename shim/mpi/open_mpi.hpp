// SPDX-License-Identifier: BSD-3-Clause
// Open MPI's predefined handles. Its header makes them from the addresses of variables in MPI's library. A library that
// does not link MPI cannot refer to them, so each is a pointer that start_family() sets. Constants of MPI are therefore
// no constants of the compiler here: no static object may hold one. The range library links MPI and takes its header's.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

// clang-format off
#define LATECOMER_PREDEFINED_TYPES(ROW) \
  ROW(ompi_mpi_datatype_null) ROW(ompi_mpi_byte) ROW(ompi_mpi_packed) ROW(ompi_mpi_char) ROW(ompi_mpi_short) \
  ROW(ompi_mpi_int) ROW(ompi_mpi_long) ROW(ompi_mpi_float) ROW(ompi_mpi_double) ROW(ompi_mpi_long_double) \
  ROW(ompi_mpi_unsigned_char) ROW(ompi_mpi_signed_char) ROW(ompi_mpi_unsigned_short) ROW(ompi_mpi_unsigned_long) \
  ROW(ompi_mpi_unsigned) ROW(ompi_mpi_float_int) ROW(ompi_mpi_double_int) ROW(ompi_mpi_longdbl_int) \
  ROW(ompi_mpi_long_int) ROW(ompi_mpi_short_int) ROW(ompi_mpi_2int) ROW(ompi_mpi_wchar) ROW(ompi_mpi_long_long_int) \
  ROW(ompi_mpi_unsigned_long_long) ROW(ompi_mpi_2cplex) ROW(ompi_mpi_2dblcplex) ROW(ompi_mpi_character) \
  ROW(ompi_mpi_logical) ROW(ompi_mpi_logical1) ROW(ompi_mpi_logical2) ROW(ompi_mpi_logical4) ROW(ompi_mpi_logical8) \
  ROW(ompi_mpi_integer) ROW(ompi_mpi_integer1) ROW(ompi_mpi_integer2) ROW(ompi_mpi_integer4) ROW(ompi_mpi_integer8) \
  ROW(ompi_mpi_integer16) ROW(ompi_mpi_real) ROW(ompi_mpi_real4) ROW(ompi_mpi_real8) ROW(ompi_mpi_real16) \
  ROW(ompi_mpi_dblprec) ROW(ompi_mpi_cplex) ROW(ompi_mpi_complex8) ROW(ompi_mpi_complex16) ROW(ompi_mpi_complex32) \
  ROW(ompi_mpi_dblcplex) ROW(ompi_mpi_2real) ROW(ompi_mpi_2dblprec) ROW(ompi_mpi_2integer) ROW(ompi_mpi_int8_t) \
  ROW(ompi_mpi_uint8_t) ROW(ompi_mpi_int16_t) ROW(ompi_mpi_uint16_t) ROW(ompi_mpi_int32_t) ROW(ompi_mpi_uint32_t) \
  ROW(ompi_mpi_int64_t) ROW(ompi_mpi_uint64_t) ROW(ompi_mpi_aint) ROW(ompi_mpi_offset) ROW(ompi_mpi_c_bool) \
  ROW(ompi_mpi_c_float_complex) ROW(ompi_mpi_c_double_complex) ROW(ompi_mpi_c_long_double_complex) \
  ROW(ompi_mpi_cxx_bool) ROW(ompi_mpi_cxx_cplex) ROW(ompi_mpi_cxx_dblcplex) ROW(ompi_mpi_cxx_ldblcplex) \
  ROW(ompi_mpi_count)
#define LATECOMER_PREDEFINED_OTHERS(ROW) \
  ROW(ompi_mpi_group_null) ROW(ompi_mpi_comm_null) ROW(ompi_request_null) ROW(ompi_message_null) \
  ROW(ompi_mpi_op_null) ROW(ompi_mpi_errhandler_null) ROW(ompi_mpi_info_null) ROW(ompi_mpi_win_null) \
  ROW(ompi_mpi_file_null) ROW(ompi_mpi_info_env) ROW(ompi_mpi_comm_world) ROW(ompi_mpi_comm_self) \
  ROW(ompi_mpi_group_empty) ROW(ompi_message_no_proc) ROW(ompi_mpi_op_max) ROW(ompi_mpi_op_min) ROW(ompi_mpi_op_sum) \
  ROW(ompi_mpi_op_prod) ROW(ompi_mpi_op_land) ROW(ompi_mpi_op_band) ROW(ompi_mpi_op_lor) ROW(ompi_mpi_op_bor) \
  ROW(ompi_mpi_op_lxor) ROW(ompi_mpi_op_bxor) ROW(ompi_mpi_op_maxloc) ROW(ompi_mpi_op_minloc) \
  ROW(ompi_mpi_op_replace) ROW(ompi_mpi_op_no_op) ROW(ompi_mpi_errors_are_fatal) ROW(ompi_mpi_errors_return)
#define LATECOMER_PREDEFINED(ROW) LATECOMER_PREDEFINED_TYPES(ROW) LATECOMER_PREDEFINED_OTHERS(ROW)
// clang-format on

#ifndef LATECOMER_LINKS_MPI
namespace latecomer::shim::mpi_globals {
#define LATECOMER_POINTER(global) inline void* global = nullptr;
LATECOMER_PREDEFINED(LATECOMER_POINTER)
#undef LATECOMER_POINTER
}  // namespace latecomer::shim::mpi_globals

#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(latecomer::shim::mpi_globals::global))

namespace latecomer::shim {
/// Attributes of a communicator stay with it.
inline int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}
inline int copy_nothing(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}
inline int delete_nothing(MPI_Datatype, int, void*, void*) { return MPI_SUCCESS; }
}  // namespace latecomer::shim
#undef MPI_COMM_NULL_COPY_FN
#define MPI_COMM_NULL_COPY_FN latecomer::shim::copy_nothing
#undef MPI_TYPE_NULL_COPY_FN
#define MPI_TYPE_NULL_COPY_FN latecomer::shim::copy_nothing
#undef MPI_TYPE_NULL_DELETE_FN
#define MPI_TYPE_NULL_DELETE_FN latecomer::shim::delete_nothing
#endif

namespace latecomer::shim {

/// The predefined types, but for pairs of a value and an index, which may have a gap. Their addresses have no order:
/// some are the program's copies.
class BasicTypes {
 public:
  BasicTypes() {
#define LATECOMER_TYPE(global) put(OMPI_PREDEFINED_GLOBAL(void*, global));
    LATECOMER_PREDEFINED_TYPES(LATECOMER_TYPE)
#undef LATECOMER_TYPE
  }
  bool hold(MPI_Datatype type) const {
    std::size_t at = place(type);
    while (types_[at] && types_[at] != type) at = (at + 1) % kPlaces;
    return types_[at] == type && type != nullptr;
  }

 private:
  static constexpr std::size_t kPlaces = 256;  // for 77 types: a search is short
  static std::size_t place(const void* type) {
    return (reinterpret_cast<std::uintptr_t>(type) >> 5) * 2654435761u >> 16 & (kPlaces - 1);
  }
  void put(void* type) {
    for (const MPI_Datatype other : {MPI_DATATYPE_NULL, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT,
                                     MPI_LONG_DOUBLE_INT, MPI_2INT, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER})
      if (type == other) return;
    std::size_t at = place(type);
    while (types_[at]) at = (at + 1) % kPlaces;
    types_[at] = type;
  }
  const void* types_[kPlaces] = {};
};
inline bool is_basic(MPI_Datatype type) {
  static const BasicTypes basic;
  return basic.hold(type);
}

}  // namespace latecomer::shim
