// SPDX-License-Identifier: BSD-3-Clause
// Counts calls of operator new while a C program asks for it. MPICH and UCX are written in C, so in a C program each
// such allocation is latecomer's.
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> count{0};
std::atomic<bool> counting{false};
}  // namespace

extern "C" __attribute__((visibility("default"))) long count_allocations(int on) {
  counting = on != 0;
  return on ? (count = 0, 0) : count.load();
}
__attribute__((visibility("default"))) void* operator new(std::size_t size) {
  if (counting) ++count;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((visibility("default"))) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((visibility("default"))) void operator delete(void* p, std::size_t) noexcept { std::free(p); }
