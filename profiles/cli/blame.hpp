// SPDX-License-Identifier: BSD-3-Clause
// Compares the sampled intervals of the ranks at a site, and follows a late rank's waits for messages to the ranks that
// it waited for. It writes no sentences.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace latecomer::cli {

/// The parts of an interval that may make a rank late, by their key in `causes`.
enum Cause : std::size_t { computing, mpi_wait, off_cpu, blocked, page_faults, system_calls, io, kCauses };
inline constexpr std::array<const char*, kCauses> kCauseKeys = {"computing",   "mpi_wait", "off_cpu", "blocked",
                                                                "page_faults", "system",   "io"};
using Shares = std::array<double, kCauses>;

/// Where a chain of waits for messages ends.
enum class ChainEnd {
  own,        ///< at a rank that is late for another reason
  transfer,   ///< the rank's peer is not late, so the messages take the time
  several,    ///< the rank waits for several ranks, or for ranks that are not known
  unsampled,  ///< too few intervals of the rank's peer were sampled
  cycle,      ///< the rank's peer stands in the chain already
};

/// The intervals before one site's calls. It refers to the site.
class SiteIntervals {
 public:
  using Json = nlohmann::ordered_json;
  explicit SiteIntervals(const Json& site);

  /// Per interval and part, nanoseconds of a rank, and of the others: the mean of those whose interval is no longer
  /// than the mean of all ranks. In jobs so large that rows were left out, the mean of all other ranks.
  struct Compared {
    double late_ns = 0;  ///< by which the rank's interval is longer
    Shares mine{}, others{};
    double excess(std::size_t part) const { return std::max(0.0, mine[part] - others[part]); }
    double all_excess() const;
    Cause largest() const;  ///< the part with the largest excess
  };
  /// Empty: fewer than kFewSamples intervals were sampled.
  std::optional<Compared> compare(const Json& row) const;

  /// The ranks that the row's rank waited for, with nanoseconds per interval of the wait that their own lateness
  /// explains. The rest is the time of transfers.
  struct Peer {
    long rank = 0;
    const Json* row = nullptr;  ///< nullptr: not kept or not sampled
    double waited = 0, explained = 0;
  };
  std::vector<Peer> peers(const Json& row) const;

  struct Chain {
    std::vector<const Json*> rows;  ///< from the late rank to the end
    ChainEnd end = ChainEnd::own;
    long peer = -1;  ///< the rank that the last one waits for, where the chain ends before it
  };
  Chain follow(const Json& row) const;

  /// Divides `amount`, a time that others waited for the row's rank, by the parts of its lateness. The share of
  /// mpi_wait moves on to the ranks that are late themselves. Calls note(rank, cause, amount); cause kCauses:
  /// unexplained.
  using Note = std::function<void(long rank, std::size_t cause, double amount)>;
  void divide(const Json& row, double amount, const Note& note) const;

 private:
  struct Sums {
    double samples = 0, wall = 0;
    Shares parts{};
    void add(const Sums& o, double sign);
  };
  static Sums sums_of(const Json& intervals);
  const Json* row_of(long rank) const;
  void divide(const Json& row, double amount, double least, std::vector<const Json*>& path, const Note& note) const;

  const Json& site_;
  Sums all_, on_time_;
  double mean_wall_ = 0;
};

/// The least samples of an interval for a cause: the mean of fewer says little.
inline constexpr double kFewSamples = 5;

/// Whether the rank waits for a processor because its own other threads use those of its process. `cores`: that the
/// process may use.
bool own_threads_run(const nlohmann::ordered_json& row, double cores);

/// By rank: time that others waited because of it, waits for messages followed, and that time by cause; [kCauses]:
/// unexplained.
using Blame = std::map<long, std::array<double, kCauses + 1>>;
Blame blame(const nlohmann::ordered_json& profile);

}  // namespace latecomer::cli
