// SPDX-License-Identifier: BSD-3-Clause
// A process manager whose name service misbehaves as NAME_SERVICE says: it `forgets` what is published, `invents`
// answers to unknown names, `refuses` to publish, or `empties` all answers. It `deafens` rank 2, so that it finds no
// name, or `swallows` the names of rank 1. It `denies` a name instead of an empty answer, as MPICH 4.2 does. It
// `shares` its server with another job, which has the names `twice`, and denies as well. It `delays` the first answer
// of rank 1 by 3 s, and `counts` the requests of each rank in a file of the folder NAME_SERVICE_COUNTS, or `ends`
// before the verdict. Otherwise it is right. A rank with NAME_SERVICE_LATE comes to the roll call so many seconds late.
// NAME_SERVICE_ROOM: shared memory is `full`, or the rank's room is `closed`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*Call)(const char*, MPI_Info, const char*);

static int is(const char* kind) {
  const char* wanted = getenv("NAME_SERVICE");
  return wanted && strcmp(wanted, kind) == 0;
}
static int passes_on(void) {
  return is("delays") || is("deafens") || is("swallows") || is("denies") || is("shares") || is("counts") || is("ends");
}
static int rank(void) {
  const char* text = getenv("PMI_RANK");
  if (!text) text = getenv("OMPI_COMM_WORLD_RANK");
  return text ? atoi(text) : 0;
}

/// Writes the number of requests so far.
static void count(void) {
  static int requests;
  const char* folder = getenv("NAME_SERVICE_COUNTS");
  if (!folder) return;
  char path[4096], text[16];
  snprintf(path, sizeof path, "%s/%d", folder, rank());
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  const int size = snprintf(text, sizeof text, "%d", ++requests);
  if (file < 0 || pwrite(file, text, (size_t)size, 0) != size) abort();
  close(file);
}

/// The last function that latecomer calls before the roll call.
int PMPI_Comm_get_parent(MPI_Comm* parent) {
  const char* late = getenv("NAME_SERVICE_LATE");
  if (late) sleep((unsigned)atoi(late));
  return ((int (*)(MPI_Comm*))dlsym(RTLD_NEXT, "PMPI_Comm_get_parent"))(parent);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  const char* room = getenv("NAME_SERVICE_ROOM");
  if (room && strstr(path, "/latecomer-room-") && (flags & O_CREAT || strcmp(room, "closed") == 0)) {
    errno = flags & O_CREAT ? ENOSPC : EACCES;
    return -1;
  }
  return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}

int PMPI_Publish_name(const char* name, MPI_Info info, const char* port) {
  count();
  if (is("delays") && strstr(name, "-here-1")) sleep(3);
  if (is("ends") && strstr(name, "-verdict-")) return MPI_ERR_SERVICE;
  if (is("shares") && strstr(name, "-twice-")) {
    char others[32];
    snprintf(others, sizeof others, "latecomer-twice-%d", rank());
    ((Call)dlsym(RTLD_NEXT, "PMPI_Publish_name"))(others, info, "other");
  }
  if (passes_on() && !(is("swallows") && rank() == 1))
    return ((Call)dlsym(RTLD_NEXT, "PMPI_Publish_name"))(name, info, port);
  return is("refuses") ? MPI_ERR_SERVICE : MPI_SUCCESS;
}
int PMPI_Lookup_name(const char* name, MPI_Info info, char* port) {
  count();
  if (passes_on() && !(is("deafens") && rank() == 2)) {
    const int status = ((Call)dlsym(RTLD_NEXT, "PMPI_Lookup_name"))(name, info, port);
    return (is("denies") || is("shares")) && status == MPI_SUCCESS && !*port ? MPI_ERR_NAME : status;
  }
  if (!is("invents") && !is("empties")) return MPI_ERR_NAME;
  strcpy(port, is("empties") ? "" : "anything");
  return MPI_SUCCESS;
}
int PMPI_Unpublish_name(const char* name, MPI_Info info, const char* port) {
  count();
  if (passes_on()) return ((Call)dlsym(RTLD_NEXT, "PMPI_Unpublish_name"))(name, info, port);
  return MPI_SUCCESS;
}
