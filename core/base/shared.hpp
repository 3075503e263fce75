// SPDX-License-Identifier: BSD-3-Clause
// Figures that one thread writes while others may read them, without a lock. An access takes what a plain one takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace latecomer::core {

/// Only the thread that writes the figure may call this function.
template <typename T>
void store_shared(T& figure, std::type_identity_t<T> value) {
  std::atomic_ref(figure).store(value, std::memory_order_relaxed);
}
template <typename T>
void add_shared(T& figure, std::type_identity_t<T> more) {
  const std::atomic_ref ref(figure);
  ref.store(static_cast<T>(ref.load(std::memory_order_relaxed) + more), std::memory_order_relaxed);
}

/// Copies figures that another thread may be writing. It reads the last ones first, so that figures which the writer
/// stores later are not ahead of those in front of them.
template <typename T>
requires(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0 && alignof(T) == 8) T copy_shared(const T& from) {
  using Word [[gnu::may_alias]] = std::uint64_t;
  constexpr std::size_t kWords = sizeof(T) / 8;
  std::uint64_t words[kWords];
  const Word* const its = reinterpret_cast<const Word*>(&from);
  for (std::size_t i = kWords; i-- > 0;) words[i] = __atomic_load_n(its + i, __ATOMIC_ACQUIRE);
  T out;
  std::memcpy(static_cast<void*>(&out), words, sizeof out);
  return out;
}

}  // namespace latecomer::core
