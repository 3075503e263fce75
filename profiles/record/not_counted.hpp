// SPDX-License-Identifier: BSD-3-Clause
// Calls that some figures of a profile leave out, by kind.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace latecomer::profiles {

/// A call is of one kind: of the first one that fits.
enum class Uncounted : std::uint8_t {
  outside,
  neighbours,
  nonblocking,
  persistent,
  other_threads,
  requests,
  logs,
  sites,
};

/// The name of a kind in files, and its calls in the words of a report.
struct UncountedKind {
  std::string_view key, words;
};
inline constexpr UncountedKind kUncounted[] = {
    {"outside", "arrivals of collectives on inter-communicators or with processes of other jobs"},
    {"neighbours", "waits in persistent neighbour collectives, or for neighbours that are not known"},
    {"nonblocking", "waits for late ranks in non-blocking collectives"},
    {"persistent", "arrivals of persistent collectives"},
    {"other_threads", "polls of threads that had no row of their own"},
    {"requests", "ends of collectives whose requests were too many"},
    {"logs", "arrivals of calls for which a log had no room"},
    {"sites", "call sites beyond the 4,096th of a rank"}};

/// The calls of all ranks together, and the number of ranks with such calls.
struct UncountedCalls {
  std::uint64_t calls = 0, ranks = 0;
};

struct NotCounted {
  std::array<UncountedCalls, std::size(kUncounted)> of{};
  /// Calls of one rank.
  void add_rank(Uncounted kind, std::uint64_t calls) {
    UncountedCalls& sum = of[static_cast<std::size_t>(kind)];
    sum.calls += calls;
    sum.ranks += calls > 0;
  }
  void merge(const NotCounted& o) {
    for (std::size_t i = 0; i < of.size(); ++i) {
      of[i].calls += o.of[i].calls;
      of[i].ranks += o.of[i].ranks;
    }
  }
};

}  // namespace latecomer::profiles
