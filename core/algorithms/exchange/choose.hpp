// SPDX-License-Identifier: BSD-3-Clause
// What the algorithms that plan an exchange share: from an instance to a problem, from a plan to rows, and what the
// model says of others.
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

/// In a table, instead of one of the others: the plan that follows.
inline constexpr int kThePlan = INT32_MAX;

/// Tables of the algorithms that may leave a call to one of `others` say first which one it is, or kThePlan,
/// and then in how many segments. The schedule of rank `me` by such a table.
/// `ordered`: contributions are added by OrderedNode's tree.
Schedule carry_out(const Instance& instance, Rank me, std::vector<int> (*table_of)(const Instance&),
                   std::span<const char* const> others, bool ordered = false);

/// Modelled time of an algorithm of that collective after the last arrival. `segments`: 0 for its own choice.
Nanoseconds modelled_after_last(const Instance& instance, std::string_view algorithm, int segments = 0);

/// least_after_last of a setting.
double least_after_last(const Setting& setting);

/// Plans of more messages are not modelled before they are used.
inline constexpr std::int64_t kModelled = 1 << 18;
inline bool is_modelled(const Problem& problem) { return problem.messages() <= kModelled; }

/// What is planned.
struct Planned {
  Problem problem;
  std::vector<Rank> owners;
};
/// A plan as carry_out follows it.
struct Table {
  std::vector<int> rows;
  Outcome says;
};
/// With everybody's rows, or those of `only`, which is enough where nothing is modelled. Given up as plan() is.
Table table_of(const Planned& planned, Rank only = -1, Nanoseconds until = kForever);
/// With everybody's rows where it may be modelled, or else what Parameters::only wants.
Table table_for(const Setting& setting, const Planned& planned, Nanoseconds until = kForever);
/// The rows that a rank needs, or all; as Parameters::only.
std::vector<int> rows_for(Table table, Rank only);

/// Modelled time of a plan after the last arrival; the table has everybody's rows.
Nanoseconds modelled_after_last(const Setting& setting, const Planned& planned, const Table& table);
/// What the plan says, which messages keep to, or the model, where they may not.
Nanoseconds expected_after_last(const Setting& setting, const Planned& planned, const Table& table);

struct Plan {
  Planned planned;
  Table table;
};
/// With the best of the owners worth trying, in as many segments as the instance says or as should suit it; the table
/// as table_for makes it.
Plan plan_for(const Setting& setting, Rank sink = -1, bool ordered = false);

/// Looks for a number of segments in which the plan ends sooner, and for owners by time, where it is far from
/// the bound and looking does not take long.
void fit(const Setting& setting, Plan& plan);

/// Which of `others` ends sooner than `least` after the last arrival in the model, and first of all; others.size() for
/// none.
std::size_t preferred(const Instance& instance, Nanoseconds least, std::span<const char* const> others);

/// The table of a plan, fitted unless the instance says in how many segments; or, where then one of `others` is
/// preferred, which.
std::vector<int> fitted_or_other(const Setting& setting, Plan plan, std::span<const char* const> others);
/// The table that says `which` of so many others, or is the plan's: the rows that the instance needs.
std::vector<int> table_with(std::size_t which, std::size_t others, Plan plan, const Instance& instance);

}  // namespace latecomer::core::exchange
