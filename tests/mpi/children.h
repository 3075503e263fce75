/* SPDX-License-Identifier: BSD-3-Clause
   Children that a rank forks while it is observed. They end by exit or exec, and must end with 0. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* After every eighth call. `work`: what the child computes with `n`; NULL: nothing. */
static inline void disturb(int call, void (*work)(long), long n) {
  if (call % 8 != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    if (work) work(n);
    if (call % 16 == 0) execl("/bin/true", "true", (char*)NULL);
    exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fprintf(stderr, "a child ended with status %d\n", status);
    abort();
  }
}
