// SPDX-License-Identifier: BSD-3-Clause
// Turns the outcome of a learner into the text that the next run reads.
#include "shim/exchange/learned.hpp"

namespace latecomer::shim {

void note_learned(const core::Learner::Outcome& outcome) {
  Job& j = job();
  std::string text =
      profiles::learned_json(profiles::setup_of(j.mine.job, j.hosts), outcome.learned, outcome.reports, j.history);
  const JobLock lock;
  j.mine.learned = std::move(text);
}

}  // namespace latecomer::shim
