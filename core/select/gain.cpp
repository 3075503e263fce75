// SPDX-License-Identifier: BSD-3-Clause
// Plays native and the candidate once each, and compares the exits of the ranks.
#include "core/select/gain.hpp"

#include <algorithm>
#include <limits>

namespace latecomer::core {
namespace {

/// Measured: on the wire, 15 of 17 times of latecomer's algorithms were 0.9 to 1.3 times the model's, with figures of
/// the network from the same job (docs/results/wire.md).
constexpr double kFaster = 0.9, kSlower = 1.3;
/// Medians of a few dozen calls on a busy machine differ by this share without cause (learning/judge.hpp).
constexpr double kNoise = 0.03;

/// The exit of a rank if the model is wrong by `error`. An exit before the last arrival depends on other arrivals,
/// which no algorithm changes.
double corrected(Nanoseconds exit, Nanoseconds last, double error) {
  return static_cast<double>(std::min(exit, last)) + error * static_cast<double>(std::max<Nanoseconds>(0, exit - last));
}

/// A rank needs the same time from its exit to its next arrival, whatever algorithm runs. So its next arrival moves as
/// far as its exit, and the last arrival of the next call tells what the run gains. A rank that leaves early, and waits
/// in the next call, gains nothing for the run.
double gain(const Played& native, double native_error, const Played& other, double error, const Pattern& arrivals) {
  if (native.exits.empty() || other.exits.empty()) return native_error * native.after_last - error * other.after_last;
  const Nanoseconds last = arrivals.last();
  double next = -std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < native.exits.size(); ++r)
    next = std::max(next, static_cast<double>(arrivals.arrival(static_cast<Rank>(r))) +
                              corrected(other.exits[r], last, error) - corrected(native.exits[r], last, native_error));
  return static_cast<double>(last) - next;
}

}  // namespace

Errors errors_of_candidate(std::optional<double> native, std::optional<double> own) {
  if (own) return {*own * (1 - kNoise), *own, *own * (1 + kNoise)};
  const double shared = native.value_or(1);
  return {kFaster * std::min(1.0, shared), shared, kSlower * std::max(1.0, shared)};
}

std::optional<Gain> gain_of(const Call& call, const Candidate& native, const Candidate& candidate,
                            const Observed& observed, const Parameters& parameters) {
  const auto played = [&](const Candidate& c) {
    return play_call(algorithm_at(c.algorithm), c.segments, c.closed_form, call, observed.arrivals, parameters,
                     observed.known);
  };
  const auto as_native = played(native), as_candidate = played(candidate);
  if (!as_native || !as_candidate) return {};
  const bool measured = observed.native_ns && as_native->after_last > 0;
  const double native_error = measured ? *observed.native_ns / as_native->after_last : 1;
  const Errors errors = errors_of_candidate(measured ? std::optional(native_error) : std::nullopt, observed.own_error);
  const auto with = [&](double error) {
    return gain(*as_native, native_error, *as_candidate, error, observed.arrivals);
  };
  return Gain{with(errors.most), with(errors.likely), with(errors.least)};
}

}  // namespace latecomer::core
