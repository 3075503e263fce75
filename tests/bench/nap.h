// SPDX-License-Identifier: BSD-3-Clause
// A sleep, as a benchmark's computation.
#pragma once

#include <time.h>

static inline void nap(double ms) {
  struct timespec t = {(time_t)(ms / 1000), (long)((ms - 1000 * (long)(ms / 1000)) * 1e6)};
  nanosleep(&t, NULL);
}
