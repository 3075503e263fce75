// SPDX-License-Identifier: BSD-3-Clause
// Shares the plan and the patterns of an earlier run, and keeps this run's for the next.
#include "shim/job/history.hpp"

#include <sys/stat.h>

#include "shim/guard.hpp"
#include "shim/job/output.hpp"
#include "shim/job/policy.hpp"
#include "shim/log.hpp"
#include "shim/state/earlier_run.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

void share_history() {
  std::vector<char> bytes;
  if (job_world().rank == 0) {
    profiles::HistoryUse use;
    std::string& file = job_rules().policy.learn;
    file = absolute_path(file);
    // The other ranks wait for the bytes, whatever the file does to this rank.
    const Outcome done = attempt([&] {
      struct stat there {};
      const bool exists = stat(file.c_str(), &there) == 0 && there.st_size > 0;
      use.file = file;
      use.why_not = exists ? "it cannot be read" : "it does not exist yet";
      if (!exists) return;
      auto read = profiles::read_history(file, profiles::setup_of(JobLock()->mine.job, job_world().hosts));
      if (read) {
        earlier_run().history = std::move(*read);
        use.why_not = earlier_run().history.why_not;
      } else warn("%s", read.error().c_str());
      bytes = earlier_run().history.plan.serialize();
    });
    if (!done) {
      warn("history: '%s': %s", file.c_str(), done.why);
      earlier_run().history = {};
      bytes.clear();
    }
    if (!use.why_not.empty()) say(1, "no plan of '%s' is used: %s", use.file.c_str(), use.why_not.c_str());
    JobLock()->mine.job.history = std::move(use);
  }
  share_bytes(bytes);
  if (job_world().rank != 0) core::Plan::deserialize(bytes, job_world().size, earlier_run().history.plan);
}

void keep_history(const std::string& learned) noexcept {
  if (job_rules().policy.learn.empty() || learned.empty()) return;
  const Outcome done = attempt([&] {
    const auto kept = profiles::keep_learned(job_rules().policy.learn, learned);
    if (!kept) warn("learn: %s", kept.error().c_str());
  });
  if (!done) warn("learn: '%s': %s", job_rules().policy.learn.c_str(), done.why);
}

}  // namespace latecomer::shim
