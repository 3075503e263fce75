// SPDX-License-Identifier: BSD-3-Clause
// The learner of a communicator's leader: the period of the sequence of calls, a forecast of the arrival pattern per
// slot, and an algorithm per slot. The rules of the policy decide, or with `auto` the model and then measurements. Only
// the leader learns. The other ranks get its decisions as the bytes of a plan. No MPI, no clock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/agreement/agreement.hpp"
#include "core/agreement/plan.hpp"
#include "core/learning/judge.hpp"
#include "core/learning/rest.hpp"
#include "core/pap/predictor.hpp"
#include "core/policy/policy.hpp"
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

/// The winner of one call site, as a run stores it for later runs.
struct Learned {
  std::uint64_t signature = 0;  ///< Signature::hash()
  std::uint64_t site = 0;       ///< key of the call site in this run
  int algorithm = -1, segments = 0;
  bool overlap = true;
  std::vector<Nanoseconds> pattern;                  ///< [ranks], the forecast under which it won; empty: flat
  std::vector<Bytes> sizes;                          ///< [ranks], of the blocks; empty: none
  double measured_ns = -1, native_measured_ns = -1;  ///< medians, in terms of the objective; -1: not known
  std::uint64_t calls = 0;                           ///< calls at the site
};
/// The plan of these winners by universal signature. Sites of one signature with different algorithms get no entry;
/// those with different patterns get none of the patterns.
Plan plan_of_learned(const std::vector<Learned>& learned);

/// The decision for one slot and its reason, for reports.
struct SlotReport {
  Signature signature;
  std::uint64_t site = 0, calls = 0;
  int algorithm = -1;
  int rule_line = 0;  ///< 0: no rule matched
  Forecast forecast;
  double predicted_ns = -1, native_predicted_ns = -1;  ///< by the model, in terms of the objective; -1: not modelled
  double measured_ns = -1, native_measured_ns = -1;    ///< medians; -1: too few calls
  bool model_fits = true;             ///< false: native's modelled and measured times differ too much (is_forecast)
  std::vector<Candidate> candidates;  ///< of `auto`, best first; empty: none was modelled
  std::int64_t messages = 0;          ///< messages that were modelled to compare the candidates
  std::string reason;                 ///< follows "because"
};

class Learner {
 public:
  using SiteMatch = std::function<bool(std::uint64_t site, Collective op, const std::string& glob)>;
  /// Mean offsets [ranks] of an earlier run, or nullptr.
  using SiteHistory = std::function<const std::vector<Nanoseconds>*(std::uint64_t site, Collective op)>;
  /// The winner of an earlier run at this site, or nullptr.
  using SiteWinner = std::function<const Learned*(std::uint64_t site, const Signature& signature)>;
  /// policy must outlive the learner. `memory`: bytes that slots may take. Derived: a slot takes 1.4 KiB and 192 bytes
  /// per rank (default window). So 16 MiB hold the most slots, 512, up to 163 ranks, and 84 at 1,024 ranks. Calls
  /// without a slot are not learned.
  /// `hosts`: as in Parameters.
  Learner(const Policy& policy, int ranks, SiteMatch site_matches, std::vector<int> hosts = {},
          std::size_t memory = 16 << 20);

  /// Registers the time of the communicator's first call at the leader. Without it, the first announcement cannot tell
  /// how long calls take.
  void begin(Nanoseconds now) { asked_ = now; }
  /// Registers a call. Calls come in ascending order of n. Gaps (lost logs) are allowed.
  void see(const CallSeen& call);

  /// The announcement for the boundary at call n. `dropped`: the ranks have dropped the plan in force. `now`: the
  /// leader's clock, from any origin. `hurried`: decide nothing now, and keep the announcement before.
  Announcement announce(std::uint64_t n, bool dropped, Nanoseconds now, bool hurried = false);
  /// Whether the last announcement has run the model. The caller limits the time of the model separately.
  bool modelled() const { return budget_ < kModelBudget; }
  /// Number of messages that the last announcement modelled and planned.
  std::int64_t modelled_messages() const { return kModelBudget - budget_; }
  /// Registers that the last announcement comes into force at call n.
  void in_force(std::uint64_t n);
  /// Registers how long ranks have waited for the leader at a boundary, in the mean over all ranks.
  void waited(Nanoseconds mean) {
    waited_ = waited_ == 0 ? static_cast<double>(mean) : (waited_ + static_cast<double>(mean)) / 2;
  }
  /// Registers the results of an earlier run: forecasts and winners of its call sites, and the plan of the winners,
  /// which is in force from the first call on.
  void remember(SiteHistory history, SiteWinner winner, const Plan& plan) {
    history_of_ = std::move(history);
    winner_of_ = std::move(winner);
    announced_ = before_ = plan;
  }

  /// Allows plans for which ranks exchange a pattern for a single call (latecomer_edge).
  void allow_edges() { edges_ = true; }

  /// Number of calls of the period; 0: no period is known.
  std::uint64_t period() const { return slots_.size(); }
  std::vector<SlotReport> reports() const;
  /// The results for a later run: the plan at the end, with the winners of trials in place of the trials. If the
  /// verdict of a trial is open, the earlier winner serves the slot, else native. Runs no model.
  struct Outcome {
    Plan plan;
    bool says_anything = false;       ///< the plan differs from the decisions that every rank takes without a plan
    std::vector<SlotReport> reports;  ///< with the verdicts of trials
    std::vector<Learned> learned;     ///< winners of `auto`, those of the earlier run included
  };
  Outcome outcome() const;

  /// Number of recent calls in which the leader looks for a period. The period has at most half as many calls. Derived
  /// from memory: the history takes 16 KiB. With a longer period, plans go by the signatures of calls.
  static constexpr std::size_t kHistory = 1024;
  /// Measured calls of native before a rota begins, and measured calls before a median is used. Derived: the first
  /// epoch of a program with slow calls has four calls. These calls only show whether a rota can pay, because the rota
  /// measures native again (judge.hpp).
  static constexpr int kFirst = 4;
  /// Measured calls of a winner before native may replace it, and calls in a row for which ranks reported their
  /// progress (latecomer_edge) before they exchange patterns. With a smaller number, noise alone would replace winners.
  static constexpr int kEnough = 8;
  /// Messages that one announcement may model: the limit of a single candidate, so that every candidate is modelled at
  /// last. The other candidates wait for the next announcement.
  static constexpr std::int64_t kModelBudget = kMostInJob;
  /// kModelMessage: nanoseconds to model or plan a message. kModelShare: the share of the time of a slot's calls that
  /// the model may take. kModelStake: nanoseconds that it may take in advance. Derived: a twentieth is the smallest
  /// gain that is tried (kWorthTrying), and 1 ms models 800 messages. A larger share costs more where no algorithm
  /// gains. A smaller share delays every trial.
  static constexpr double kModelMessage = 1'250, kModelShare = 0.05, kModelStake = 1e6;
  /// The time that rotas may lose against native: the share kRisk of the time of the slot's calls, and the time of
  /// kStake native calls in advance. Derived: a run of 100 calls may lose 5% and one of 600 calls 3%. A larger share
  /// costs more where the model is wrong, a smaller share delays the next candidates.
  static constexpr double kRisk = 0.02, kStake = 3;
  /// Nanoseconds to find, start and poll a schedule of latecomer. With a smaller value, a dispatch costs more than some
  /// algorithms gain. With a larger value, no algorithm is tried for short calls.
  static constexpr double kDispatch = 2'000;
  /// Turns of each algorithm in a new rota: kTurns if native's modelled and measured times differ by a factor below
  /// kTrusted, else kTurnsUntrusted, with one candidate at a time. Derived: three turns decide a clear difference
  /// (judge.hpp).
  static constexpr int kTurns = 3, kTurnsUntrusted = 2;
  static constexpr double kTrusted = 1.5;
  /// Candidates whose modelled time is at most so many times the best one's share the rota. Derived: 90% of the errors
  /// of the model are below 22% (docs/results/wire.md).
  static constexpr double kNearBest = 1.25;
  /// Calls of at most this many bytes stay native where arrivals are balanced or unpredictable. Derived: such a call
  /// takes the latency of its messages, which the algorithms of the catalogue do not shorten.
  static constexpr Bytes kLeastBalanced = 2048;

 private:
  /// The times of the latest calls that one algorithm has served.
  struct Samples {
    /// Derived: after so many calls, an algorithm with a gain of 10% and deviations of 20% has won in one case of four;
    /// with half as many in one of eight. Older calls are forgotten.
    static constexpr int kKept = 32;
    std::array<float, kKept> after_last, elapsed, until_next;
    int count = 0, count_next = 0;
    void add(Nanoseconds after, double mean_elapsed);
    void add_next(Nanoseconds until);
    void clear() { count = count_next = 0; }
    bool enough() const { return count >= kFirst; }
    double median_after() const { return median(after_last); }
    double median_elapsed() const { return median(elapsed); }
    std::span<const float> of(const std::array<float, kKept>& values) const {
      return {values.data(), static_cast<std::size_t>(std::min(&values == &until_next ? count_next : count, kKept))};
    }

   private:
    double median(std::array<float, kKept> values) const;
  };
  /// One algorithm of a rota, and its calls since the rota began.
  struct Runner {
    int algorithm = -1, segments = 0;
    double modelled = -1;
    Samples measured;
  };
  struct Rota {
    std::vector<Runner> runners;  ///< the algorithm in use, then candidates; empty: no rota
    int round = 0;
    int granted = 0;                         ///< turns that the plan allows to each algorithm
    int calls = 0;                           ///< calls that the plan allows to all algorithms
    int seen = 0;                            ///< calls since the rota came into force
    int in_a_row = 0;                        ///< how many of the latest calls the algorithm in use has served in a row
    std::uint64_t counts_from = UINT64_MAX;  ///< call at which the rota came into force
    bool running() const { return !runners.empty(); }
    Runner* of(int algorithm);
    /// Whether the rota still serves the calls. After its last call, only the algorithm in use runs. Derived: within
    /// the rota, that algorithm runs at most twice in a row, at the end of one block and the beginning of the next.
    bool interleaved() const { return in_a_row <= 2; }
  };
  /// The reason for the decision of a slot. why_text() writes it as a sentence, when a report needs it.
  enum class Why : std::uint8_t {
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
  /// The block sizes that the next call probably has, and how often recent calls had others.
  struct ExpectedSizes {
    /// Derived: `surprises` has 16 bits. With kLeast calls, three must be surprises before sizes count as varying.
    static constexpr int kWindow = 16, kLeast = 4;
    std::vector<Bytes> sizes;     ///< empty: none were seen
    std::vector<Bytes> other;     ///< sizes of the last call if they were a surprise; expected once they come twice
    std::uint16_t surprises = 0;  ///< one bit per call of the last `seen` calls, the latest in the lowest bit
    int seen = 0;
    bool varying = false;  ///< most calls have other sizes than those that a tree would be planned for
    int missed() const;
    void add(std::span<const Bytes> now);
  };
  struct Slot {
    Slot(int ranks, int window) : predictor(ranks, window) {}
    Signature signature;
    std::uint64_t hash = 0;  ///< Signature::hash()
    std::uint64_t site = 0, calls = 0;
    std::uint64_t decided_at = 0;  ///< value of `calls` at the last decision
    Predictor predictor;
    Samples native, current;
    int algorithm = -1, segments = 0;
    bool overlap = true;
    int edged = 0;                           ///< calls in a row with CallSeen::edge
    std::uint64_t counts_from = UINT64_MAX;  ///< call from which `current` is measured
    bool changed = false;                    ///< the decision has changed since the last announcement came into force
    int held = 0;                            ///< announcements in a row that kept an unmeasured pattern (hold)
    Rota rota;
    int proven = -1, proven_segments = 0;   ///< the last winner at this slot, under any pattern; -1: none
    std::optional<Learned> earlier;         ///< winner of an earlier run
    std::optional<CandidateSearch> search;  ///< a search that continues at the next announcement
    double modelling = 0;                   ///< nanoseconds that the model took for this slot
    std::vector<std::uint32_t> came_last;   ///< [ranks], number of calls in which the rank came last
    double imbalance = 0;                   ///< sum of the imbalance of `seen` calls, in nanoseconds
    std::uint64_t seen = 0;                 ///< calls in `imbalance`
    double risked = 0, spent = 0;           ///< nanoseconds that trials lost against native; nanoseconds of all calls
    const Rule* rule = nullptr;
    Forecast forecast;
    std::vector<Nanoseconds> announced;  ///< pattern of this slot in the plan; empty: flat
    ExpectedSizes expected;
    bool shares = false;  ///< another site uses the same signature with other block sizes (note_shared_sizes)
    std::vector<Bytes> announced_sizes;  ///< block sizes of this slot in the plan
    bool sizes_vary() const { return expected.varying || shares; }
    std::vector<Nanoseconds> modelled_for;  ///< pattern under which the candidates were modelled
    bool modelled_flat = false;             ///< the candidates were modelled for arrivals at the same time
    std::vector<Bytes> modelled_sizes;
    std::vector<Candidate> candidates;
    std::vector<LeftOut> left_out;  ///< algorithms that were not modelled, and why
    std::int64_t candidate_messages = 0;
    double native_modelled = -1, modelled = -1;
    Why why = Why::unknown;
  };

  /// The algorithm that serves the calls of a slot under a plan, with its parameters.
  struct Served {
    const Slot* slot;
    std::int32_t algorithm, segments;
    bool overlap;
    std::span<const Nanoseconds> pattern;  ///< empty: flat
    std::span<const Bytes> sizes;
    const Rota* rota = nullptr;
    int calls = 0, rounds = 0;  ///< calls and number of the rota
  };

  static void see_turn(Slot& slot, const CallSeen& call);
  Slot* slot_of(const Signature& signature, std::uint64_t hash, std::uint64_t site);
  void find_period();
  void end_period();
  void note_shared_sizes();
  void decide_slot(Slot& slot);
  void choose(Slot& slot);
  bool model(Slot& slot, const Algorithm* only = nullptr, int segments = 0);
  void take(Slot& slot, const Candidates& found) const;
  bool worth_trying(const Slot& slot, const Candidate& c) const;
  bool model_fits(const Slot& slot) const;
  double native_measured(const Slot& slot) const;
  bool nearly_together(const Slot& slot) const;
  std::string arrivals_text(const Slot& slot) const;
  std::string candidates_text(const Slot& slot) const;
  void settle(Slot& slot, int algorithm, int segments, bool with_pattern, Why why);
  void begin_rota(Slot& slot, const std::vector<Runner>& candidates);
  void end_rota(Slot& slot);
  bool conduct(Slot& slot);
  int winner_of(const Slot& slot) const;
  Timed timed(const Samples& samples) const;
  double median_of(const Samples& samples) const;
  std::vector<Runner> best_candidates(const Slot& slot) const;
  bool doubts(const Slot& slot) const;
  bool flat(const Slot& slot) const;
  static bool hold(Slot& slot, int measured);
  bool too_risky(const Slot& slot) const;
  Why why_flat(const Slot& slot) const;
  void mark_lost(Slot& slot, int algorithm, int segments) const;
  bool slight(const Slot& slot) const;
  bool quiet(const Slot& slot) const;
  Announcement with_epoch(Announcement out, Nanoseconds now, const std::vector<Slot*>& slots);
  std::uint64_t epoch_for(const std::vector<Slot*>& slots) const;
  static std::string sizes_text(const Slot& slot);
  std::string why_text(const Slot& slot) const;
  Decision decision(const Slot& slot, int algorithm, int segments) const;
  bool may(const Slot& slot, int algorithm, int segments) const;
  PlanEntry entry_for(const Served& served, Plan& plan) const;
  void keep_unseen(Plan& plan, bool& says_anything) const;
  Plan plan_of(const std::vector<Served>& all, bool& says_anything) const;
  Served verdict_on(const Slot& slot, const char*& words) const;
  Served earlier_winner(const Slot& slot) const;
  std::vector<Slot*> decided() const;

  const Policy& policy_;
  int ranks_;
  std::vector<int> hosts_;
  SiteMatch site_matches_;
  SiteHistory history_of_;
  SiteWinner winner_of_;
  bool edges_ = false;
  std::size_t most_slots_;
  std::map<std::uint64_t, std::unique_ptr<Slot>> by_key_;  ///< by signature and site, while no period is known
  std::vector<std::unique_ptr<Slot>> slots_;               ///< the positions of the period; empty: no period
  std::uint64_t first_ = 0;                                ///< call n is in slot (n - first_) mod period
  std::vector<std::uint64_t> history_;                     ///< key of the latest calls, oldest first
  std::uint64_t next_ = 0;                                 ///< number of the call after the history
  struct {
    Slot* slot = nullptr;
    std::uint64_t n = 0;
    int algorithm = -1;
    Nanoseconds arrived = 0;
  } previous_;  ///< the blocking call before, if its slot still exists
  Plan announced_;
  Plan before_;  ///< the plan of an earlier run
  Rest rest_;
  std::uint64_t looked_at_ = 0;                    ///< `next_` at the last announcement
  std::uint64_t asked_n_ = 0;                      ///< call number of the last announcement
  Nanoseconds asked_ = 0;                          ///< time of the last announcement
  double waited_ = 0;                              ///< recent mean wait at a boundary that waits, in nanoseconds
  double pace_ = 0;                                ///< nanoseconds per call between the last two announcements
  std::uint64_t glance_ = Sequence::kSteadyEpoch;  ///< calls of an epoch between two rests
  bool quiet_ = false;                             ///< at the last announcement, all slots were quiet
  bool divergent_ = false;                         ///< in some call, ranks came from different call sites
  std::int64_t budget_ = kModelBudget;             ///< messages that this announcement may still model
  std::vector<CandidateSearch> searched_;          ///< finished searches, the latest last
};

}  // namespace latecomer::core
