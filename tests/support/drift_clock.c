// SPDX-License-Identifier: BSD-3-Clause
// A monotonic clock that runs fast or slow by DRIFT_PPM from the first reading on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec* out) {
  static int (*next)(clockid_t, struct timespec*);
  static long long begin, ppm;
  if (!next) next = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int rc = next(id, out);
  if (rc != 0 || id != CLOCK_MONOTONIC) return rc;
  const long long now = out->tv_sec * 1000000000LL + out->tv_nsec;
  if (!begin) {
    const char* text = getenv("DRIFT_PPM");
    ppm = text ? atoll(text) : 0;
    begin = now;
  }
  const long long shown = now + (now - begin) / 1000 * ppm / 1000;
  out->tv_sec = shown / 1000000000LL;
  out->tv_nsec = shown % 1000000000LL;
  return 0;
}
