// SPDX-License-Identifier: BSD-3-Clause
// Which predefined operators the MPI library runs on which datatypes, and the class of both in U(n). Ranks may name one
// datatype differently, as MPI_2INT and MPI_2INTEGER. So the table has every name that the library takes, and exactly
// its pairs: for a pair that is natively right on all ranks, all ranks find the same. The test mpi.type_table compares
// it with MPI_Reduce_local.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/types.hpp"
#include "shim/mpi/beneath.hpp"

namespace latecomer::shim {

struct KnownType {
  MPI_Datatype type;
  std::uint8_t group;  ///< 0: no predefined operator
};

/// Handles that the library lacks are MPI_DATATYPE_NULL. No constant: the handles of some MPI libraries are not.
inline auto known_types() {
  const std::uint8_t of_byte = beneath().of_byte;
  const std::uint8_t of_integer = beneath().of_integer;
  const std::uint8_t of_sized_integer = beneath().of_sized_integer;
  const std::uint8_t of_character = beneath().of_character;
  [[maybe_unused]] const std::uint8_t of_complex32 = beneath().of_complex32;
  [[maybe_unused]] const std::uint8_t of_small_logical = beneath().of_small_logical;
  return std::to_array<KnownType>({{MPI_CHAR, kInteger},
                                   {MPI_SIGNED_CHAR, kInteger},
                                   {MPI_UNSIGNED_CHAR, kInteger},
                                   {MPI_SHORT, kInteger},
                                   {MPI_UNSIGNED_SHORT, kInteger},
                                   {MPI_INT, kInteger},
                                   {MPI_UNSIGNED, kInteger},
                                   {MPI_LONG, kInteger},
                                   {MPI_UNSIGNED_LONG, kInteger},
                                   {MPI_LONG_LONG, kInteger},
                                   {MPI_UNSIGNED_LONG_LONG, kInteger},
                                   {MPI_INT8_T, kInteger},
                                   {MPI_INT16_T, kInteger},
                                   {MPI_INT32_T, kInteger},
                                   {MPI_INT64_T, kInteger},
                                   {MPI_UINT8_T, kInteger},
                                   {MPI_UINT16_T, kInteger},
                                   {MPI_UINT32_T, kInteger},
                                   {MPI_UINT64_T, kInteger},
                                   {MPI_AINT, kInteger},
                                   {MPI_OFFSET, kInteger},
                                   {MPI_COUNT, kInteger},
                                   {MPI_CHARACTER, of_character},
                                   {MPI_INTEGER, of_integer},
                                   {MPI_INTEGER1, of_sized_integer},
                                   {MPI_INTEGER2, of_sized_integer},
                                   {MPI_INTEGER4, of_integer},
                                   {MPI_INTEGER8, of_sized_integer},
#ifdef MPI_INTEGER16
                                   {MPI_INTEGER16, of_sized_integer},
#endif
                                   {MPI_FLOAT, kFloating},
                                   {MPI_DOUBLE, kFloating},
                                   {MPI_LONG_DOUBLE, kFloating},
                                   {MPI_REAL, kFloating},
                                   {MPI_DOUBLE_PRECISION, kFloating},
#ifdef MPI_REAL2
                                   {MPI_REAL2, kFloating},
#endif
                                   {MPI_REAL4, kFloating},
                                   {MPI_REAL8, kFloating},
#ifdef MPI_REAL16
                                   {MPI_REAL16, kFloating},
#endif
                                   {MPI_LOGICAL, kLogical},
                                   {MPI_C_BOOL, kLogical},
                                   {MPI_CXX_BOOL, kLogical},
#ifndef MPICH_VERSION
                                   {MPI_LOGICAL1, of_small_logical},
                                   {MPI_LOGICAL2, of_small_logical},
                                   {MPI_LOGICAL4, kLogical},
                                   {MPI_LOGICAL8, of_small_logical},
#endif
                                   {MPI_COMPLEX, kComplex},
                                   {MPI_DOUBLE_COMPLEX, kComplex},
#ifdef MPI_COMPLEX4
                                   {MPI_COMPLEX4, kComplex},
#endif
                                   {MPI_COMPLEX8, kComplex},
                                   {MPI_COMPLEX16, kComplex},
#ifdef MPI_COMPLEX32
                                   {MPI_COMPLEX32, of_complex32},
#endif
                                   {MPI_C_FLOAT_COMPLEX, kComplex},
                                   {MPI_C_DOUBLE_COMPLEX, kComplex},
                                   {MPI_C_LONG_DOUBLE_COMPLEX, kComplex},
                                   {MPI_CXX_FLOAT_COMPLEX, kComplex},
                                   {MPI_CXX_DOUBLE_COMPLEX, kComplex},
                                   {MPI_CXX_LONG_DOUBLE_COMPLEX, kComplex},
                                   {MPI_BYTE, of_byte},
                                   {MPI_FLOAT_INT, kPair},
                                   {MPI_DOUBLE_INT, kPair},
                                   {MPI_LONG_INT, kPair},
                                   {MPI_2INT, kPair},
                                   {MPI_SHORT_INT, kPair},
                                   {MPI_LONG_DOUBLE_INT, kPair},
                                   {MPI_2REAL, kPair},
                                   {MPI_2DOUBLE_PRECISION, kPair},
                                   {MPI_2INTEGER, kPair},
                                   {MPI_PACKED, 0},
                                   {MPI_WCHAR, 0}});
}

/// Whether a library may lack a type that has a handle: Fortran's, in the standard ABI.
inline bool may_lack([[maybe_unused]] MPI_Datatype type) {
#ifdef LATECOMER_ABI
  const std::uintptr_t number = bits_of(type);
  return (number >= 0x218 && number < 0x220) || (number >= 0x230 && number < 0x238) || number >= 0x2c0;
#else
  return false;
#endif
}

struct KnownOperator {
  MPI_Op op;
  core::OpClass op_class;
  std::uint8_t groups;
};

inline auto known_operators() {
  using core::OpClass;
  constexpr std::uint8_t kIntegers = kInteger | kUnnamedInteger, kNumbers = kIntegers | kFloating,
                         kBits = kIntegers | kByte;
  return std::to_array<KnownOperator>({{MPI_SUM, OpClass::sum, kNumbers | kComplex},
                                       {MPI_PROD, OpClass::prod, kNumbers | kComplex},
                                       {MPI_MAX, OpClass::max, kNumbers},
                                       {MPI_MIN, OpClass::min, kNumbers},
                                       {MPI_LAND, OpClass::logical, beneath().truth},
                                       {MPI_LOR, OpClass::logical, beneath().truth},
                                       {MPI_LXOR, OpClass::logical, beneath().truth_xor},
                                       {MPI_BAND, OpClass::bitwise, kBits},
                                       {MPI_BOR, OpClass::bitwise, kBits},
                                       {MPI_BXOR, OpClass::bitwise, kBits},
                                       {MPI_MAXLOC, OpClass::loc, kPair},
                                       {MPI_MINLOC, OpClass::loc, kPair},
                                       {MPI_REPLACE, OpClass::none, 0},
                                       {MPI_NO_OP, OpClass::none, 0},
                                       {MPI_OP_NULL, OpClass::none, 0}});
}

/// The group of a datatype that MPI_Type_create_f90_integer, _real or _complex made; 0 for any other.
inline std::uint8_t group_by_envelope(MPI_Datatype type) {
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
  int combiner = MPI_COMBINER_NAMED;
  if (PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner) != MPI_SUCCESS) return 0;
  return combiner == MPI_COMBINER_F90_INTEGER   ? beneath().of_sized_integer
         : combiner == MPI_COMBINER_F90_REAL    ? kFloating
         : combiner == MPI_COMBINER_F90_COMPLEX ? kComplex
                                                : 0;
}

/// Whether no association of operands changes a bit of the result. Equal maxima of floating point may differ in the
/// sign of zero.
constexpr bool is_exact(std::uint8_t group, core::OpClass op_class) {
  return (group & (kInteger | kUnnamedInteger | kLogical | kByte)) != 0 || op_class == core::OpClass::loc;
}

}  // namespace latecomer::shim
