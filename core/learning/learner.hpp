// SPDX-License-Identifier: BSD-3-Clause
// The learner of a communicator's leader: the period of the sequence of calls, a forecast of the arrival pattern per
// slot, and an algorithm per slot. The rules of the policy decide, or with `auto` the model and then measurements.
// Other ranks know nothing of this: decisions become bytes of a plan. No MPI, no clock.
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
  std::uint64_t site = 0;                ///< the root's, or the leader's; what site rules are about
  std::span<const Nanoseconds> offsets;  ///< [ranks], after the first arrival; empty: not known of this call
  Nanoseconds after_last = -1;           ///< last arrival to last exit; -1: not seen
  double mean_elapsed = 0;               ///< over ranks, nanoseconds
  int algorithm = -1;                    ///< index in the catalogue that ran; -1: native
  std::span<const Bytes> sizes = {};     ///< [ranks], of the blocks of a gatherv or scatterv; else empty
  bool edge = false;                     ///< half of the ranks at least had said before how far they were
  bool divergent = false;                ///< ranks came from different call sites
  Nanoseconds imbalance = -1;            ///< first to last arrival; -1: not known
  Rank last = -1;                        ///< the rank that came last; -1: several at once, or not known
  Nanoseconds arrived = -1;              ///< time of the last arrival, by the leader's clock; -1: not known
};

/// The winner of one site, as one run passes it on to the next.
struct Learned {
  std::uint64_t signature = 0;  ///< Signature::hash()
  std::uint64_t site = 0;       ///< in this run
  int algorithm = -1, segments = 0;
  bool overlap = true;
  std::vector<Nanoseconds> pattern;                  ///< [ranks], the forecast under which it won; empty: flat
  std::vector<Bytes> sizes;                          ///< [ranks], of the blocks; empty: none
  double measured_ns = -1, native_measured_ns = -1;  ///< medians, in terms of the objective; -1: not known
  std::uint64_t calls = 0;                           ///< of the site
};
/// The plan of these winners by universal signature. Sites of one signature with different algorithms get no entry;
/// those with different patterns get none of the patterns.
Plan plan_of_learned(const std::vector<Learned>& learned);

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
  /// The winner of an earlier run at this site, or nullptr.
  using SiteWinner = std::function<const Learned*(std::uint64_t site, const Signature& signature)>;
  /// policy must outlive the learner. `memory`: bytes that slots may take. Derived: a slot takes 1.4 KiB and 192 bytes
  /// per rank (default window). So 16 MiB hold the most slots, 512, up to 163 ranks, and 84 at 1,024 ranks. Calls
  /// without a slot are not learned.
  /// `hosts`: as in Parameters.
  Learner(const Policy& policy, int ranks, SiteMatch site_matches, std::vector<int> hosts = {},
          std::size_t memory = 16 << 20);

  /// The communicator's first call has arrived at the leader. Without this, the first announcement knows no pace.
  void begin(Nanoseconds now) { asked_ = now; }
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
  /// What is known from an earlier run: forecasts and winners of its sites, and the plan of the winners, which is in
  /// force from the first call on.
  void remember(SiteHistory history, SiteWinner winner, const Plan& plan) {
    history_of_ = std::move(history);
    winner_of_ = std::move(winner);
    announced_ = before_ = plan;
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
    std::vector<Learned> learned;     ///< winners of `auto`, those of the earlier run included
  };
  Outcome outcome() const;

  /// Calls that are searched for a period of at most half of them. Derived from memory: the history takes 16 KiB. A
  /// longer period is not found, and the calls are served by signature.
  static constexpr std::size_t kHistory = 1024;
  /// Calls of native before a rota begins, and before a median counts. Derived: the first epoch of a program of slow
  /// calls has four. They only say whether a rota is worth it: in the rota, native is measured again (judge.hpp).
  static constexpr int kFirst = 4;
  /// Calls of a winner before it is doubted, and calls in a row that the ranks have announced before patterns are
  /// exchanged for a call. A smaller number doubts a winner because of noise.
  static constexpr int kEnough = 8;
  /// Messages that one announcement may model: what a single candidate may take, so that each gets its turn. What is
  /// left waits for the next.
  static constexpr std::int64_t kModelBudget = kMostInJob;
  /// Modelling or planning a message takes so many nanoseconds; a site may be modelled for this part of the time that
  /// its calls have taken, and at first for so many nanoseconds. Derived: a twentieth is the smallest gain that is
  /// tried (kWorthTrying), and 1 ms models 800 messages. A larger share costs more where nothing gains. A smaller one
  /// delays every trial.
  static constexpr double kModelMessage = 1'250, kModelShare = 0.05, kModelStake = 1e6;
  /// What rotas may take beyond native: this part of the time that the site's calls take, and at first so many native
  /// calls' worth. Derived: a run of 100 calls may lose 5% and one of 600 calls 3%. A larger share costs more where
  /// the model is wrong, a smaller one delays the next candidates.
  static constexpr double kRisk = 0.02, kStake = 3;
  /// Nanoseconds: finding, beginning and polling a schedule of ours. With a smaller value, dispatches cost more than
  /// some algorithms gain. With a larger one, short calls never gain.
  static constexpr double kDispatch = 2'000;
  /// Turns of each algorithm in a new rota: where native's modelled time is within kTrusted of the measured one, and
  /// elsewhere, where only one candidate is tried at a time. Derived: three turns decide a clear difference
  /// (judge.hpp).
  static constexpr int kTurns = 3, kTurnsUntrusted = 2;
  static constexpr double kTrusted = 1.5;
  /// Candidates whose modelled time is at most so many times the best one's share the rota. Derived: 90% of the errors
  /// of the model are below 22% (docs/results/wire.md).
  static constexpr double kNearBest = 1.25;
  /// Smallest size, in bytes, that is compared where arrivals are balanced or not foreseen. Derived: below, a call
  /// takes the latency of its messages, which the algorithms of the catalogue do not shorten.
  static constexpr Bytes kLeastBalanced = 2048;

 private:
  /// The last calls under one algorithm.
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
    int granted = 0;                         ///< turns of each that the plan allows
    int calls = 0;                           ///< that the plan allows
    int seen = 0;                            ///< calls since it came into force
    int in_a_row = 0;                        ///< the latest calls, if the algorithm in use served them
    std::uint64_t counts_from = UINT64_MAX;  ///< call at which it came into force
    bool running() const { return !runners.empty(); }
    Runner* of(int algorithm);
    /// Beyond the calls of the rota, only the algorithm in use runs. Derived: inside, it runs twice in a row at most,
    /// at the end of one block and the beginning of the next.
    bool interleaved() const { return in_a_row <= 2; }
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
    remembered,
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
    int held = 0;                            ///< announcements in a row that kept an unmeasured pattern
    Rota rota;
    int proven = -1, proven_segments = 0;   ///< what has won here, under whatever pattern
    std::optional<Learned> earlier;         ///< winner of an earlier run
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
    bool modelled_flat = false;             ///< it was none that is foreseen
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
    const Rota* rota = nullptr;
    int calls = 0, rounds = 0;  ///< of the rota
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
  std::vector<std::unique_ptr<Slot>> slots_;               ///< of the period
  std::uint64_t first_ = 0;                                ///< call n is in slot (n - first_) mod period
  std::vector<std::uint64_t> history_;                     ///< key of the latest calls, oldest first
  std::uint64_t next_ = 0;                                 ///< number that continues the history
  struct {
    Slot* slot = nullptr;
    std::uint64_t n = 0;
    int algorithm = -1;
    Nanoseconds arrived = 0;
  } previous_;  ///< the blocking call before, if its slot still exists
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
