/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for the system call perf_event_open. PERF_EVENT_ERRNO: the error that it returns. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
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
  const char* const error = getenv("PERF_EVENT_ERRNO");
  if (number == SYS_perf_event_open && error) {
    errno = atoi(error);
    return -1;
  }
  return real(number, with[0], with[1], with[2], with[3], with[4], with[5]);
}
