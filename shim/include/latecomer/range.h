// SPDX-License-Identifier: BSD-3-Clause
// Range communicators ("RBC" in Axtmann, Wiebigke and Sanders 2018): communicators over ranks first, first + stride,
// ..., last of an MPI communicator or of another range. Each process creates them locally, in constant time, without
// communication or memory. Any MPI program can use them without a preload. docs/explanation/range_communicators.md
// explains them; range.hpp is the C++ form.
//
// A range is a value: copy it freely, and do not free it. Two ranges with the same members in the same order, the same
// depth and the same context are one communicator, even if different processes created them. All other ranges are
// isolated from each other, wildcards included.
//
// All functions return an MPI error class and do not invoke MPI error handlers. The rules are MPI's. All members of a
// range call its collectives in the same order. The program does not touch the buffers and MPI_Ops of operations in
// flight (it may free datatypes). Tags: 0 to INT_MAX. Counts are MPI_Count, displacements MPI_Aint in extents of the
// datatype. MPI_IN_PLACE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE have
// MPI's meaning. status.MPI_SOURCE is the rank in the range. Several threads may call under MPI_THREAD_MULTIPLE.
#ifndef LATECOMER_RANGE_H
#define LATECOMER_RANGE_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct latecomer_range_hub;

/* A range of `size` ranks: first, first + stride, ... of the attached communicator. */
typedef struct latecomer_range {
  struct latecomer_range_hub* hub;
  int first, size, stride;
  int depth;   /* 0: all of an MPI communicator; a part has the depth of its parent plus 1 */
  int context; /* chosen by the program, to tell communicators over the same ranks apart */
  int rank;    /* rank of this process in the range; MPI_UNDEFINED: not a member */
} latecomer_range;

/* NULL: no operation. Counts as complete. */
typedef struct latecomer_range_operation* latecomer_range_request;
/* A message that improbe has removed from the queue. */
typedef struct latecomer_range_envelope* latecomer_range_message;

/* All ranks of an intra-communicator, as a range. The first call for a communicator is collective over it (one
 * MPI_Comm_dup); later calls are local. The communicator must outlive the range. Errors: MPI_ERR_COMM. */
int latecomer_range_attach(MPI_Comm comm, latecomer_range* range);
/* Ranks first, first + stride, ..., up to last of `of`. The stride may be negative, and the stride need not reach last.
 * Local: does not communicate, allocate or call MPI. Errors: MPI_ERR_ARG (stride 0, or the range is empty),
 * MPI_ERR_RANK (not in `of`). */
int latecomer_range_create(const latecomer_range* of, int first, int last, int stride, latecomer_range* range);
/* A range of the same ranks with another context. */
int latecomer_range_with_context(const latecomer_range* of, int context, latecomer_range* range);
/* Converts rank r of the range to a rank of the attached communicator, and back (MPI_UNDEFINED: not a member). */
int latecomer_range_to_mpi(const latecomer_range* range, int r);
int latecomer_range_from_mpi(const latecomer_range* range, int mpi_rank);

int latecomer_range_isend(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag,
                          const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_issend(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag,
                           const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_irecv(void* data, MPI_Count count, MPI_Datatype type, int from, int tag,
                          const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_send(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag,
                         const latecomer_range* range);
int latecomer_range_ssend(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag,
                          const latecomer_range* range);
int latecomer_range_recv(void* data, MPI_Count count, MPI_Datatype type, int from, int tag,
                         const latecomer_range* range, MPI_Status* status);
int latecomer_range_sendrecv(const void* send, MPI_Count send_count, MPI_Datatype send_type, int to, int send_tag,
                             void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int from, int recv_tag,
                             const latecomer_range* range, MPI_Status* status);
int latecomer_range_iprobe(int from, int tag, const latecomer_range* range, int* flag, MPI_Status* status);
int latecomer_range_probe(int from, int tag, const latecomer_range* range, MPI_Status* status);
int latecomer_range_improbe(int from, int tag, const latecomer_range* range, int* flag,
                            latecomer_range_message* message, MPI_Status* status);
int latecomer_range_mrecv(void* data, MPI_Count count, MPI_Datatype type, latecomer_range_message* message,
                          MPI_Status* status);
int latecomer_range_imrecv(void* data, MPI_Count count, MPI_Datatype type, latecomer_range_message* message,
                           latecomer_range_request* request);

int latecomer_range_ibarrier(const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_ibcast(void* data, MPI_Count count, MPI_Datatype type, int root, const latecomer_range* range,
                           latecomer_range_request* request);
int latecomer_range_ireduce(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                            const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_iallreduce(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                               const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_iscan(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                          const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_iexscan(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                            const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_ireduce_scatter_block(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                          const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_igather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                            MPI_Count recv_count, MPI_Datatype recv_type, int root, const latecomer_range* range,
                            latecomer_range_request* request);
int latecomer_range_iscatter(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                             MPI_Count recv_count, MPI_Datatype recv_type, int root, const latecomer_range* range,
                             latecomer_range_request* request);
int latecomer_range_iallgather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                               MPI_Count recv_count, MPI_Datatype recv_type, const latecomer_range* range,
                               latecomer_range_request* request);
int latecomer_range_ialltoall(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                              MPI_Count recv_count, MPI_Datatype recv_type, const latecomer_range* range,
                              latecomer_range_request* request);
/* counts and displacements: shape [size]. gatherv and scatterv read them on the root only. They must stay valid until
 * the operation is complete. */
int latecomer_range_igatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                             const MPI_Count* recv_counts, const MPI_Aint* displacements, MPI_Datatype recv_type,
                             int root, const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_iscatterv(const void* send, const MPI_Count* send_counts, const MPI_Aint* displacements,
                              MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type,
                              int root, const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_iallgatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                                const MPI_Count* recv_counts, const MPI_Aint* displacements, MPI_Datatype recv_type,
                                const latecomer_range* range, latecomer_range_request* request);
int latecomer_range_ialltoallv(const void* send, const MPI_Count* send_counts, const MPI_Aint* send_displacements,
                               MPI_Datatype send_type, void* recv, const MPI_Count* recv_counts,
                               const MPI_Aint* recv_displacements, MPI_Datatype recv_type, const latecomer_range* range,
                               latecomer_range_request* request);
/* Completion. Each of these calls advances all operations of the library. A completed request becomes NULL. */
int latecomer_range_test(latecomer_range_request* request, int* flag, MPI_Status* status);
int latecomer_range_wait(latecomer_range_request* request, MPI_Status* status);
int latecomer_range_testall(int count, latecomer_range_request requests[], int* flag, MPI_Status statuses[]);
int latecomer_range_waitall(int count, latecomer_range_request requests[], MPI_Status statuses[]);
/* *index: MPI_UNDEFINED if all are NULL. */
int latecomer_range_waitany(int count, latecomer_range_request requests[], int* index, MPI_Status* status);
int latecomer_range_waitsome(int count, latecomer_range_request requests[], int* done, int indices[],
                             MPI_Status statuses[]);
/* Converts an operation to a generalised request of MPI for MPI_Wait, MPI_Waitall and similar calls, together with any
 * other requests. *request becomes NULL. Errors: MPI_ERR_UNSUPPORTED_OPERATION (a build of Open MPI whose progress
 * takes no functions; the request stays as it is). */
int latecomer_range_to_mpi_request(latecomer_range_request* request, MPI_Request* mpi_request);

/* Creates an MPI communicator over the range without blocking (Axtmann, Wiebigke and Sanders 2018, section VI; for the
 * limits outside of MPI see docs/explanation/range_communicators.md). Only the members call it. Concurrent creations
 * over ranges that share ranks need different tags, of 0 to (MPI_TAG_UB - 8192) / 2 - 1. Errors: MPI_ERR_TAG (another
 * tag), MPI_ERR_UNSUPPORTED_OPERATION (a part of more than one rank without MPI_THREAD_MULTIPLE). */
int latecomer_range_icomm_create(const latecomer_range* range, int tag, MPI_Comm* comm,
                                 latecomer_range_request* request);

/* The blocking forms have the arguments of the i-function without the request. A call with short messages (8 KiB; 3.5
 * KiB on Open MPI) and datatypes without gaps is faster than other calls. It needs a process without requests and a
 * thread level below MPI_THREAD_MULTIPLE. */
int latecomer_range_barrier(const latecomer_range* range);
int latecomer_range_bcast(void* data, MPI_Count count, MPI_Datatype type, int root, const latecomer_range* range);
int latecomer_range_reduce(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                           const latecomer_range* range);
int latecomer_range_allreduce(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                              const latecomer_range* range);
int latecomer_range_scan(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                         const latecomer_range* range);
int latecomer_range_exscan(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                           const latecomer_range* range);
int latecomer_range_reduce_scatter_block(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                         const latecomer_range* range);
int latecomer_range_gather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                           MPI_Count recv_count, MPI_Datatype recv_type, int root, const latecomer_range* range);
int latecomer_range_scatter(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                            MPI_Count recv_count, MPI_Datatype recv_type, int root, const latecomer_range* range);
int latecomer_range_allgather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                              MPI_Count recv_count, MPI_Datatype recv_type, const latecomer_range* range);
int latecomer_range_alltoall(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                             MPI_Count recv_count, MPI_Datatype recv_type, const latecomer_range* range);
int latecomer_range_gatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                            const MPI_Count* recv_counts, const MPI_Aint* displacements, MPI_Datatype recv_type,
                            int root, const latecomer_range* range);
int latecomer_range_scatterv(const void* send, const MPI_Count* send_counts, const MPI_Aint* displacements,
                             MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root,
                             const latecomer_range* range);
int latecomer_range_allgatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv,
                               const MPI_Count* recv_counts, const MPI_Aint* displacements, MPI_Datatype recv_type,
                               const latecomer_range* range);
int latecomer_range_alltoallv(const void* send, const MPI_Count* send_counts, const MPI_Aint* send_displacements,
                              MPI_Datatype send_type, void* recv, const MPI_Count* recv_counts,
                              const MPI_Aint* recv_displacements, MPI_Datatype recv_type, const latecomer_range* range);

#ifdef __cplusplus
}
#endif

#endif
