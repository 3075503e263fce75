/* SPDX-License-Identifier: BSD-3-Clause */
/* Extra work in the function that contains INJECT, on the rank INJECT_RANK, INJECT_LOOPS additions each time. */
#pragma once
#include <stdlib.h>
#include <string.h>

static volatile double injected_sink;
static long injected_loops = -1;
__attribute__((noinline, unused)) static long find_injected_loops(void) {
  const char *rank = getenv("PMI_RANK"), *late = getenv("INJECT_RANK"), *loops = getenv("INJECT_LOOPS");
  return injected_loops = rank && late && loops && strcmp(rank, late) == 0 ? atol(loops) : 0;
}
/* A macro, so that the lines are those of the function. */
#define INJECT                                                                                               \
  {                                                                                                          \
    const long injected_n = injected_loops < 0 ? find_injected_loops() : injected_loops;                     \
    double injected_x = 1;                                                                                   \
    for (long injected_i = 0; injected_i < injected_n; ++injected_i) injected_x = injected_x * 0.999999 + 1; \
    injected_sink = injected_x;                                                                              \
  }
