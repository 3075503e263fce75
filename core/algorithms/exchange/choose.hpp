// SPDX-License-Identifier: BSD-3-Clause
// What the algorithms that plan an exchange share: from an instance to a problem, from a plan to rows, and what the model
// says of others.
#pragma once

#include "core/algorithms/algorithm.hpp"
#include "core/algorithms/exchange/plan.hpp"

namespace latecomer::core::exchange {

/// An instance with all that a plan needs: without figures of the network those of a fast one.
class Setting {
 public:
  explicit Setting(const Instance& instance);
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  const Instance& instance() const { return instance_; }
  /// From 0 on.
  std::span<const Nanoseconds> arrivals() const { return arrivals_; }
  Nanoseconds last() const { return *std::max_element(arrivals_.begin(), arrivals_.end()); }
  /// In so many segments, or as many as there may be. Refers to this.
  Problem problem(int segments) const;

 private:
  Instance instance_;
  std::vector<Nanoseconds> arrivals_;
};

/// Tables of the algorithms that may leave a call to one of `others` say first which one it is, others.size() for the plan
/// that follows, and then in how many segments. The schedule of rank `me` by such a table.
/// `ordered`: contributions are added by OrderedNode's tree.
Schedule carry_out(const Instance& instance, Rank me, std::vector<int> (*table_of)(const Instance&), std::span<const char* const> others, bool ordered = false);

/// Appends what is emitted as rows for clairvoyant::follow; `only`: as in Parameters.
Emit rows_into(std::vector<int>& rows, Rank only);

/// Modelled time of an algorithm of that collective after the last arrival. `segments`: 0 for its own choice.
Nanoseconds modelled_after_last(const Instance& instance, std::string_view algorithm, int segments = 0);

/// A plan with the best of the owners worth trying, in as many segments as the instance says or as suits it.
struct Planned {
  Problem problem;
  std::vector<Rank> owners;
};
Planned plan_for(const Setting& setting, Rank sink = -1, bool ordered = false);

/// A bound of an allreduce's time after the last arrival that knows what late ranks' ports can have sent by then; never below
/// lower_bound (docs/late_exchange.md, figures).
double least_after_last(const Setting& setting);

/// Plans of more messages are not modelled before they are used.
inline constexpr std::int64_t kModelled = 1 << 18;
/// Looks for a number of segments whose plan, of that algorithm, ends sooner in the model than that in `segments`, of which `planned` is
/// what the plan itself says, where that is far from the bound and looking does not take long. Returns when it ends after the last arrival.
Nanoseconds fit_segments(const Setting& setting, const char* algorithm, int& segments, Nanoseconds planned);

/// Which of `others` the model prefers to `own` in so many segments; others.size() for none.
std::size_t preferred(const Instance& instance, std::string_view own, int segments, std::span<const char* const> others);

}  // namespace latecomer::core::exchange
