// SPDX-License-Identifier: BSD-3-Clause
// The header of every message of a range, and the identity of a range. Uses no MPI.
#pragma once

#include <cstdint>
#include <vector>

#include "core/collective/call.hpp"

namespace latecomer::range {

using core::Rank;

/// A communicator: its members in order, its depth, and the program's context number.
struct Identity {
  std::int32_t first = 0, size = 0, stride = 1, depth = 0, context = 0;
  bool operator==(const Identity&) const = default;
};

/// The header before the data of every message.
struct Envelope {
  Identity where;
  std::int32_t tag = 0;
  std::uint32_t collective =
      0;                     ///< 0: point to point; else the number of the range's collective, and `tag` its channel
  std::int32_t payload = 0;  ///< MPI tag of the data; 0: they follow here
  std::int64_t bytes = 0;
  /// Whether both name the same message of a collective, given one sender.
  bool same_place(const Envelope& o) const { return collective == o.collective && tag == o.tag && where == o.where; }
};

/// A message that arrived before a matching receive.
struct Arrival {
  Envelope envelope;
  Rank source = -1;
  std::vector<char> chunk;  ///< envelope and data
};

}  // namespace latecomer::range
