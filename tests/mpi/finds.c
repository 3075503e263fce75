// SPDX-License-Identifier: BSD-3-Clause
// Programs about which latecomer said something false. Usage: finds CASE [argument]. Rank 0 prints "right".
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int rank, size, bad = 0;

static void sum_over(MPI_Comm comm, int calls) {
  for (int i = 0, one = 1, sum; i < calls; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
}

/// Code without a module, as a just-in-time compiler makes it: calls MPI_Allreduce with its own arguments.
typedef int (*Generated)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
static Generated generate(void) {
  // push %rbp; mov %rsp,%rbp; movabs $MPI_Allreduce,%rax; call *%rax; pop %rbp; ret
  unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
  const Generated target = MPI_Allreduce;
  memcpy(code + 6, &target, sizeof target);
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(page, code, sizeof code);
  Generated out;
  memcpy(&out, &page, sizeof out);
  return out;
}
static __attribute__((noinline)) void solve(Generated reduce) {
  int one = 1, sum = 0;
  for (int i = 0; i < 40; ++i) bad += reduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != 0 || sum != size;
}
static __attribute__((noinline)) void check(Generated reduce) {
  int one = 1, sum = 0;
  for (int i = 0; i < 20; ++i) bad += reduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != 0 || sum != size;
}

/// Rank 0 alone and all others, as two groups of one communicator.
static void groups(void) {
  MPI_Comm half, inter, merged;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0, 7, &inter);
  sum_over(inter, 100);
  MPI_Intercomm_merge(inter, rank > 0, &merged);
  sum_over(merged, 30);
}

/// One process, and three that it starts, in one communicator.
static void spawn(char* self) {
  MPI_Comm parent, inter, merged;
  char* arguments[] = {"spawn", NULL};
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL)
    MPI_Comm_spawn(self, arguments, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  else inter = parent;
  MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged);
  sum_over(merged, 100);
  MPI_Comm_disconnect(&inter);
  if (parent != MPI_COMM_NULL) rank = 1;
}

/// A datatype of 2^64 bytes, all of them the same one.
static void huge(void) {
  char byte = 1;
  MPI_Datatype types[5] = {MPI_BYTE};
  for (int i = 0; i < 4; ++i) MPI_Type_create_hvector(65536, 1, 0, types[i], &types[i + 1]);
  MPI_Type_commit(&types[4]);
  MPI_Type_commit(&types[3]);
  MPI_Bcast(&byte, 1, types[4], 0, MPI_COMM_SELF);
  MPI_Bcast(&byte, 65536, types[3], 0, MPI_COMM_SELF);
  MPI_Bcast(&byte, 0, types[4], 0, MPI_COMM_SELF);
}

/// Each rank is a root: its messages wait, and nobody waits for them.
static void differ(void) {
  int value = 1;
  sum_over(MPI_COMM_WORLD, 6);
  MPI_Bcast(&value, 1, MPI_INT, rank, MPI_COMM_WORLD);
}

/// Rank 0 does not come. Of the others, rank 1 makes another call.
static void wait(void) {
  int one = 1, sum = 0;
  sum_over(MPI_COMM_WORLD, 5);
  if (rank == 0) sleep(600);
  else if (rank == 1) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  else MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "plain") == 0) sum_over(MPI_COMM_WORLD, 40);
  else if (strcmp(what, "groups") == 0) groups();
  else if (strcmp(what, "spawn") == 0) spawn(argv[0]);
  else if (strcmp(what, "huge") == 0) huge();
  else if (strcmp(what, "differ") == 0) differ();
  else if (strcmp(what, "wait") == 0) wait();
  else if (strcmp(what, "generated") == 0) {
    const Generated reduce = generate();
    solve(reduce);
    check(reduce);
  } else if (strcmp(what, "folder") == 0) {
    sum_over(MPI_COMM_WORLD, 400);
    bad += chdir(argv[2]) != 0;
    sum_over(MPI_COMM_WORLD, 400);
  } else {
    bad = 1;
  }
  if (rank == 0 && !bad) printf("right\n");
  MPI_Finalize();
  return bad;
}
