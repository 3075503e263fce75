// SPDX-License-Identifier: BSD-3-Clause
// The types that every part of latecomer shares: ranks, bytes, nanoseconds, forms of calls and
// classes of operators. Depends on neither MPI nor the environment.
#pragma once

#include <cstdint>
#include <string_view>

namespace latecomer::core {

using Rank = std::int32_t;         // rank in one communicator
using Bytes = std::int64_t;        // payload size
using Nanoseconds = std::int64_t;  // virtual or real time
using Elements = std::int64_t;     // number of datatype instances

/// The form of a collective call. Blocking and non-blocking calls never match each other (MPI 4.0, section 6.12), so
/// the form is equal on every rank.
enum class CallKind : std::uint8_t { blocking, nonblocking, persistent };

/// The class of a reduction operator. All ranks of a call are guaranteed to have the same class.
enum class OpClass : std::uint8_t { none, sum, prod, max, min, logical, bitwise, loc, user, user_noncommutative };
inline constexpr int kOpClasses = 10;
inline constexpr std::string_view kOpClassNames[kOpClasses] = {
    "none", "sum", "prod", "max", "min", "logical", "bitwise", "loc", "user", "user_noncommutative"};
constexpr std::string_view name_of(OpClass c) { return kOpClassNames[static_cast<int>(c)]; }

}  // namespace latecomer::core
