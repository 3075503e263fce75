// SPDX-License-Identifier: BSD-3-Clause
// Counts the messages of plans.
#include "core/select/planning.hpp"

#include <algorithm>
#include <bit>

#include "core/algorithms/clairvoyant/walk.hpp"

namespace latecomer::core {
namespace {

std::int64_t sends_of(const Algorithm& a, const Instance& instance, Rank r) {
  std::int64_t out = 0;
  auto schedule = a.build(instance, r);
  while (const Operation* op = schedule.next()) out += op->kind == OpKind::send;
  return out;
}

}  // namespace

std::int64_t size_class(std::int64_t size) {
  constexpr int kLeadingBits = 4;  // derived: with the leading bit fixed, sizes of a class differ by less than 1/8
  const int shift = std::max(
      0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0)))) - kLeadingBits);
  return size >> shift << shift;
}

Call planned_call(Call call) {
  call.count = size_class(call.count);
  call.in_place = false;  // in a reduce only the root may use MPI_IN_PLACE, and all ranks must decide alike
  return call;
}

std::int64_t messages_of(const Algorithm& a, const Call& call, int segments, const Network& network) {
  if (is_irregular(call.op)) return call.ranks - 1;
  if (plans_segments(a)) {
    return planned_messages(call, segments > 0 ? segments : clairvoyant::segments_for(call, network));
  }
  // One segment per rank: a reduce-scatter, and a spread.
  if (a.planning == Planning::whole) return std::int64_t{2} * call.ranks * call.ranks;
  const Instance instance(call, Pattern(), {.segments = segments, .network = network});
  // Derived: up to 64 ranks generate few enough schedules. Measured: at 65 to 1,000 ranks, estimates of all algorithms
  // without a plan are 0.89 to 1.28 of the exact numbers (100,000 floats, roots 0 and 7).
  constexpr int kAll = 64, kSample = 16;
  std::int64_t out = 0;
  if (call.ranks <= kAll) {
    for (Rank r = 0; r < call.ranks; ++r) out += sends_of(a, instance, r);
    return out;
  }
  // Steps of the golden section: no power of two, of which trees are made.
  const auto step = static_cast<std::int64_t>(0.6180339887 * call.ranks) | 1;
  std::int64_t sampled = 0;
  for (int i = 1; i <= kSample; ++i)
    sampled += sends_of(a, instance, static_cast<Rank>((call.root + 1 + i * step % (call.ranks - 1)) % call.ranks));
  return sends_of(a, instance, call.root) + sampled * (call.ranks - 1) / kSample;
}

std::int64_t planning_of(const Algorithm& a, const Call& call, int segments, const Network& network) {
  if (a.planning == Planning::none) return 0;
  if (!is_irregular(call.op)) return messages_of(a, call, segments, network);
  // Finding a tree for given sizes takes about 6 ns times P^2 (P^3 for binary trees), measured as planning_ns of
  // `latecomer simulate --json`. One planned message takes 300 ns, as long as 50 such steps.
  constexpr std::int64_t kStepsPerMessage = 50;
  const std::int64_t ranks = call.ranks, pairs = ranks * ranks;
  if (a.planning == Planning::slow) return pairs * ranks / kStepsPerMessage;
  return a.needs_sizes ? pairs / kStepsPerMessage : ranks;
}

int fewest_segments(const Call& call) {
  constexpr Elements kPipeline = 16;  // derived: log2 of 65,536 ranks
  return static_cast<int>(std::clamp<Elements>(call.count, 1, kPipeline));
}

Fitting fit_to(const Algorithm& a, const Call& given, int segments, const Network& network, std::int64_t most) {
  if (!plans_segments(a) || segments > 0) {
    const std::int64_t messages = planning_of(a, given, segments, network);
    return {messages <= most, segments, messages};
  }
  const Call call = planned_call(given);
  const int fewest = fewest_segments(call);
  const auto allowed = static_cast<int>(std::min<std::int64_t>(most / planned_messages(call, 1), kChannels));
  if (allowed < fewest) return {false, 0, planned_messages(call, fewest)};
  const int chosen = std::min(clairvoyant::segments_for(call, network), allowed);
  return {true, chosen, planned_messages(call, chosen)};
}

}  // namespace latecomer::core
