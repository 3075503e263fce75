/* SPDX-License-Identifier: BSD-3-Clause
   Computation and sleep of so many milliseconds, for programs that make a rank late. */
#pragma once

#include <time.h>

#include "../bench/nap.h"

static inline double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Steps of arithmetic. A loop around a clock would be time in the kernel. */
static inline void step(double steps) {
  volatile double x = 1;
  for (long i = 0; i < (long)steps; ++i) x = x * 0.999 + 0.001;
}

static double steps_per_ms;
static inline void compute(double ms) { step(ms * steps_per_ms); }
/* Call this function before compute(). */
static inline void calibrate(void) {
  for (int i = 0; i < 5; ++i) { /* the fastest: another process may run meanwhile */
    const double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
    step(200000);
    const double found = 200 / (seconds(CLOCK_THREAD_CPUTIME_ID) - begin);
    if (found > steps_per_ms) steps_per_ms = found;
  }
}
