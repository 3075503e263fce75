// SPDX-License-Identifier: BSD-3-Clause
// Programs that end natively, and whose ranks are outside MPI when messages of a tool need their progress, or have lost
// a way of MPI for large messages since MPI_Init. Each prints "right" on rank 0. Usage: mailbox CASE [NUMBERS]
//   flag CALLS       after each allreduce the ranks wait for each other on a flag in shared memory
//   setuid CALLS     gives up root's rights after MPI_Init: other processes' memory cannot be read any more
//   seccomp CALLS    a filter refuses process_vm_readv after MPI_Init
//   churn N          duplicates MPI_COMM_WORLD, sums on the duplicate, frees it: N times. Prints the bytes that a
//                    communicator leaves behind, as the kernel counts them
//   contexts N CALLS the same with N communicators that live at once, then CALLS sums on the last one
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rank, size, bad = 0;

static void sum(MPI_Comm comm, int value) {
  int out = 0, ranks;
  MPI_Comm_size(comm, &ranks);
  MPI_Allreduce(&value, &out, 1, MPI_INT, MPI_SUM, comm);
  if (out != ranks * value) ++bad;
}

/// Calls of several kinds and sites, so that the logs and the profile have some length.
static void calls(MPI_Comm comm, int n) {
  int data[4] = {0};
  for (int i = 0; i < n; ++i) {
    sum(comm, i);
    if (i % 3 == 0) MPI_Bcast(data, 1 + i % 4, MPI_INT, i % size, comm);
    if (i % 5 == 0) MPI_Barrier(comm);
    if (i % 7 == 0) MPI_Reduce(&i, data, 1, MPI_INT, MPI_MAX, i % size, comm);
  }
}

/// Memory that all ranks share, zeroed.
static void* shared_memory(size_t bytes) {
  char name[64];
  snprintf(name, sizeof name, "/latecomer-mailbox-%d", (int)getpid());
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    const int made = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (made < 0 || ftruncate(made, (off_t)bytes) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
    close(made);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int file = shm_open(name, O_RDWR, 0600);
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) shm_unlink(name);
  close(file);
  return memory;
}

static void flag(int n) {
  atomic_int* there = shared_memory(sizeof *there);
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int i = 0; i < n; ++i) {
    sum(i % 3 == 1 ? half : MPI_COMM_WORLD, i);
    atomic_fetch_add(there, 1);
    while (atomic_load(there) < (i + 1) * size) sched_yield();  // outside MPI
  }
  MPI_Comm_free(&half);
}

static void refuse_readv(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    printf("no filter\n");
    ++bad;
  }
}

static long resident(void) {
  long pages = 0, held = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &pages, &held) != 2) ++bad;
  if (file) fclose(file);
  return held * sysconf(_SC_PAGESIZE);
}

static void churn(int n) {
  long before = 0;
  for (int i = 0; i < n; ++i) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    calls(copy, 24);
    MPI_Comm_free(&copy);
    if (i == 3 * n / 4) before = resident();
  }
  const long left = (resident() - before) / (n - 3 * n / 4 - 1);
  long most = 0;
  MPI_Reduce(&left, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld bytes\n", most);
}

static void contexts(int n, int last) {
  MPI_Comm* all = malloc((size_t)n * sizeof *all);
  for (int i = 0; i < n; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
    for (int k = 0; k < 17; ++k) sum(all[i], k);
  }
  for (int k = 0; k < last; ++k) sum(all[n - 1], k);
  for (int i = 0; i < n; ++i) MPI_Comm_free(&all[i]);
  free(all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* name = argc > 1 ? argv[1] : "";
  const int n = argc > 2 ? atoi(argv[2]) : 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(name, "flag") == 0) flag(n);
  else if (strcmp(name, "churn") == 0) churn(n);
  else if (strcmp(name, "contexts") == 0) contexts(n, argc > 3 ? atoi(argv[3]) : 0);
  else {
    if (strcmp(name, "setuid") == 0 && setuid(65534) != 0) ++bad;
    if (strcmp(name, "seccomp") == 0) refuse_readv();
    calls(MPI_COMM_WORLD, n);
  }
  if (bad) printf("rank %d: %d wrong\n", rank, bad);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && !bad) printf("right\n");
  MPI_Finalize();
  return bad != 0;
}
