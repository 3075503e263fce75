// SPDX-License-Identifier: BSD-3-Clause
// Tests the expected gain of an algorithm: its range, its correction by measured times, and what counts for the run.
#include "core/select/gain.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/select/by_call.hpp"

using namespace latecomer::core;

namespace {

/// The fastest candidate of a call on 8 ranks, beside native. One rank is late by 20 ms.
struct Found {
  Call call;
  Observed observed;
  Parameters parameters;
  Candidate native, best;

  explicit Found(Collective op, Elements count = 65536, std::size_t late = 1) {
    call.op = op;
    call.ranks = 8;
    call.element_bytes = 4;
    call.count = count;
    std::vector<Nanoseconds> arrivals(8);
    arrivals[late] = 20'000'000;
    observed.arrivals = Pattern(arrivals);
    parameters.network = *parse_network("alpha=10us,beta=80ns/B,latency=50us,eager=8KiB");
    const Candidates all = model_candidates(call, observed.arrivals, parameters, Objective::run_time);
    best = all.list.front();
    for (const Candidate& c : all.list)
      if (c.algorithm == index_of(native_stand_in(call))) native = c;
    REQUIRE(best.modelled_ns < 0.8 * native.modelled_ns);
  }
  Gain gain() const {
    const auto found = gain_of(call, native, best, observed, parameters);
    REQUIRE(found);
    CHECK(found->least <= found->likely);
    CHECK(found->likely <= found->most);
    return *found;
  }
};

}  // namespace

TEST_CASE("gain: an error that native shows is taken for the model's, not for native's alone", "[gain]") {
  Found found(Collective::allreduce);
  const Gain plain = found.gain();
  CHECK(plain.least < plain.likely);
  CHECK(plain.likely < plain.most);
  // The late rank leaves at the end of the call, or before.
  CHECK(plain.likely >= found.native.modelled_ns - found.best.modelled_ns);
  for (const double error : {0.5, 2.0}) {
    found.observed.native_ns = error * found.native.modelled_ns;
    const Gain gain = found.gain();
    CHECK(gain.likely == Approx(error * plain.likely).epsilon(0.02));
    // The other reading, native measured against the candidate as modelled, is in the range.
    const double alone = plain.likely + (error - 1) * found.native.modelled_ns;
    CHECK(gain.least < alone);
    CHECK(gain.most > alone);
  }
}

TEST_CASE("gain: a measured candidate replaces the guess", "[gain]") {
  Found found(Collective::allreduce);
  found.observed.native_ns = found.native.modelled_ns;
  const Gain guessed = found.gain();
  found.observed.own_error = 1.2;
  const Gain gain = found.gain();
  CHECK(gain.likely < guessed.likely);
  CHECK(gain.likely > guessed.least);
  CHECK(gain.most - gain.least < 0.2 * (guessed.most - guessed.least));
}

TEST_CASE("gain: a late rank that leaves a reduce at once gains nothing for the run", "[gain]") {
  // Rank 7 sends 2 KiB without waiting. In native they pass two other ranks on their way to the root.
  const Found found(Collective::reduce, 512, 7);
  const double of_call = found.native.modelled_ns - found.best.modelled_ns;
  CHECK(of_call > 0);
  CHECK(std::abs(found.gain().likely) < 0.1 * of_call);
}
