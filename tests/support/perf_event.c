/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for the system call perf_event_open. PERF_EVENT_ERRNO: the error that it returns; PERF_EVENT_THREAD_ERRNO:
 * the same for other threads than the calling one. PERF_EVENT_HARDWARE: it counts nanoseconds of processor time instead
 * of what the hardware counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>

__attribute__((visibility("default"))) long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "syscall");
  va_list list;
  va_start(list, number);
  long with[6];
  for (int i = 0; i < 6; ++i) with[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_perf_event_open) {
    const char* error = getenv("PERF_EVENT_ERRNO");
    if (!error && with[1] != 0) error = getenv("PERF_EVENT_THREAD_ERRNO");
    if (error) {
      errno = atoi(error);
      return -1;
    }
    struct perf_event_attr about = *(const struct perf_event_attr*)with[0];
    if (about.type == PERF_TYPE_HARDWARE && getenv("PERF_EVENT_HARDWARE")) {
      about.type = PERF_TYPE_SOFTWARE;
      about.config = PERF_COUNT_SW_TASK_CLOCK;
      with[0] = (long)&about;
      return real(number, with[0], with[1], with[2], with[3], with[4], with[5]);
    }
  }
  return real(number, with[0], with[1], with[2], with[3], with[4], with[5]);
}
