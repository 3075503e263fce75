// SPDX-License-Identifier: BSD-3-Clause
// MPI 3.1 under the names of MPI 4. A message of more items than an int counts is one item of a derived type. Packing
// and operators take such items in pieces, but not one item of more bytes. The preloaded library serves no call with a
// payload of more bytes, if all ranks know its size (most_count). A family that was compiled with MPI 4 uses them where
// the library has MPI 3.1 (job/family.cpp).
#pragma once

#include <algorithm>
#include <climits>
#include <vector>

namespace latecomer::shim {

using MPI_User_function_c = void(void*, void*, MPI_Count*, MPI_Datatype*);

// clang-format off
#define LATECOMER_PMPI_3(ROW) \
  ROW(PMPI_Irecv) ROW(PMPI_Pack) ROW(PMPI_Reduce_local) ROW(PMPI_Sendrecv) ROW(PMPI_Type_contiguous) ROW(PMPI_Type_create_hindexed) \
  ROW(PMPI_Type_create_resized) ROW(PMPI_Type_create_struct) ROW(PMPI_Type_get_contents) ROW(PMPI_Type_get_envelope) \
  ROW(PMPI_Unpack)
// clang-format on
#ifndef LATECOMER_LINKS_MPI
#define LATECOMER_POINTER(function) inline decltype(&::function) function = nullptr;
LATECOMER_PMPI_3(LATECOMER_POINTER)
#undef LATECOMER_POINTER
#endif

namespace mpi_3 {

inline bool fits(MPI_Count count) { return count <= INT_MAX; }
inline int narrow(MPI_Count count) { return static_cast<int>(count); }
inline int room(MPI_Count bytes) { return fits(bytes) ? narrow(bytes) : INT_MAX; }
template <typename Wide>
std::vector<int> narrow(MPI_Count n, const Wide* values) {
  return {values, values + n};
}
inline std::vector<MPI_Aint> addresses(MPI_Count n, const MPI_Count* values) { return {values, values + n}; }

/// Calls transfer(count, type) for `count` items of `type`, which may be more than an int holds.
template <typename Transfer>
int in_one(MPI_Count count, MPI_Datatype type, Transfer transfer) {
  if (fits(count)) return transfer(narrow(count), type);
  constexpr int kChunk = 1 << 30;
  MPI_Count lower = 0, extent = 0;
  MPI_Datatype made[3] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
  int rc = PMPI_Type_get_extent_x(type, &lower, &extent);
  if (rc == MPI_SUCCESS) rc = PMPI_Type_contiguous(kChunk, type, &made[0]);
  if (rc == MPI_SUCCESS) rc = PMPI_Type_contiguous(narrow(count / kChunk), made[0], &made[1]);
  const int lengths[] = {1, narrow(count % kChunk)};
  const MPI_Aint places[] = {0, count / kChunk * kChunk * extent};
  const MPI_Datatype types[] = {made[1], type};
  if (rc == MPI_SUCCESS) rc = PMPI_Type_create_struct(2, lengths, places, types, &made[2]);
  if (rc == MPI_SUCCESS) rc = PMPI_Type_commit(&made[2]);
  if (rc == MPI_SUCCESS) rc = transfer(1, made[2]);
  for (MPI_Datatype& one : made)
    if (one != MPI_DATATYPE_NULL) PMPI_Type_free(&one);
  return rc;
}

/// Calls move(place, n) for `count` items in pieces of at most 1 GiB, or of one item. `place`: of a piece, in bytes.
template <typename Move>
int in_pieces(MPI_Count count, MPI_Datatype type, Move move) {
  constexpr MPI_Count kPiece = 1 << 30;
  MPI_Count size = 0, lower = 0, extent = 0;
  int rc = PMPI_Type_size_x(type, &size);
  if (rc == MPI_SUCCESS) rc = PMPI_Type_get_extent_x(type, &lower, &extent);
  const MPI_Count most = std::max<MPI_Count>(1, kPiece / std::max<MPI_Count>(1, size));
  for (MPI_Count done = 0; rc == MPI_SUCCESS && done < count; done += most)
    rc = move(done * extent, narrow(std::min(most, count - done)));
  return rc;
}

inline int PMPI_Isend_c(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                        MPI_Request* request) {
  return in_one(count, type, [&](int n, MPI_Datatype of) { return PMPI_Isend(data, n, of, to, tag, comm, request); });
}
inline int PMPI_Irecv_c(void* data, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Request* request) {
  return in_one(count, type, [&](int n, MPI_Datatype of) { return PMPI_Irecv(data, n, of, from, tag, comm, request); });
}
#ifdef LATECOMER_LINKS_MPI  // only ranges have synchronous sends
inline int PMPI_Issend_c(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  return in_one(count, type, [&](int n, MPI_Datatype of) { return PMPI_Issend(data, n, of, to, tag, comm, request); });
}
#endif
inline int PMPI_Reduce_local_c(const void* in, void* inout, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  if (fits(count)) return PMPI_Reduce_local(in, inout, narrow(count), type, op);
  return in_pieces(count, type, [&](MPI_Count place, int n) {
    return PMPI_Reduce_local(static_cast<const char*>(in) + place, static_cast<char*>(inout) + place, n, type, op);
  });
}
inline int PMPI_Sendrecv_c(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, void* received,
                           MPI_Count received_count, MPI_Datatype received_type, int from, int received_tag,
                           MPI_Comm comm, MPI_Status* status) {
  return in_one(count, type, [&](int n, MPI_Datatype of) {
    return in_one(received_count, received_type, [&](int room, MPI_Datatype into) {
      return PMPI_Sendrecv(data, n, of, to, tag, received, room, into, from, received_tag, comm, status);
    });
  });
}
inline int PMPI_Pack_c(const void* data, MPI_Count count, MPI_Datatype type, void* packed, MPI_Count bytes,
                       MPI_Count* position, MPI_Comm comm) {
  const auto piece = [&](const void* from, int n) {
    int used = 0;
    const int rc =
        PMPI_Pack(from, n, type, static_cast<char*>(packed) + *position, room(bytes - *position), &used, comm);
    *position += used;
    return rc;
  };
  if (fits(count) && fits(bytes)) return piece(data, narrow(count));
  return in_pieces(count, type,
                   [&](MPI_Count place, int n) { return piece(static_cast<const char*>(data) + place, n); });
}
inline int PMPI_Unpack_c(const void* packed, MPI_Count bytes, MPI_Count* position, void* data, MPI_Count count,
                         MPI_Datatype type, MPI_Comm comm) {
  const auto piece = [&](void* to, int n) {
    int used = 0;
    const int rc =
        PMPI_Unpack(static_cast<const char*>(packed) + *position, room(bytes - *position), &used, to, n, type, comm);
    *position += used;
    return rc;
  };
  if (fits(count) && fits(bytes)) return piece(data, narrow(count));
  return in_pieces(count, type, [&](MPI_Count place, int n) { return piece(static_cast<char*>(data) + place, n); });
}
inline int PMPI_Type_create_hindexed_c(MPI_Count n, const MPI_Count* lengths, const MPI_Count* places,
                                       MPI_Datatype type, MPI_Datatype* made) {
  for (MPI_Count i = 0; i < n; ++i)
    if (!fits(lengths[i])) return MPI_ERR_COUNT;
  return PMPI_Type_create_hindexed(narrow(n), narrow(n, lengths).data(), addresses(n, places).data(), type, made);
}
inline int PMPI_Type_create_struct_c(MPI_Count n, const MPI_Count* lengths, const MPI_Count* places,
                                     const MPI_Datatype* types, MPI_Datatype* made) {
  for (MPI_Count i = 0; i < n; ++i)
    if (!fits(lengths[i])) return MPI_ERR_COUNT;
  return PMPI_Type_create_struct(narrow(n), narrow(n, lengths).data(), addresses(n, places).data(), types, made);
}
inline int PMPI_Type_create_resized_c(MPI_Datatype type, MPI_Count lower, MPI_Count extent, MPI_Datatype* made) {
  return PMPI_Type_create_resized(type, lower, extent, made);
}
inline int PMPI_Type_get_envelope_c(MPI_Datatype type, MPI_Count* integers, MPI_Count* addresses, MPI_Count* large,
                                    MPI_Count* types, int* combiner) {
  int n[3] = {};
  const int rc = PMPI_Type_get_envelope(type, &n[0], &n[1], &n[2], combiner);
  *integers = n[0];
  *addresses = n[1];
  *large = 0;
  *types = n[2];
  return rc;
}
inline int PMPI_Type_get_contents_c(MPI_Datatype type, MPI_Count integers, MPI_Count addresses, MPI_Count,
                                    MPI_Count types, int* i, MPI_Aint* a, MPI_Count*, MPI_Datatype* t) {
  return PMPI_Type_get_contents(type, narrow(integers), narrow(addresses), narrow(types), i, a, t);
}

}  // namespace mpi_3
}  // namespace latecomer::shim
