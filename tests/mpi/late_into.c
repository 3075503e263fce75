/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 1 is late into one function of MPI, MS milliseconds in each round. Rank 0 waits for it there, or in the barrier
 * behind it. `late_into` prints the cases that this library has. `late_into CASE FOLDER` runs one, on two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 5, MS = 20, LARGE = 1 << 20 };

static int rank, keyval, place, count, two = 2;
static const int one = 1, yes = 1, neighbour[2] = {1, 0}, degrees[2] = {1, 2};
static char path[400], port[MPI_MAX_PORT_NAME], *data, *more;
static MPI_Comm world, comm, base; /* `comm`: what a call makes, `base`: what it is made of */
static MPI_Group all, peer;        /* `peer`: the other rank */
static MPI_Info info;
static MPI_Win win;
static MPI_File file;
static MPI_Request request;
static MPI_Message message;
static MPI_Status status;
static void* address;

static void compute(int who) {
  struct timespec begin, at;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &at);
  while (rank == who && (at.tv_sec - begin.tv_sec) * 1000 + (at.tv_nsec - begin.tv_nsec) / 1000000 < MS);
}

static void make_inter(void) {
  MPI_Comm own;
  MPI_Comm_split(world, rank, 0, &own);
  MPI_Intercomm_create(own, 0, world, 1 - rank, 1, &base);
  MPI_Comm_free(&own);
}

/* Both ends of a connection. */
static int connect_ranks(void) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path, sizeof name.sun_path, "%.90s.s", path);
  int end = socket(AF_UNIX, SOCK_STREAM, 0);
  if (rank == 0 && (bind(end, (struct sockaddr*)&name, sizeof name) != 0 || listen(end, 1) != 0)) MPI_Abort(world, 2);
  MPI_Barrier(world);
  if (rank == 1) return connect(end, (struct sockaddr*)&name, sizeof name) == 0 ? end : -1;
  const int listening = end;
  end = accept(listening, NULL, NULL);
  close(listening);
  unlink(name.sun_path);
  return end;
}

/* Rank 1 holds the lock of its window while it computes. */
static void hold_lock(void) {
  MPI_Win_create(data, LARGE, 1, MPI_INFO_NULL, world, &win);
  if (rank == 0) return;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
  MPI_Put(more, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
  MPI_Win_flush(1, win);
}

/* Callbacks, in which rank 0 waits for the other rank. It computes as long behind them, so no other wait is as long. */
static void exchange(void) {
  MPI_Sendrecv(data, 8, MPI_BYTE, 1 - rank, 1, more, 8, MPI_BYTE, 1 - rank, 1, world, MPI_STATUS_IGNORE);
}
static int copy_attribute(MPI_Comm from, int key, void* state, void* value, void* copy, int* flag) {
  *flag = from == MPI_COMM_NULL || key != keyval || state || !value || !copy;
  exchange();
  return *flag ? MPI_ERR_OTHER : MPI_SUCCESS;
}
static int delete_attribute(MPI_Comm from, int key, void* value, void* state) {
  exchange();
  return from == MPI_COMM_NULL || key != keyval || !value || state ? MPI_ERR_OTHER : MPI_SUCCESS;
}
static void set_attribute(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* end) {
  MPI_Comm_create_keyval(copy, end, &keyval, NULL);
  MPI_Comm_split(world, 0, rank, &base);
  MPI_Comm_set_attr(base, keyval, data);
}

/* clang-format off */
#define NOTHING (void)0
#define FREE(made) if (made != MPI_COMM_NULL) MPI_Comm_free(&made)
#define WINDOW MPI_Win_create(data, LARGE, 1, MPI_INFO_NULL, world, &win)
#define FREE_WINDOW MPI_Win_free(&win)
#define OPEN MPI_File_open(world, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)
#define CLOSE MPI_File_close(&file)
#define BYTES data, 8, MPI_BYTE
#define MORE more, 8, MPI_BYTE
#define PUT MPI_Put(MORE, 1, 0, 8, MPI_BYTE, win)
#define ANYHOW MPI_STATUS_IGNORE
#define FROM(...) if (rank == 0) { __VA_ARGS__; } else MPI_Send(BYTES, 0, 1, world)
#define TO(...) if (rank == 0) { __VA_ARGS__; } else MPI_Recv(data, LARGE, MPI_BYTE, 0, 1, world, ANYHOW)
#define BOTH(zero, one_) if (rank == 0) { zero; } else { one_; }
#define FILES(ROW, name, ...) ROW(name, OPEN, __VA_ARGS__, CLOSE)

/* Name; what comes first; what rank 1 is late into; what comes behind the barrier. */
#define CASES(ROW)                                                                                                         \
  ROW(Comm_dup, NOTHING, MPI_Comm_dup(world, &comm), FREE(comm))                                                           \
  ROW(Comm_dup_with_info, NOTHING, MPI_Comm_dup_with_info(world, info, &comm), FREE(comm))                                 \
  ROW(Comm_split, NOTHING, MPI_Comm_split(world, 0, rank, &comm), FREE(comm))                                              \
  ROW(Comm_split_type, NOTHING, MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, info, &comm), FREE(comm))           \
  ROW(Comm_create, NOTHING, MPI_Comm_create(world, all, &comm), FREE(comm))                                                \
  ROW(Comm_create_group, NOTHING, MPI_Comm_create_group(world, all, 1, &comm), FREE(comm))                                 \
  ROW(Cart_create, NOTHING, MPI_Cart_create(world, 1, &two, &yes, 0, &comm), FREE(comm))                                   \
  ROW(Cart_map, NOTHING, MPI_Cart_map(world, 1, &two, &yes, &place), NOTHING)                                              \
  ROW(Cart_sub, MPI_Cart_create(world, 1, &two, &yes, 0, &base), MPI_Cart_sub(base, &yes, &comm), FREE(comm); FREE(base))  \
  ROW(Graph_create, NOTHING, MPI_Graph_create(world, 2, degrees, neighbour, 0, &comm), FREE(comm))                         \
  ROW(Graph_map, NOTHING, MPI_Graph_map(world, 2, degrees, neighbour, &place), NOTHING)                                    \
  ROW(Dist_graph_create, NOTHING, MPI_Dist_graph_create(world, 1, &rank, &one, &neighbour[rank], &one, info, 0, &comm), FREE(comm)) \
  ROW(Dist_graph_create_adjacent, NOTHING, MPI_Dist_graph_create_adjacent(world, 1, &neighbour[rank], &one, 1, &neighbour[rank], &one, info, 0, &comm), FREE(comm)) \
  ROW(Intercomm_create, MPI_Comm_split(world, rank, 0, &base), MPI_Intercomm_create(base, 0, world, 1 - rank, 1, &comm), FREE(comm); FREE(base)) \
  ROW(Intercomm_merge, make_inter(), MPI_Intercomm_merge(base, rank, &comm), FREE(comm); FREE(base))                       \
  ROW(Comm_set_info, MPI_Comm_dup(world, &comm), MPI_Comm_set_info(comm, info), FREE(comm))                                \
  ROW(Comm_free, MPI_Comm_dup(world, &comm), MPI_Comm_free(&comm), NOTHING)                                                \
  ROW(Comm_disconnect, MPI_Comm_dup(world, &comm), MPI_Comm_disconnect(&comm), NOTHING)                                    \
  ROW(Comm_accept, NOTHING, BOTH(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &comm), MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &comm)), MPI_Comm_disconnect(&comm)) \
  ROW(Comm_connect, NOTHING, BOTH(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &comm), MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &comm)), MPI_Comm_disconnect(&comm)) \
  ROW(Comm_join, place = connect_ranks(), MPI_Comm_join(place, &comm), close(place); MPI_Comm_disconnect(&comm))           \
  ROW(Win_create, NOTHING, WINDOW, FREE_WINDOW)                                                                            \
  ROW(Win_allocate, NOTHING, MPI_Win_allocate(8, 1, info, world, &address, &win), FREE_WINDOW)                             \
  ROW(Win_allocate_shared, NOTHING, MPI_Win_allocate_shared(8, 1, info, world, &address, &win), FREE_WINDOW)               \
  ROW(Win_create_dynamic, NOTHING, MPI_Win_create_dynamic(info, world, &win), FREE_WINDOW)                                 \
  ROW(Win_set_info, WINDOW, MPI_Win_set_info(win, info), FREE_WINDOW)                                                      \
  ROW(Win_free, WINDOW, FREE_WINDOW, NOTHING)                                                                              \
  ROW(Win_fence, WINDOW, MPI_Win_fence(0, win), FREE_WINDOW)                                                               \
  ROW(Win_complete, WINDOW, BOTH(MPI_Win_start(peer, 0, win); PUT; MPI_Win_complete(win), MPI_Win_post(peer, 0, win); MPI_Win_wait(win)), FREE_WINDOW) \
  ROW(Win_wait, WINDOW, BOTH(MPI_Win_post(peer, 0, win); MPI_Win_wait(win), MPI_Win_start(peer, 0, win); MPI_Win_complete(win)), FREE_WINDOW) \
  ROW(Win_lock, hold_lock(), BOTH(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win); PUT; MPI_Win_unlock(1, win), MPI_Win_unlock(1, win)), FREE_WINDOW) \
  ROW(Win_lock_all, hold_lock(), BOTH(MPI_Win_lock_all(0, win); PUT; MPI_Win_flush(1, win); MPI_Win_unlock_all(win), MPI_Win_unlock(1, win)), FREE_WINDOW) \
  ROW(Send, NOTHING, TO(MPI_Send(data, LARGE, MPI_BYTE, 1, 1, world)), NOTHING)                                            \
  ROW(Ssend, NOTHING, TO(MPI_Ssend(BYTES, 1, 1, world)), NOTHING)                                                          \
  ROW(Buffer_detach, NOTHING, TO(MPI_Buffer_attach(more, LARGE + MPI_BSEND_OVERHEAD); MPI_Bsend(data, LARGE, MPI_BYTE, 1, 1, world); MPI_Buffer_detach(&address, &count)), NOTHING) \
  ROW(Recv, NOTHING, FROM(MPI_Recv(BYTES, 1, 1, world, ANYHOW)), NOTHING)                                                  \
  ROW(Probe, NOTHING, FROM(MPI_Probe(1, 1, world, ANYHOW); MPI_Recv(BYTES, 1, 1, world, ANYHOW)), NOTHING)                 \
  ROW(Mprobe, NOTHING, FROM(MPI_Mprobe(1, 1, world, &message, ANYHOW); MPI_Mrecv(BYTES, &message, ANYHOW)), NOTHING)       \
  ROW(Wait, NOTHING, FROM(MPI_Irecv(BYTES, 1, 1, world, &request); MPI_Wait(&request, ANYHOW)), NOTHING)                   \
  ROW(Waitall, NOTHING, FROM(MPI_Irecv(BYTES, 1, 1, world, &request); MPI_Waitall(1, &request, &status)), NOTHING) \
  ROW(Ineighbor_allgather, MPI_Cart_create(world, 1, &two, &yes, 0, &base), MPI_Ineighbor_allgather(BYTES, MORE, base, &request); MPI_Wait(&request, ANYHOW), FREE(base)) \
  ROW(Waitany, NOTHING, FROM(MPI_Irecv(BYTES, 1, 1, world, &request); MPI_Waitany(1, &request, &place, ANYHOW)), NOTHING)  \
  ROW(Waitsome, NOTHING, FROM(MPI_Irecv(BYTES, 1, 1, world, &request); MPI_Waitsome(1, &request, &count, &place, &status)), NOTHING) \
  ROW(Sendrecv, NOTHING, MPI_Sendrecv(BYTES, 1 - rank, 1, MORE, 1 - rank, 1, world, ANYHOW), NOTHING)                      \
  ROW(Sendrecv_replace, NOTHING, MPI_Sendrecv_replace(BYTES, 1 - rank, 1, 1 - rank, 1, world, ANYHOW), NOTHING)            \
  ROW(File_open, NOTHING, OPEN, CLOSE)                                                                                     \
  ROW(File_close, OPEN, CLOSE, NOTHING)                                                                                    \
  FILES(ROW, File_set_view, MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info))                                \
  FILES(ROW, File_set_size, MPI_File_set_size(file, 100))                                                                  \
  FILES(ROW, File_preallocate, MPI_File_preallocate(file, 100))                                                            \
  FILES(ROW, File_set_info, MPI_File_set_info(file, info))                                                                 \
  FILES(ROW, File_set_atomicity, MPI_File_set_atomicity(file, 1))                                                          \
  FILES(ROW, File_sync, MPI_File_sync(file))                                                                               \
  FILES(ROW, File_seek_shared, MPI_File_seek_shared(file, 0, MPI_SEEK_SET))                                                \
  FILES(ROW, File_write_all, MPI_File_write_all(file, BYTES, ANYHOW))                                                      \
  FILES(ROW, File_read_all, MPI_File_read_all(file, BYTES, ANYHOW))                                                        \
  FILES(ROW, File_write_at_all, MPI_File_write_at_all(file, 8 * rank, BYTES, ANYHOW))                                      \
  FILES(ROW, File_read_at_all, MPI_File_read_at_all(file, 8 * rank, BYTES, ANYHOW))                                        \
  FILES(ROW, File_write_ordered, MPI_File_write_ordered(file, BYTES, ANYHOW))                                              \
  FILES(ROW, File_read_ordered, MPI_File_read_ordered(file, BYTES, ANYHOW))                                                \
  FILES(ROW, File_write_all_begin, MPI_File_write_all_begin(file, BYTES); MPI_File_write_all_end(file, data, ANYHOW))      \
  FILES(ROW, File_read_all_begin, MPI_File_read_all_begin(file, BYTES); MPI_File_read_all_end(file, data, ANYHOW))         \
  FILES(ROW, File_write_at_all_begin, MPI_File_write_at_all_begin(file, 8 * rank, BYTES); MPI_File_write_at_all_end(file, data, ANYHOW)) \
  FILES(ROW, File_read_at_all_begin, MPI_File_read_at_all_begin(file, 8 * rank, BYTES); MPI_File_read_at_all_end(file, data, ANYHOW)) \
  FILES(ROW, File_write_ordered_begin, MPI_File_write_ordered_begin(file, BYTES); MPI_File_write_ordered_end(file, data, ANYHOW)) \
  FILES(ROW, File_read_ordered_begin, MPI_File_read_ordered_begin(file, BYTES); MPI_File_read_ordered_end(file, data, ANYHOW)) \
  ROW(copies_attribute, set_attribute(copy_attribute, MPI_COMM_NULL_DELETE_FN), MPI_Comm_dup(base, &comm), compute(0); FREE(comm); FREE(base); MPI_Comm_free_keyval(&keyval)) \
  ROW(deletes_attribute, set_attribute(MPI_COMM_NULL_COPY_FN, delete_attribute), FREE(base), compute(0); MPI_Comm_free_keyval(&keyval))
#define CASES_4(ROW)                                                                                                       \
  ROW(Comm_create_from_group, NOTHING, MPI_Comm_create_from_group(all, "late", info, MPI_ERRORS_ARE_FATAL, &comm), FREE(comm))
/* clang-format on */

#define DEFINE(name, first, call, behind) \
  static void run_##name(void) {          \
    first;                                \
    MPI_Barrier(world);                   \
    compute(1);                           \
    call;                                 \
    MPI_Barrier(world);                   \
    behind;                               \
  }
CASES(DEFINE)
#if MPI_VERSION >= 4
CASES_4(DEFINE)
#endif

#define ENTER(name, first, call, behind) {#name, run_##name},
static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {CASES(ENTER)
#if MPI_VERSION >= 4
                 CASES_4(ENTER)
#endif
};
enum { NUMBER = sizeof cases / sizeof *cases };

int main(int argc, char** argv) {
  if (argc < 3)
    for (int i = 0; i < NUMBER; ++i) puts(cases[i].name);
  if (argc < 3) return 0;
  int found = 0;
  while (found < NUMBER && strcmp(cases[found].name, argv[1]) != 0) ++found;
  if (found == NUMBER) return 2;
  data = calloc(LARGE, 1);
  more = calloc(2 * LARGE, 1);
  snprintf(path, sizeof path, "%s/late", argv[2]);
  MPI_Init(&argc, &argv);
  world = MPI_COMM_WORLD;
  MPI_Comm_rank(world, &rank);
  const int other = 1 - rank;
  MPI_Comm_group(world, &all);
  MPI_Group_incl(all, 1, &other, &peer);
  MPI_Info_create(&info);
  const int accepts = strcmp(argv[1], "Comm_connect") == 0; /* this rank opens a port */
  if (strcmp(argv[1], "Comm_accept") == 0 || accepts) {
    if (rank == accepts) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, accepts, world);
  }
  FILE* filled = rank == 0 ? fopen(path, "w") : NULL; /* Open MPI 4.1 hangs at the end of an empty file */
  if (filled && (fwrite(data, 1, LARGE, filled) != LARGE || fclose(filled) != 0)) MPI_Abort(world, 3);
  for (int round = 0; round < ROUNDS; ++round) cases[found].run();
  MPI_Finalize();
  return 0;
}
