// SPDX-License-Identifier: BSD-3-Clause
// Programs that broke other tools: MPI sessions, inter-communicators, spawned processes, null arguments, errors on one
// rank, children, stacks of the program's own, large vectors, ends without MPI_Finalize. Each prints "right" on rank 0
// and must end as natively. Usage: traps CASE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int rank, size, bad = 0;
#define CHECK(condition) ((condition) ? 0 : (bad++, printf("rank %d: line %d: %s\n", rank, __LINE__, #condition)))

static int sum_over(MPI_Comm comm, int value) {
  int out = 0;
  MPI_Allreduce(&value, &out, 1, MPI_INT, MPI_SUM, comm);
  return out;
}
static void begin(void) {
  MPI_Init(NULL, NULL);  // as Fortran does
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}
static void pause_ms(long ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

#if MPI_VERSION >= 4
// Two sessions without MPI_Init, or one session beside the world model. (MPICH 4.0.2 crashes when a session begins
// after the last one has ended.)
static void sessions(int also_world) {
  MPI_Session session[2];
  for (int round = 0; round < 2; ++round) {
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session[round]);
    if (also_world && round == 1) begin();
    MPI_Group_from_session_pset(session[round], "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, round ? "second" : "first", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 40; ++i) {
      if (rank == 1) pause_ms(1);
      CHECK(sum_over(comm, rank + i) == size * (size - 1) / 2 + i * size);
    }
    if (also_world && round == 1)
      for (int i = 0; i < 40; ++i) CHECK(sum_over(MPI_COMM_WORLD, i) == i * size);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
  }
  if (also_world) MPI_Finalize();
  for (int round = 0; round < 2; ++round) MPI_Session_finalize(&session[round]);
}
#endif

static void in_place_null(void) {
  int all[64] = {0}, one = rank, counts[64], displs[64];
  for (int i = 0; i < size; ++i) {
    counts[i] = 1;
    displs[i] = i;
  }
  for (int i = 0; i < 40; ++i) {
    memset(all, 0, sizeof all);
    all[rank] = rank + 1;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) CHECK(all[r] == r + 1);
    all[rank] = rank + 2;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, displs, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) CHECK(all[r] == r + 2);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) CHECK(all[r] == rank + 2);
    const int root = i % size;
    if (rank == root) {
      all[rank] = rank;
      MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, root, MPI_COMM_WORLD);
      for (int r = 0; r < size; ++r) CHECK(all[r] == r);
      MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
    } else {
      MPI_Gather(&one, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
      MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, &one, 1, MPI_INT, root, MPI_COMM_WORLD);
      CHECK(one == rank);
    }
  }
}

// A delete callback on MPI_COMM_SELF, set before any other, calls MPI during MPI_Finalize.
static int late_callback(MPI_Comm comm, int keyval, void* attribute, void* extra) {
  (void)comm;
  (void)keyval;
  (void)attribute;
  (void)extra;
  for (int i = 0; i < 20; ++i) CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_SUCCESS;
}
static void after_finalize(void) {
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, late_callback, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, NULL);
  for (int i = 0; i < 20; ++i) CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
}

// Open MPI 4.1.4 crashes where a communicator is freed before its non-blocking collective is complete, and takes longer
// to make one.
#ifdef OPEN_MPI
enum { kFreesInFlight = 0, kChurned = 1000 };
#else
enum { kFreesInFlight = 1, kChurned = 3000 };
#endif

// Thousands of communicators with a few calls each. Handles of communicators and requests are reused.
static void churn(void) {
  for (int i = 0; i < kChurned; ++i) {
    MPI_Comm comm;
    MPI_Request request;
    int in = rank, out = 0;
    if (i % 3 == 0) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    else MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (i % 2) CHECK(sum_over(comm, 1) == size);
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
    if (i % 5 == 0 && kFreesInFlight) {  // free the communicator first
      MPI_Comm_free(&comm);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (i % 5 == 1) {
      int done = 0;
      while (!done) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      MPI_Comm_free(&comm);
    } else {
      MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
      MPI_Comm_free(&comm);
    }
    CHECK(out == size * (size - 1) / 2);
  }
}

static void intercommunicators(void) {
  MPI_Comm half, inter, merged;
  const int low = rank < size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 7, &inter);
  int mine, others;
  MPI_Comm_size(half, &mine);
  MPI_Comm_remote_size(inter, &others);
  for (int i = 0; i < 60; ++i) {
    int data = low ? -1 : i, sum = 0;
    MPI_Request request;
    int half_rank;
    MPI_Comm_rank(half, &half_rank);
    MPI_Bcast(&data, 1, MPI_INT, low ? 0 : half_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    CHECK(data == i);
    const int one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == others);
    MPI_Barrier(inter);
    MPI_Ibarrier(inter, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum_over(half, 1) == mine);
  }
  MPI_Intercomm_merge(inter, !low, &merged);
  for (int i = 0; i < 40; ++i) CHECK(sum_over(merged, 1) == size);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

static void spawning(const char* self) {
  MPI_Comm parent, inter, merged;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    char* arguments[] = {"spawn", NULL};
    MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  } else {
    inter = parent;
  }
  MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged);
  int together;
  MPI_Comm_size(merged, &together);
  for (int i = 0; i < 40; ++i) CHECK(sum_over(merged, 1) == together);
  for (int i = 0; i < 40; ++i) CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
  int total = sum_over(merged, bad);
  bad = total;
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&inter);
  if (parent != MPI_COMM_NULL) {
    MPI_Finalize();
    exit(0);
  }
}

// One rank makes a mistake and gets an error. The other ranks get none, and all continue.
static void one_error(void) {
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 200; ++i) CHECK(sum_over(dup, 1) == size);
  char message[100] = {0};
  const int rc = MPI_Bcast(message, rank == size - 1 ? 3 : 100, MPI_CHAR, 0, dup);
  CHECK((rc != MPI_SUCCESS) == (rank == size - 1));
  for (int i = 0; i < 300; ++i) CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
  for (int i = 0; i < 300; ++i) CHECK(sum_over(dup, 1) == size);
  MPI_Comm_free(&dup);
}

// Children: a shell with early binding, a fork that ends by exit(), a fork that executes another program.
static void children(void) {
  for (int i = 0; i < 20; ++i) CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
  setenv("LD_BIND_NOW", "1", 1);
  FILE* shell = popen("echo from the shell", "r");
  char text[64] = "";
  if (!shell || !fgets(text, sizeof text, shell)) CHECK(!"no shell");
  CHECK(strcmp(text, "from the shell\n") == 0);
  CHECK(shell && pclose(shell) == 0);
  for (int kind = 0; kind < 2; ++kind) {
    int status = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      if (kind == 0) exit(5);
      execl("/bin/sh", "sh", "-c", "exit 6", (char*)NULL);
      _exit(1);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5 + kind);
  }
  for (int i = 0; i < 20; ++i) CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
}

static void* leave_soon(void* unused) {
  pause_ms(50);
  exit(5);
  return unused;
}
static void leaving_operator(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)in;
  (void)inout;
  (void)count;
  (void)type;
  exit(5);
}

// Rank 1 comes last, however slow the others are: they tell it that they are about to enter the next collective.
static void come_last(void) {
  if (rank != 1) MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
  for (int r = 0; rank == 1 && r < size - 1; ++r)
    MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) pause_ms(1);
}

// Makes calls for a while, then ends without MPI_Finalize.
static void end_badly(const char* how) {
  for (int i = 0;; ++i) {
    if (size > 1) come_last();
    sum_over(MPI_COMM_WORLD, i);
    if (i < 400) continue;
    if (strcmp(how, "run_on") == 0) {
      if (i == 400 && rank == 0) {
        printf("going\n");
        fflush(stdout);
      }
      if (i < 20000) continue;
    }
    if (strcmp(how, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 9);
    if (strcmp(how, "crash") == 0 && rank == 1) raise(SIGSEGV);
    if (strcmp(how, "killed") == 0 && rank == 1) raise(SIGKILL);
    if (strcmp(how, "all_killed") == 0) raise(SIGKILL);
    if (strcmp(how, "no_finalize") == 0) exit(0);
    if (strcmp(how, "exit_in_thread") == 0 && i == 400) {  // this thread goes on inside MPI
      pthread_t thread;
      pthread_create(&thread, NULL, leave_soon, NULL);
    }
    if (strcmp(how, "exit_in_operator") == 0) {
      MPI_Op op;
      int sum;
      MPI_Op_create(leaving_operator, 1, &op);
      MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    }
    if (strcmp(how, "late_killed") == 0 && rank == 1) {  // the other ranks wait in MPI_Finalize
      pause_ms(2000);
      raise(SIGKILL);
    }
    if (strcmp(how, "late_killed") == 0) break;
    if (strcmp(how, "late_finalize") == 0) {  // like a rank that writes its results
      if (rank == 0) sleep(33);
      break;
    }
    if (strcmp(how, "run_on") == 0) break;
  }
}

static void sums(int calls) {
  for (int i = 0; i < calls; ++i) CHECK(sum_over(MPI_COMM_WORLD, rank + i) == size * (size - 1) / 2 + i * size);
}

// Messages from any source, partitioned, cancelled, and to a rank that does not exist, between collectives.
static void messages(void) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Comm quiet;
  MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 200; ++i) {
    MPI_Request pair[2];
    MPI_Status status;
    int got = -1, from = -1, seen = 0, index, cancelled = 0;
    if (rank == 0) {
      for (int r = 1; r < size; ++r) {
        MPI_Message message;
        if (i % 3 == 0) {
          MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (i % 3 == 1) {
          MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
          MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, 1, MPI_COMM_WORLD, &status);
        } else {
          MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
          MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        }
        seen += got;
      }
      CHECK(seen == size * (size - 1) / 2);
    } else {
      if ((i + rank) % 8 == 0) pause_ms(1);
      MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Irecv(&from, 1, MPI_INT, MPI_ANY_SOURCE, 2, quiet, &pair[0]);
    MPI_Isend(&rank, 1, MPI_INT, next, 2, quiet, &pair[1]);
    MPI_Waitany(2, pair, &index, &status);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    CHECK(from == before);
    MPI_Irecv(&got, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &pair[0]);
    MPI_Cancel(&pair[0]);
    MPI_Wait(&pair[0], &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
    for (int k = 0; k < 20; ++k) CHECK(MPI_Send(&rank, 1, MPI_INT, 1000000, 4, MPI_COMM_WORLD) != MPI_SUCCESS);
    CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
  }
#if MPI_VERSION >= 4
  double out[8] = {0}, in[8] = {0};
  MPI_Request parts[2];
  MPI_Psend_init(out, 4, 2, MPI_DOUBLE, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &parts[0]);
  MPI_Precv_init(in, 4, 2, MPI_DOUBLE, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &parts[1]);
  for (int i = 0; i < 100; ++i) {
    MPI_Startall(2, parts);
    for (int p = 0; p < 4; ++p) {
      out[2 * p] = out[2 * p + 1] = rank + i;
      MPI_Pready(p, parts[0]);
    }
    CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
    MPI_Waitall(2, parts, MPI_STATUSES_IGNORE);
    CHECK(in[0] == before + i && in[7] == before + i);
  }
  MPI_Request_free(&parts[0]);
  MPI_Request_free(&parts[1]);
#endif
  MPI_Comm_free(&quiet);
}

// Collectives on stacks that the program made itself, in turns.
enum { kStack = 256 << 10 };
static ucontext_t scheduler, fibre[2];
static void on_fibre(int which) {
  for (int i = 0; i < 60; ++i) {
    sums(2);
    swapcontext(&fibre[which], &scheduler);
  }
}
static void contexts(void) {
  char* stacks[2];
  for (int f = 0; f < 2; ++f) {
    getcontext(&fibre[f]);
    fibre[f].uc_stack.ss_sp = stacks[f] = malloc(kStack);
    fibre[f].uc_stack.ss_size = kStack;
    fibre[f].uc_link = &scheduler;
    makecontext(&fibre[f], (void (*)(void))on_fibre, 1, f);
  }
  for (int i = 0; i < 2 * 61; ++i) swapcontext(&scheduler, &fibre[i % 2]);
  free(stacks[0]);
  free(stacks[1]);
}

// Vectors of 2.2 GiB, above 2^31 bytes: of few elements, and of more than 2^31.
static void large(void) {
  const size_t count = 295279001;
  double* data = malloc(count * sizeof *data);
  if (!data) MPI_Abort(MPI_COMM_WORLD, 3);
  for (size_t i = 0; i < count; ++i) data[i] = (double)(rank + i % 1000);
  MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; i += 999) CHECK(data[i] == size * (size - 1) / 2 + size * (double)(i % 1000));
  if (rank == 0)
    for (size_t i = 0; i < count; ++i) data[i] = (double)i;
#if MPI_VERSION >= 4
  MPI_Bcast_c(data, (MPI_Count)(count * sizeof *data), MPI_BYTE, 0, MPI_COMM_WORLD);
#else
  MPI_Bcast(data, (int)count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
#endif
  for (size_t i = 0; i < count; i += 997) CHECK(data[i] == (double)i);
  free(data);
}

// All of MPI in a thread other than main's.
static void* thread_of_mpi(void* unused) {
  begin();
  sums(200);
  bad = sum_over(MPI_COMM_WORLD, bad);
  MPI_Finalize();
  return unused;
}

// A timer's handler ends the job at any point.
static void abort_now(int number) { MPI_Abort(MPI_COMM_WORLD, number == SIGALRM ? 7 : 8); }
static void abort_in_handler(long us) {
  signal(SIGALRM, abort_now);
  const struct itimerval timer = {{0, 0}, {us / 1000000, us % 1000000}};
  if (rank == size - 1) setitimer(ITIMER_REAL, &timer, NULL);
  for (;;) sums(1000);
}

// MPI uses the handle of a message again for a collective. Rank 3 is late there, and nobody's message is.
static void handles(void) {
  for (int i = 0; i < 40; ++i) {
    int got = -1, flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 6, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 6, MPI_COMM_WORLD);
    if (i % 2 == 0) MPI_Wait(&request, &status);
    while (i % 2 == 1 && !flag) MPI_Test(&request, &flag, &status);
    CHECK(got == (rank + size - 1) % size);
    if (rank == 3) pause_ms(10);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    CHECK(sum_over(MPI_COMM_WORLD, 1) == size);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "thread_init") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, thread_of_mpi, NULL);
    pthread_join(thread, NULL);
    if (rank == 0 && bad == 0) printf("right\n");
    return bad != 0;
  }
#if MPI_VERSION >= 4
  if (strncmp(what, "sessions", 8) == 0) {
    sessions(strcmp(what, "sessions_and_world") == 0);
  } else
#endif
  {
    begin();
    if (strcmp(what, "in_place_null") == 0) in_place_null();
    else if (strcmp(what, "after_finalize") == 0) after_finalize();
    else if (strcmp(what, "churn") == 0) churn();
    else if (strcmp(what, "inter") == 0) intercommunicators();
    else if (strcmp(what, "spawn") == 0) spawning(argv[0]);
    else if (strcmp(what, "one_error") == 0) one_error();
    else if (strcmp(what, "children") == 0) children();
    else if (strcmp(what, "messages") == 0) messages();
    else if (strcmp(what, "handles") == 0) handles();
    else if (strcmp(what, "contexts") == 0) contexts();
    else if (strcmp(what, "large") == 0) large();
    else if (strcmp(what, "abort_in_handler") == 0) abort_in_handler(argc > 2 ? atol(argv[2]) : 20000);
    else end_badly(what);
    if (strcmp(what, "one_error") != 0) bad = sum_over(MPI_COMM_WORLD, bad);
    MPI_Finalize();
  }
  if (rank == 0 && bad == 0) printf("right\n");
  return bad != 0;
}
