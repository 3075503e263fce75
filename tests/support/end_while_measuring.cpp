// SPDX-License-Identifier: BSD-3-Clause
// Ends a process at one of the messages with which latecomer measures the network: rank END_RANK is killed before its
// message number END_AT. It declares no type of MPI, so it fits every library: handles are passed on in their
// registers.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "shim/tags.hpp"

using namespace latecomer::shim;
using Isend = int(const void*, int, std::uintptr_t, int, int, std::uintptr_t, void*);

static int number_of(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

extern "C" __attribute__((visibility("default"))) int PMPI_Isend(const void* data, int count, std::uintptr_t type,
                                                                 int to, int tag, std::uintptr_t comm, void* request) {
  static const auto next = reinterpret_cast<Isend*>(dlsym(RTLD_NEXT, "PMPI_Isend"));
  static int sent = 0;
  const int rank = number_of("PMI_RANK", number_of("OMPI_COMM_WORLD_RANK", -1));
  const bool measures = tag >= kMeasureRequestChannel && tag <= kMeasureTurnChannel;
  if (measures && rank == number_of("END_RANK", -2) && ++sent == number_of("END_AT", 0)) kill(getpid(), SIGKILL);
  return next(data, count, type, to, tag, comm, request);
}
