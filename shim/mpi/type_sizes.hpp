// SPDX-License-Identifier: BSD-3-Clause
// The sizes of datatypes. MPI is asked once about each predefined one.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "core/base/types.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

inline constexpr std::int32_t kUntold = -1;

/// The predefined types by hash of the handle. Their sizes never change, so ask MPI once. A type that the library may
/// lack ends the program if it is asked about, so its size is untold.
class TypeTable {
 public:
  struct Entry {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::uint8_t group = 0;
    std::int32_t size = 0;
  };
  TypeTable();
  /// nullptr if the type is not one of them.
  const Entry* find(MPI_Datatype type) const {
    for (std::size_t at = place(type);; at = (at + 1) % kSize) {
      if (entries_[at].type == type) return &entries_[at];
      if (entries_[at].type == MPI_DATATYPE_NULL) return nullptr;
    }
  }

 private:
  // Derived: the hash has 8 bits. The 73 types fill 29%, so a search is short and always ends at a free entry. 3 KiB.
  static constexpr std::size_t kSize = 256;
  static std::size_t place(MPI_Datatype type) {
    return static_cast<std::uint32_t>(bits_of(type) ^ bits_of(type) >> 4) * 2654435761u >> 24;
  }
  Entry entries_[kSize];
};
const TypeTable& predefined_types();

/// The predefined datatype that was asked about last, and its size.
class LastType {
 public:
  std::pair<MPI_Datatype, std::int32_t> get() const {
    const std::uint64_t last = word();
    return {handle_of<MPI_Datatype>(last >> kSizeBits), static_cast<std::int32_t>(last & kMostSize)};
  }
  /// The size, if it is of that type; negative: it is of another one.
  std::int32_t size_of(MPI_Datatype type) const {
    const std::uint64_t last = word();
    return last >> kSizeBits == bits_of(type) ? static_cast<std::int32_t>(last & kMostSize) : -1;
  }
  void set(MPI_Datatype type, MPI_Count size) {
    word_.store(std::uint64_t{bits_of(type)} << kSizeBits | static_cast<std::uint64_t>(size),
                std::memory_order_relaxed);
  }

 private:
  std::uint64_t word() const { return word_.load(std::memory_order_relaxed); }
  // Handle and size. Derived: addresses of objects take 47 bits on x86-64, and predefined types 32 bytes.
  static constexpr int kSizeBits = 16;
  static constexpr std::uint64_t kMostSize = (1u << kSizeBits) - 1;
  std::atomic<std::uint64_t> word_{0};
};
inline constinit LastType last_type;

/// Returns false if MPI does not know the type, or refuses it.
bool size_of_type(MPI_Datatype type, MPI_Count& size);

/// The bytes of a message that MPI has accepted; negative: not known.
inline core::Bytes bytes_of_message(MPI_Count count, MPI_Datatype type) {
  MPI_Count size = last_type.size_of(type);
  if (size < 0 && !size_of_type(type, size)) [[unlikely]]
    return -1;
  core::Bytes out = 0;
  return __builtin_mul_overflow(size, count, &out) ? -1 : out;
}

}  // namespace latecomer::shim
