/* SPDX-License-Identifier: BSD-3-Clause
 * Preloaded: counts the messages that MPICH hands to UCX, its own collectives' too. Only what is between nodes goes
 * there; MPIR_CVAR_NOLOCAL=1 makes every process a node of its own. tests/bench/ranges asks for the count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static long long messages;

long long latecomer_bench_messages(void) { return messages; }

typedef void* (*send_function)(void* endpoint, const void* data, size_t count, unsigned long long tag,
                               const void* parameters);

#define COUNTED(name)                                                                                          \
  void* name(void* endpoint, const void* data, size_t count, unsigned long long tag, const void* parameters) { \
    static send_function next;                                                                                 \
    if (!next) *(void**)&next = dlsym(RTLD_NEXT, #name);                                                       \
    ++messages;                                                                                                \
    return next(endpoint, data, count, tag, parameters);                                                       \
  }
COUNTED(ucp_tag_send_nbx)
COUNTED(ucp_tag_send_sync_nbx)
