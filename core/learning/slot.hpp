// SPDX-License-Identifier: BSD-3-Clause
// A slot: the calls of one signature and call site, or of one position of the period, and the decision for them. The
// other files of this folder are free functions on slots.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/agreement/agreement.hpp"
#include "core/learning/expected_sizes.hpp"
#include "core/learning/learned.hpp"
#include "core/learning/samples.hpp"
#include "core/pap/predictor.hpp"
#include "core/select/candidates.hpp"

namespace latecomer::core {

/// One call of which the leader has every rank's record.
struct CallSeen {
  std::uint64_t n = 0;
  Signature signature;
  std::uint64_t site = 0;                ///< call site of the root, or else of the leader; site rules match it
  std::span<const Nanoseconds> offsets;  ///< [ranks], arrivals after the first one; empty: not known for this call
  Nanoseconds after_last = -1;           ///< last arrival to last exit; -1: not seen
  double mean_elapsed = 0;               ///< over ranks, nanoseconds
  int algorithm = -1;                    ///< index in the catalogue that ran; -1: native
  std::span<const Bytes> sizes = {};     ///< [ranks], of the blocks of a gatherv or scatterv; else empty
  bool edge = false;                     ///< at least half of the ranks reported their progress (latecomer_edge) before
  bool divergent = false;                ///< ranks came from different call sites
  Nanoseconds imbalance = -1;            ///< first to last arrival; -1: not known
  Rank last = -1;                        ///< the rank that came last; -1: several at once, or not known
  Nanoseconds arrived = -1;              ///< time of the last arrival, by the leader's clock; -1: not known
};

using SiteMatch = std::function<bool(std::uint64_t site, Collective op, const std::string& glob)>;

/// The terms of a leader's decisions, which are the same for all of its slots.
struct LearningTerms {
  const Policy& policy;
  int ranks;
  std::vector<int> hosts;  ///< as in Parameters
  SiteMatch site_matches;
  bool edges = false;  ///< ranks can exchange a pattern for a single call (latecomer_edge)
};

/// The reason for the decision of a slot. explain.hpp writes it as a sentence, when a report needs it.
enum class Reason : std::uint8_t {
  unknown,
  unserved,
  reproducible,
  no_rule,
  rule_native,
  rule_before_sizes,
  rule_sizes_vary,
  rule_forbidden,
  rule_unplanned,
  rule,
  rule_flat,
  no_sizes,
  nothing_seen,
  balanced,
  unforeseen,
  slight,
  no_budget,
  measuring,
  tried,
  won,
  remembered,
  lost,
  risk,
  nothing_serves,
  no_gain,
};

/// One algorithm of a rota, and its calls since the rota began.
struct Runner {
  int algorithm = -1, segments = 0;
  double modelled = -1;
  Samples measured;
};

/// Several algorithms that serve the calls of a slot in turn, so that their times can be compared (rota.hpp).
struct Rota {
  std::vector<Runner> runners;  ///< the algorithm in use, then candidates; empty: no rota
  int round = 0;
  int granted = 0;                         ///< turns that the plan allows to each algorithm
  int calls = 0;                           ///< calls that the plan allows to all algorithms
  int seen = 0;                            ///< calls since the rota came into force
  int in_a_row = 0;                        ///< how many of the latest calls the algorithm in use has served in a row
  std::uint64_t counts_from = UINT64_MAX;  ///< call at which the rota came into force
  bool running() const { return !runners.empty(); }
  Runner* find_runner(int algorithm);
  /// Whether the rota still serves the calls. After its last call, only the algorithm in use runs. Derived: within
  /// the rota, that algorithm runs at most twice in a row, at the end of one block and the beginning of the next.
  bool interleaved() const { return in_a_row <= 2; }
};

/// The arrivals of a slot's calls, and their forecast (forecast.hpp).
struct SlotArrivals {
  Predictor predictor;
  Forecast forecast = {};
  std::vector<std::uint32_t> came_last;  ///< [ranks], number of calls in which the rank came last
  double imbalance = 0;                  ///< sum of the imbalance of `seen` calls, in nanoseconds
  std::uint64_t seen = 0;                ///< calls in `imbalance`
};

/// The candidates of a slot, and the arrivals and sizes under which they were modelled (slot_modeller.hpp).
struct SlotModel {
  std::vector<Nanoseconds> pattern;
  bool flat = false;  ///< arrivals at the same time
  std::vector<Bytes> sizes;
  std::optional<CandidateSearch> search;  ///< a search that continues at the next announcement
  double spent = 0;                       ///< nanoseconds that the model took for this slot
  std::vector<Candidate> candidates;
  std::vector<LeftOut> left_out;  ///< algorithms that were not modelled, and why
  std::int64_t messages = 0;      ///< messages that were modelled to compare the candidates
  double native_ns = -1, chosen_ns = -1;
};

struct Slot {
  Slot(int ranks, int window)
      : arrivals{.predictor = Predictor(ranks, window),
                 .came_last = std::vector<std::uint32_t>(static_cast<std::size_t>(ranks))} {}
  Signature signature;
  std::uint64_t hash = 0;  ///< Signature::hash()
  std::uint64_t site = 0, calls = 0;
  std::uint64_t decided_at = 0;  ///< value of `calls` at the last decision
  const Rule* rule = nullptr;
  Reason reason = Reason::unknown;
  int algorithm = -1, segments = 0;
  bool overlap = true;
  bool changed = false;                    ///< the decision has changed since the last announcement came into force
  std::uint64_t counts_from = UINT64_MAX;  ///< call from which `current` is measured
  std::vector<Nanoseconds> announced;      ///< pattern of this slot in the plan; empty: flat
  std::vector<Bytes> announced_sizes;      ///< block sizes of this slot in the plan
  int held = 0;                            ///< announcements in a row that kept an unmeasured pattern (hold_pattern)
  int edged = 0;                           ///< calls in a row with CallSeen::edge
  Samples native, current;
  double risked = 0, spent = 0;  ///< nanoseconds that trials lost against native; nanoseconds of all calls
  SlotArrivals arrivals;
  SlotModel model;
  Rota rota;
  int proven = -1, proven_segments = 0;  ///< the last winner at this slot, under any pattern; -1: none
  std::optional<Learned> earlier;        ///< winner of an earlier run
  ExpectedSizes expected;
  bool shares = false;  ///< another site uses the same signature with other block sizes (mark_shared_sizes)
  bool sizes_vary() const { return expected.varying || shares; }
};

/// The decision for a call of this slot if the plan names this algorithm. The policy may forbid it.
Decision decide_planned(const LearningTerms& terms, const Slot& slot, int algorithm, int segments);
/// Whether the policy allows this algorithm.
bool is_allowed(const LearningTerms& terms, const Slot& slot, int algorithm, int segments);

/// Sets the decision of a slot. `with_pattern`: the algorithm gets the forecast, unless it is uncertain.
void settle_slot(Slot& slot, int algorithm, int segments, bool with_pattern, Reason reason);

/// Whether a plan keeps its pattern although arrivals have moved, because too few of its calls are measured. The logs
/// of a plan come two epochs later, so a plan that changes at every announcement is never measured. In a reduce, ranks
/// may run ahead, and the pattern may move in every epoch.
bool hold_pattern(Slot& slot, int measured);

}  // namespace latecomer::core
