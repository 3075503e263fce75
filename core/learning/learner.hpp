// SPDX-License-Identifier: BSD-3-Clause
// The learner of a communicator's leader: the period of the sequence of calls, a forecast of the arrival pattern per
// slot, and an algorithm per slot. The rules of the policy decide, or with `auto` the model and then measurements.
// Other ranks know nothing of this: decisions become bytes of a plan. No MPI, no clock.
#pragma once

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
#include "core/learning/rest.hpp"
#include "core/pap/predictor.hpp"
#include "core/policy/policy.hpp"
#include "core/select/candidates.hpp"

namespace latecomer::core {

/// One call of which the leader has every rank's record.
struct CallSeen {
  std::uint64_t n = 0;
  Signature signature;
  std::uint64_t site = 0;                ///< the root's, or the leader's; what site rules are about
  std::span<const Nanoseconds> offsets;  ///< [ranks], after the first arrival; empty in many calls of a large job
  Nanoseconds after_last = -1;           ///< last arrival to last exit; -1: not seen
  double mean_elapsed = 0;               ///< over ranks, nanoseconds
  int algorithm = -1;                    ///< index in the catalogue that ran; -1: native
  std::span<const Bytes> sizes = {};     ///< [ranks], of the blocks of a gatherv or scatterv; else empty
  bool edge = false;                     ///< half of the ranks at least had said before how far they were
  bool divergent = false;                ///< ranks came from different call sites
  Nanoseconds tie = 0;                   ///< offsets that differ by no more count as equal
  // Without `offsets`:
  Nanoseconds imbalance = 0;  ///< from the first arrival to the last
  Rank last = -1;             ///< that came last; -1: all came together
};

/// What is decided for one slot and why, for people.
struct SlotReport {
  Signature signature;
  std::uint64_t site = 0, calls = 0;
  int algorithm = -1;
  int rule_line = 0;  ///< 0: no rule matched
  Forecast forecast;
  double predicted_ns = -1, native_predicted_ns = -1;  ///< by the model, in terms of the objective; -1: not asked
  double measured_ns = -1, native_measured_ns = -1;    ///< medians; -1: too few calls
  bool model_fits = true;             ///< false: native's modelled time is no forecast on this machine (is_forecast)
  std::vector<Candidate> candidates;  ///< of `auto`, best first; empty: none was modelled
  std::int64_t messages = 0;          ///< that modelling them took
  std::string reason;                 ///< follows "because"
};

class Learner {
 public:
  using SiteMatch = std::function<bool(std::uint64_t site, Collective op, const std::string& glob)>;
  /// Mean offsets [ranks] of an earlier run, or nullptr.
  using SiteHistory = std::function<const std::vector<Nanoseconds>*(std::uint64_t site, Collective op)>;
  /// policy must outlive the learner. `memory`: bytes that slots may take. Derived: a slot takes 1.4 KiB and 192 bytes
  /// per rank (default window). So 16 MiB hold the most slots, 512, up to 163 ranks, and 84 at 1,024 ranks. Calls
  /// without a slot are not learned.
  /// `hosts`: as in Parameters.
  Learner(const Policy& policy, int ranks, SiteMatch site_matches, std::vector<int> hosts = {},
          std::size_t memory = 16 << 20);

  /// Calls in ascending order of n. Gaps (lost logs) are allowed.
  void see(const CallSeen& call);

  struct Announcement {
    enum class Kind : std::uint32_t { none, keep, plan } kind = Kind::none;
    Plan plan;
    bool rest = false;        ///< the epoch that begins when this comes into force is not logged
    std::uint64_t epoch = 0;  ///< calls that it lasts; 0: as the sequence says (Sequence::lasts)
  };
  /// What to announce at call n. `dropped`: the plan in force has been dropped. `now`: the leader's clock, from any
  /// origin. `hurried`: there is no time to look at anything: as before.
  Announcement announce(std::uint64_t n, bool dropped, Nanoseconds now, bool hurried = false);
  /// The last announcement ran the model, whose time has a limit of its own.
  bool modelled() const { return budget_ < kModelBudget; }
  /// Messages that it modelled and planned.
  std::int64_t modelled_messages() const { return kModelBudget - budget_; }
  /// The last announcement decides from call n on.
  void in_force(std::uint64_t n);
  /// Ranks have waited so long at a boundary for the leader, in the mean over all of them.
  void waited(Nanoseconds mean) {
    waited_ = waited_ == 0 ? static_cast<double>(mean) : (waited_ + static_cast<double>(mean)) / 2;
  }
  /// What is known from an earlier run: forecasts of its sites, and the plan that is in force from the first call on.
  void remember(SiteHistory history, const Plan& plan) {
    history_of_ = std::move(history), announced_ = before_ = plan;
  }

  /// Plans may ask for patterns that are exchanged for a single call.
  void allow_edges() { edges_ = true; }

  /// 0: none is known.
  std::uint64_t period() const { return slots_.size(); }
  std::vector<SlotReport> reports() const;
  /// What a later run starts from: the plan at the end, with verdicts and without trials. If the verdict of a trial is
  /// open, the earlier winner serves the slot, else native. Models nothing.
  struct Outcome {
    Plan plan;
    bool says_anything = false;       ///< beyond what every rank decides by itself
    std::vector<SlotReport> reports;  ///< with the verdicts
  };
  Outcome outcome() const;

  /// Calls that are searched for a period of at most half of them. Derived from memory: the history takes 16 KiB. A
  /// longer period is not found, and the calls are served by signature.
  static constexpr std::size_t kHistory = 1024;
  /// Measured calls before a verdict. Simulated 20,000 times against 32 native calls, with random times that deviate by
  /// 5%. After 4, 8, 16 and 32 calls, an algorithm without gain wins in 6%, 6%, 4% and 2%. One with a gain of 10% wins
  /// in 69%, 84%, 93% and 97%. With more calls, a bad trial costs more.
  static constexpr int kEnough = 8;
  /// Messages that one announcement may model: what a single candidate may take, so that each gets its turn. What is
  /// left waits for the next.
  static constexpr std::int64_t kModelBudget = kMostInJob;
  /// Modelling or planning a message takes so many nanoseconds; a site may be modelled for this part of the time that
  /// its calls have taken, and at first for so many nanoseconds. Derived: a twentieth is the smallest gain that is
  /// tried (kWorthTrying), and 1 ms models 800 messages. A larger share costs more where nothing gains. A smaller one
  /// delays every trial.
  static constexpr double kModelMessage = 1'250, kModelShare = 0.05, kModelStake = 1e6;
  /// What trials may take beyond native: this part of the time that the site's calls take, and at first so many native
  /// calls' worth. Derived: medians that differ by 3% count as equal (kNotWorse). After a trial of 12 calls, up to 3.7
  /// times as slow as native, 32 calls' worth allow the next. Measured with a first choice 2.7 times as slow: 400 calls
  /// took 6% longer, and 1,200 calls no longer (docs/results/overhead.md).
  static constexpr double kRisk = 0.03, kStake = 32;
  /// Nanoseconds: finding, beginning and polling a schedule of ours. With a smaller value, dispatches cost more than
  /// some algorithms gain. With a larger one, short calls never gain.
  static constexpr double kDispatch = 2'000;
  /// Calls that a trial may take. Derived: kEnough, and half as many that may go unseen.
  static constexpr int kTrial = 12;

 private:
  /// Medians of the last calls under one algorithm.
  struct Samples {
    /// Derived: the median of 32 calls with a deviation of 5% has one of 1.1%, below the 3% that decide (kWins). Older
    /// calls are forgotten.
    static constexpr int kKept = 32;
    std::array<float, kKept> after_last, elapsed;
    int count = 0;
    void add(Nanoseconds after, double mean_elapsed);
    void clear() { count = 0; }
    bool enough() const { return count >= kEnough; }
    double median_after() const { return median(after_last); }
    double median_elapsed() const { return median(elapsed); }

   private:
    double median(std::array<float, kKept> values) const;
  };
  /// Why a slot is served as it is. Put into words only where somebody asks (why_text).
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
    lost,
    risk,
    nothing_serves,
    no_gain,
  };
  /// Sizes of the blocks that the next call is expected to have, and how often that was wrong.
  struct ExpectedSizes {
    /// Derived: `surprises` has 16 bits. Of the fewest calls, three must be surprises before sizes count as varying.
    static constexpr int kWindow = 16, kLeast = 4;
    std::vector<Bytes> sizes;     ///< empty: none were seen
    std::vector<Bytes> other;     ///< those of the last call, if they were not expected: they are, once they come twice
    std::uint16_t surprises = 0;  ///< of the last `seen` calls, the latest in the lowest bit
    int seen = 0;
    bool varying = false;  ///< a tree that was planned for some sizes is mostly run with others
    int missed() const;
    void add(std::span<const Bytes> now);
  };
  struct Slot {
    Slot(int ranks, int window) : predictor(ranks, window) {}
    Signature signature;
    std::uint64_t hash = 0;  ///< the signature's
    std::uint64_t site = 0, calls = 0;
    std::uint64_t decided_at = 0;  ///< calls when it was decided last
    Predictor predictor;
    Samples native, current;
    int algorithm = -1, segments = 0;
    bool overlap = true;
    int edged = 0;                           ///< calls in a row that every rank had announced
    std::uint64_t counts_from = UINT64_MAX;  ///< call from which `current` is measured
    bool changed = false;                    ///< since the last announcement came into force
    bool on_trial = false;  ///< the plan lets the algorithm run kTrial times, then native until there is a verdict
    int round = 0;          ///< of trials: another begins anew
    int after_trial = 0;    ///< native calls since the trial came into force
    int proven = -1, proven_segments = 0;   ///< what has won here, under whatever pattern
    std::optional<CandidateSearch> search;  ///< begun and not done: goes on at the next announcement
    double modelling = 0;                   ///< nanoseconds that it was modelled for
    std::vector<std::uint32_t> came_last;   ///< [ranks], calls
    double imbalance = 0;          ///< nanoseconds from the first arrival to the last, of all calls that were seen
    std::uint64_t seen = 0;        ///< calls in `imbalance`
    double risked = 0, spent = 0;  ///< nanoseconds that trials took beyond native; that all calls took
    const Rule* rule = nullptr;
    Forecast forecast;
    std::vector<Nanoseconds> announced;  ///< pattern that the plan holds; empty: flat
    ExpectedSizes expected;
    bool shares = false;  ///< which sizes the next call has is not known: another site of the same signature has others
    std::vector<Bytes> announced_sizes;  ///< of the blocks, as the plan holds them
    bool sizes_vary() const { return expected.varying || shares; }
    std::vector<Nanoseconds> modelled_for;  ///< pattern that the candidates were modelled under
    std::vector<Bytes> modelled_sizes;
    std::vector<Candidate> candidates;
    std::vector<LeftOut> left_out;  ///< of the candidates
    std::int64_t candidate_messages = 0;
    double native_modelled = -1, modelled = -1;
    Why why = Why::unknown;
  };

  /// What serves the calls of a slot under a plan.
  struct Served {
    const Slot* slot;
    std::int32_t algorithm, segments;
    bool overlap;
    std::span<const Nanoseconds> pattern;  ///< empty: flat
    std::span<const Bytes> sizes;
    int trials = 0, rounds = 0;  ///< trials: of kTrial calls; 0: no limit
  };

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
  void settle(Slot& slot, int algorithm, int segments, bool with_pattern, Why why, bool on_trial = false);
  bool wins(const Slot& slot) const;
  bool slight(const Slot& slot) const;
  bool quiet(const Slot& slot) const;
  Announcement with_epoch(Announcement out, Nanoseconds now, const std::vector<Slot*>& slots);
  std::uint64_t epoch_for(const std::vector<Slot*>& slots) const;
  static std::string sizes_text(const Slot& slot);
  std::string why_text(const Slot& slot) const;
  Decision decision(const Slot& slot, int algorithm, int segments) const;
  bool may(const Slot& slot, int algorithm, int segments) const;
  PlanEntry entry_for(const Served& served, Plan& plan) const;
  Plan plan_of(const std::vector<Served>& all, bool& says_anything) const;
  Served verdict_on(const Slot& slot, const char*& words) const;
  Served earlier_winner(const Slot& slot) const;
  std::vector<Slot*> decided() const;

  const Policy& policy_;
  int ranks_;
  std::vector<int> hosts_;
  SiteMatch site_matches_;
  SiteHistory history_of_;
  bool edges_ = false;
  std::size_t most_slots_;
  std::map<std::uint64_t, std::unique_ptr<Slot>> by_key_;  ///< by signature and site, while no period is known
  std::vector<std::unique_ptr<Slot>> slots_;               ///< of the period
  std::uint64_t first_ = 0;                                ///< call n is in slot (n - first_) mod period
  std::vector<std::uint64_t> history_;                     ///< key of the latest calls, oldest first
  std::uint64_t next_ = 0;                                 ///< number that continues the history
  Plan announced_;
  Plan before_;  ///< of an earlier run
  Rest rest_;
  std::uint64_t looked_at_ = 0;                    ///< `next_` at the last announcement
  std::uint64_t asked_n_ = 0;                      ///< call and
  Nanoseconds asked_ = 0;                          ///< time of the last announcement
  double waited_ = 0;                              ///< nanoseconds at a boundary that waits, of late
  double pace_ = 0;                                ///< nanoseconds per call of the communicator since then
  std::uint64_t glance_ = Sequence::kSteadyEpoch;  ///< calls of an epoch between two rests
  bool quiet_ = false, divergent_ = false;         ///< at the last announcement; ever
  std::int64_t budget_ = kModelBudget;             ///< messages that may still be modelled
  std::vector<CandidateSearch> searched_;          ///< done; one per pattern and size class, the latest last
};

}  // namespace latecomer::core
