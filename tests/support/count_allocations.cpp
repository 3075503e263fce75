// SPDX-License-Identifier: BSD-3-Clause
// Counts calls of operator new while a C program asks for it, or lets some of them fail. MPICH and UCX are written in
// C, so in a C program each such allocation is latecomer's.
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> count{0};
std::atomic<bool> counting{false};
std::atomic<long> until_first{0}, until_last{0};  // 0: none fails
std::atomic<long> small{0};                       // allocations that succeed nevertheless
}  // namespace

extern "C" __attribute__((visibility("default"))) long count_allocations(int on) {
  counting = on != 0;
  return on ? (count = 0, 0) : count.load();
}
/// From now on, the allocations `first` to `last` fail, counted from 1.
extern "C" __attribute__((visibility("default"))) void fail_allocations(long first, long last) {
  count = 0;
  until_first = first;
  until_last = last;
}
__attribute__((visibility("default"))) void* operator new(std::size_t size) {
  if (counting) ++count;
  if (until_last > 0) {
    const long number = ++count;
    if (number >= until_first && number <= until_last && --small < 0) {
      throw std::bad_alloc();
    }
  }
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((visibility("default"))) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((visibility("default"))) void operator delete(void* p, std::size_t size) noexcept {
  if (p && size >= 1 << 18) small = static_cast<long>(size / 64);  // memory that was given back is there again
  std::free(p);
}
