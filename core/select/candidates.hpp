// SPDX-License-Identifier: BSD-3-Clause
// The algorithms that may serve a call under a forecast, compared by the model, for `auto` and `latecomer advise`. Each
// algorithm costs the messages that it sends and those that it plans. If this exceeds a budget, a closed form stands
// for it, or it is left out. The result says which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/simulate.hpp"
#include "core/policy/policy.hpp"
#include "core/select/planning.hpp"

namespace latecomer::core {

/// A modelled time above this share of native's is no gain worth another rounding and a rebuilt schedule. Derived: a
/// verdict needs a measured gain of 3% (judge.hpp), and 2% are left for the error of the model.
inline constexpr double kWorthTrying = 0.95;
/// If native takes more than this many times the modelled time, the model does not describe the machine. The usual
/// reason is that ranks share cores (4 ranks on 2 cores, in shared memory: modelled 64 us, measured 4.0 ms). A smaller
/// factor rejects figures of a similar network, a larger one accepts ranks that share cores.
inline constexpr double kNoForecast = 5;
/// Nanoseconds that any call takes beside its messages. Derived: kNoForecast times a dispatch (kDispatch of learning, 2
/// us). The model has no such time, and without this term every call of less than 1 us would seem misjudged.
inline constexpr double kOfAnyCall = 10'000;
inline bool is_forecast(double modelled_ns, double measured_ns) {
  return measured_ns <= kNoForecast * modelled_ns + kOfAnyCall;
}

/// Messages that modelling one candidate may take inside a job: about 1.2 us each, so some 0.3 s, once per pattern and
/// size class.
inline constexpr std::int64_t kMostInJob = 1 << 18;
/// Messages that modelling one candidate may take in a command that a person waits for: 5 s.
inline constexpr std::int64_t kMostOffline = 1 << 22;

struct Candidate {
  int algorithm = -1;        ///< index in the catalogue
  int segments = 0;          ///< 0: the algorithm's own choice
  double modelled_ns = 0;    ///< in terms of the objective
  bool lost = false;         ///< was tried and did not win
  bool closed_form = false;  ///< its messages are more than the budget: modelled_ns is the closed form's
  /// Index of an algorithm in the list that has the same schedules for this call and pattern; -1: none has. Without a
  /// pattern, `prr` is `ring` and `slt` is `linear`.
  int same_as = -1;
};

/// An algorithm that was not compared, and why.
struct LeftOut {
  int algorithm = -1;
  int segments = 0;
  std::int64_t messages = 0;  ///< that it is charged; 0: it plans too slowly for a running job
};

struct Candidates {
  double native_ns = -1;        ///< of the algorithm that stands for native; -1: none does
  std::vector<Candidate> list;  ///< best first
  std::vector<LeftOut> left_out;
  std::int64_t messages = 0;  ///< that were modelled or planned
  std::int64_t most = 0;      ///< that one candidate may take
};

/// A modelled call. Times in nanoseconds.
struct Played {
  double after_last = 0, mean_elapsed = 0;
  std::vector<Nanoseconds> exits;  ///< [ranks], from the zero of the arrivals; empty: a closed form has none
};

/// Models one call of an algorithm, with the times that latecomer adds: its share of planning, and the background
/// engine's reaction. The stand-in of native is played as native. `closed_form`: by its closed form. `known`: schedules
/// are built for the arrivals. Empty: the algorithm has no closed form, or cannot end.
std::optional<Played> play_call(const Algorithm& algorithm, int segments, bool closed_form, const Call& call,
                                const Pattern& arrivals, const Parameters& parameters, bool known);

/// "clairvoyant with 256 segments: no budget at 1,024 ranks: 4,194,304 messages, 262,144 allowed", or "" if nothing
/// is left out.
std::string left_out_text(const Candidates& candidates, int ranks);

/// Models the algorithms of a collective under a pattern, one at a time, segmented ones that use the pattern with more
/// segments, too. The next step depends on the earlier steps only.
class CandidateSearch {
 public:
  /// `parameters`: the network, the sizes and the hosts. `known`: schedules are built for the pattern; else for flat
  /// arrivals, and the ranks still arrive in the pattern. `most`: messages that one candidate may take.
  CandidateSearch(const Call& call, Pattern pattern, Parameters parameters, Objective objective, bool known = true,
                  std::int64_t most = kMostInJob);
  /// Compares only this algorithm with the stand-in of native.
  void only(const Algorithm& algorithm, int segments);
  bool done() const { return next_ == trials_.size(); }
  /// Messages that step() will model and plan; 0 for a closed form.
  std::int64_t next_cost() const { return done() ? 0 : trials_[next_].cost; }
  void step();
  std::size_t modelled() const { return next_; }
  const Call& call() const { return call_; }
  const Pattern& pattern() const { return pattern_; }
  const std::vector<Bytes>& sizes() const { return parameters_.sizes; }
  /// The candidates that are modelled so far.
  const Candidates& found() const { return found_; }

 private:
  struct Trial {
    const Algorithm* algorithm;
    int segments;
    std::int64_t cost;           ///< 0: a closed form
    std::vector<int> more = {};  ///< numbers of segments to look at next, if this one does well
    double before = -1;          ///< modelled time with fewer segments
  };
  void want(const Algorithm& algorithm, int segments, std::vector<int> more = {}, double before = -1);
  bool same_schedules(const Trial& trial, const Candidate& other) const;

  Call call_;
  Pattern pattern_;
  Parameters parameters_;
  Objective objective_;
  bool known_;
  std::vector<Trial> trials_;
  std::size_t next_ = 0;
  double best_ = -1;
  Candidates found_;
};

/// All steps at once.
Candidates model_candidates(const Call& call, const Pattern& pattern, const Parameters& parameters, Objective objective,
                            bool known = true, std::int64_t most = kMostInJob);

}  // namespace latecomer::core
