// SPDX-License-Identifier: BSD-3-Clause
// The input of an algorithm, and its properties in the catalogue. An algorithm is a pure function
// (instance, rank) -> Schedule; every rank must be given equal instances (the agreement rule).
#pragma once

#include <algorithm>
#include <memory>  // first: after <algorithm> g++ 12.2 crashes on the coroutine in allreduce/rabenseifner.cpp
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/collective/call.hpp"
#include "core/network/network.hpp"
#include "core/pap/pattern.hpp"
#include "core/schedule/program.hpp"

namespace latecomer::core {

struct Parameters {
  int segments = 0;               ///< 0: the algorithm's own choice
  bool overlap = true;            ///< false: the papers' lockstep (a step begins when the previous one is complete)
  Network network = {};           ///< figures an algorithm may build its schedule on (PRR: the time of one step)
  std::vector<Bytes> sizes = {};  ///< [ranks], scatterv and gatherv: expected sizes of the blocks; empty: all alike
  std::vector<int> hosts = {};    ///< [ranks], the number of each rank's host; empty: network.ranks_per_host tells
  Rank only = -1;  ///< the only rank whose schedule will be asked for: plans keep no other's part; -1: any rank's
};

/// One collective call with everything its schedules are computed from; shared by all ranks of a
/// simulation. Not thread-safe: shared() fills a cache.
class Instance {
 public:
  Instance(Call call, Pattern pattern, Parameters parameters)
      : call(call),
        pattern(std::move(pattern)),
        parameters(std::move(parameters)),
        order(this->pattern.order(call.ranks)),
        rank_order(Pattern().order(call.ranks)) {}
  Call call;
  Pattern pattern;
  Parameters parameters;
  std::vector<Rank> order;       ///< order[k]: the rank that arrives k-th
  std::vector<Rank> rank_order;  ///< 0, 1, ..., P-1

  /// Where the ranks live. Hosts are numbered from 0.
  int host(Rank r) const {
    return parameters.hosts.empty() ? r / parameters.network.ranks_per_host
                                    : parameters.hosts[static_cast<std::size_t>(r)];
  }
  int hosts() const {
    return parameters.hosts.empty() ? host(call.ranks - 1) + 1
                                    : *std::max_element(parameters.hosts.begin(), parameters.hosts.end()) + 1;
  }
  /// The largest number of ranks on a host.
  int most_ranks() const {
    if (parameters.hosts.empty()) return std::min(call.ranks, parameters.network.ranks_per_host);
    std::vector<int> ranks(static_cast<std::size_t>(hosts()), 0);
    for (const int h : parameters.hosts) ++ranks[static_cast<std::size_t>(h)];
    return *std::max_element(ranks.begin(), ranks.end());
  }
  bool same_host(Rank a, Rank b) const { return host(a) == host(b); }

  /// A table that all ranks need and that is costly to compute. The first rank that needs it computes it.
  template <typename Compute>
  const std::vector<int>& shared(Compute compute) const {
    if (!std::exchange(shared_filled_, true)) shared_ = compute();
    return shared_;
  }
  /// The table of shared(compute) once a schedule has been generated; empty before.
  const std::vector<int>& shared() const { return shared_; }
  /// Takes a table that another instance has computed, for the same algorithm, ranks and segments; before any schedule
  /// is generated.
  void share(std::vector<int> table) {
    shared_ = std::move(table);
    shared_filled_ = true;
  }

 private:
  mutable std::vector<int> shared_;
  mutable bool shared_filled_ = false;
};

/// Part `index` of `parts` nearly equal parts of a vector of `count` elements.
struct Part {
  Elements offset, count;
};
inline Part part_of(Elements count, int parts, int index) {
  const auto at = [&](int i) { return static_cast<Elements>(static_cast<__int128>(count) * i / parts); };
  return {at(index), at(index + 1) - at(index)};
}
/// The largest of the parts.
inline Elements largest_part(Elements count, int parts) { return (count + parts - 1) / parts; }

inline Slice output(Part p) { return {Buffer::output, p.offset, p.count}; }
/// Whether `me` finds its own contribution in the output.
inline bool own_in_output(const Call& call, Rank me) {
  return call.in_place && (!is_rooted(call.op) || me == call.root);
}
/// A rank's own contribution: in the input, or in the output for in-place calls.
inline Slice own(const Call& call, Rank me, Part p) {
  return {own_in_output(call, me) ? Buffer::output : Buffer::input, p.offset, p.count};
}
/// The own contribution of any rank, where all ranks have the same buffers.
inline Slice own(const Call& call, Part p) { return own(call, -1, p); }

/// Whether an algorithm takes the parameter `segments`.
enum class Segments : std::uint8_t { none, any };
/// The way in which a rank finds its own part.
enum class Planning : std::uint8_t {
  none,
  whole,  ///< it computes the whole plan, message by message
  slow,   ///< too slowly for a running job
};

/// The operators that an algorithm can serve.
enum class Operators : std::uint8_t {
  any,          ///< operands stay in rank order
  commutative,  ///< operands are combined in another order
};

/// The calls that an algorithm serves without a rule or a plan. Later rows of a collective go before earlier ones.
struct DefaultCalls {
  bool some = false;
  Bytes least = 0, most = INT64_MAX;  ///< Call::bytes
  int ranks = 1;                      ///< at least
  bool commutative = false;           ///< only with a commutative operator
  bool divided = false;               ///< only with at least one element per rank
  bool equal_blocks = false;          ///< only with blocks of one size
  bool include(const Call& call) const {
    const Bytes bytes = call.bytes();
    return some && bytes >= least && bytes <= most && call.ranks >= ranks && (!commutative || call.commutative) &&
           (!divided || call.count >= call.ranks) && (!equal_blocks || call.element_bytes > 0);
  }
};

/// The function of P, N and the segments that approximates the time after the last arrival (model/closed_form.hpp).
enum class Form : std::uint8_t {
  none,
  whole_rounds,
  whole_exchanges,
  rounds_after_rounds,
  halving,
  ring,
  reduce_ring,
  scatter_ring,
  linear,
  slt,
  trees,
  blocks,
};

/// The properties of an algorithm, in the order in which a row of the catalogue may give them. Verified: core.schedule.
struct Traits {
  Operators operators = Operators::any;
  bool follows_pattern = false;  ///< the association (of data movement: the messages) depends on the arrival pattern
  bool background = false;       ///< has background-lane operations
  Segments segments = Segments::none;
  Planning planning = Planning::none;
  bool needs_sizes =
      false;  ///< its tree is built from the sizes of blocks: it serves no call before a plan brings them
  bool built_together = false;  ///< where no plan brings sizes the ranks exchange them and build its tree in the call
  bool stand_in =
      false;  ///< serves the calls of its collective for which another algorithm's plan takes too long or lacks sizes
  Form form = Form::none;
  DefaultCalls native = {};  ///< calls for which MPICH 4 runs this algorithm
  DefaultCalls range = {};   ///< calls that the algorithm serves on range communicators
};

/// One row of the catalogue (core/algorithms/catalogue.def).
struct Algorithm : Traits {
  Collective op;
  std::string_view name;
  std::string_view source;  ///< paper and section
  std::string_view cost;    ///< run time, balanced, in alpha, beta, gamma
  Schedule (*build)(const Instance&, Rank);
  bool keeps_rank_order() const { return operators == Operators::any; }
  bool pattern_independent() const { return !follows_pattern; }
  /// Whether its schedule is built on the pattern, whatever its association.
  bool uses_pattern() const { return follows_pattern || planning == Planning::whole; }
  /// The calls that it cannot serve, in words; "" if it serves all.
  std::string restrictions() const;
};

/// All algorithms, by collective, in the order of the catalogue.
std::span<const Algorithm> catalogue();

/// Position in the catalogue, as plans and records hold it; -1 for nullptr, which is native.
inline int index_of(const Algorithm* algorithm) {
  return algorithm ? static_cast<int>(algorithm - catalogue().data()) : -1;
}
inline const Algorithm& algorithm_at(int index) { return catalogue()[static_cast<std::size_t>(index)]; }

/// The algorithm of a collective that is the stand-in for others, or nullptr.
const Algorithm* stand_in_for(Collective op);

/// The algorithm of that name for that collective, or nullptr.
const Algorithm* find_algorithm(Collective op, std::string_view name);

/// Generates one rank's schedule, or those of all ranks.
RankProgram materialize(const Algorithm& algorithm, const Instance& instance, Rank me);
std::vector<RankProgram> materialize(const Algorithm& algorithm, const Instance& instance);

/// Names of all algorithms of a collective.
std::vector<std::string_view> algorithm_names(Collective op);

}  // namespace latecomer::core
