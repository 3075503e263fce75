// SPDX-License-Identifier: BSD-3-Clause
// Plays native's stages one after the other: the exits of one stage are the arrivals of the next.
#include "core/select/native.hpp"

#include <algorithm>
#include <bit>

#include "core/select/by_call.hpp"

namespace latecomer::core {
namespace {

class TwoLevels {
 public:
  TwoLevels(const Call& call, const Pattern& arrivals, const Parameters& parameters, Jitter jitter)
      : call_(call), parameters_(parameters), jitter_(jitter), placement_(call, arrivals, parameters) {
    hosts_.resize(static_cast<std::size_t>(placement_.hosts()));
    for (Rank r = 0; r < call.ranks; ++r) {
      auto& host = hosts_[static_cast<std::size_t>(placement_.host(r))];
      host.insert(is_rooted(call.op) && r == call.root ? host.begin() : host.end(), r);
      times_.push_back(arrivals.arrival(r));
    }
    for (const auto& host : hosts_) leaders_.push_back(host.front());
  }

  Result<Simulation> run(const Pattern& arrivals) {
    const bool reduces = is_reduction(call_.op), gives = call_.op != Collective::reduce;
    for (const auto& host : hosts_)
      if (reduces && !play_part(Collective::reduce, host, 0, true)) return Error{error_};
    if (!play_part(call_.op, leaders_, is_rooted(call_.op) ? placement_.host(call_.root) : 0, false))
      return Error{error_};
    for (const auto& host : hosts_)
      if (gives && !play_part(Collective::bcast, host, 0, true)) return Error{error_};
    out_.finish = times_;
    const Nanoseconds last = *std::max_element(times_.begin(), times_.end());
    out_.run_time = last - arrivals.first();
    out_.after_last = last - arrivals.last();
    for (Rank r = 0; r < call_.ranks; ++r)
      out_.mean_elapsed += static_cast<double>(times_[static_cast<std::size_t>(r)] - arrivals.arrival(r)) / call_.ranks;
    return out_;
  }

 private:
  /// One stage among some ranks. Their times become its exits.
  bool play_part(Collective op, const std::vector<Rank>& ranks, Rank root, bool on_one_host) {
    const int n = static_cast<int>(ranks.size());
    if (n == 1) return true;
    Call stage = call_;
    stage.op = op;
    stage.ranks = n;
    stage.root = root;
    Parameters parameters = parameters_;
    parameters.hosts.resize(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) parameters.hosts[static_cast<std::size_t>(i)] = on_one_host ? 0 : i;
    std::vector<Nanoseconds> arrivals;
    arrivals.reserve(ranks.size());
    for (const Rank r : ranks) arrivals.push_back(times_[static_cast<std::size_t>(r)]);
    const auto result = simulate(*native_stand_in(stage), Instance(stage, Pattern(), parameters), parameters.network,
                                 Pattern(arrivals), kLookahead, jitter_);
    if (!result) {
      error_ = result.error();
      return false;
    }
    for (int i = 0; i < n; ++i)
      times_[static_cast<std::size_t>(ranks[static_cast<std::size_t>(i)])] =
          result->finish[static_cast<std::size_t>(i)];
    out_.messages += result->messages;
    return true;
  }

  const Call& call_;
  const Parameters& parameters_;
  Jitter jitter_;
  Instance placement_;
  std::vector<std::vector<Rank>> hosts_;  // the leader first
  std::vector<Rank> leaders_;
  std::vector<Nanoseconds> times_;  // [ranks]: of the exit from the last stage
  Simulation out_;
  std::string error_;
};

}  // namespace

int native_ranks(const Call& call, const Parameters& parameters) {
  const int hosts = Instance(call, Pattern(), parameters).hosts();
  // MPICH's own thresholds (maint/tuning/coll/ch4/generic.json).
  constexpr int kFewRanks = 8;
  constexpr Bytes kShort = 12288, kLong = 524288;
  const bool short_bcast = call.ranks < kFewRanks || call.bytes() < kShort ||
                           (std::has_single_bit(static_cast<unsigned>(call.ranks)) && call.bytes() < kLong);
  const bool levels = call.op == Collective::bcast
                          ? short_bcast
                          : (call.op == Collective::allreduce || call.op == Collective::reduce) && call.commutative;
  return levels && hosts > 1 ? hosts : call.ranks;
}

Result<Simulation> simulate_native(const Call& call, const Pattern& arrivals, const Parameters& parameters,
                                   Jitter jitter) {
  if (native_ranks(call, parameters) < call.ranks) return TwoLevels(call, arrivals, parameters, jitter).run(arrivals);
  return simulate(*native_stand_in(call), Instance(call, Pattern(), parameters), parameters.network, arrivals,
                  kLookahead, jitter);
}

}  // namespace latecomer::core
