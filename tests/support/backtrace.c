// SPDX-License-Identifier: BSD-3-Clause
// unw_backtrace without libunwind's cache per thread, for the thread sanitizer. libunwind frees that cache in the last
// round of the destructors of a thread, and locks a mutex there. The sanitizer has dropped the thread in the same
// round.
#define UNW_LOCAL_ONLY
#include <libunwind.h>

int unw_backtrace(void** buffer, int size) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_word_t ip;
  int count = 0;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return 0;
  while (count < size && unw_step(&cursor) > 0 && unw_get_reg(&cursor, UNW_REG_IP, &ip) == 0 && ip != 0)
    buffer[count++] = (void*)ip;
  return count;
}
