// SPDX-License-Identifier: BSD-3-Clause
// Turns the outcome of a learner into the text that the next run reads.
#include "shim/exchange/learned.hpp"

#include "shim/state/earlier_run.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

void note_learned(const core::Learner::Outcome& outcome) {
  const auto setup = profiles::setup_of(JobLock()->mine.job, job_world().hosts);
  std::string text = profiles::learned_json(setup, outcome.learned, outcome.reports, earlier_run().history);
  const JobLock lock;
  lock->mine.learned = std::move(text);
}

}  // namespace latecomer::shim
