// SPDX-License-Identifier: BSD-3-Clause
// Shares the plan and the patterns of an earlier run, and keeps this run's for the next.
#include "shim/job/history.hpp"

#include <sys/stat.h>

#include "shim/guard.hpp"
#include "shim/job/output.hpp"
#include "shim/job/policy.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {
namespace {

/// The file of `learn` if it holds something, else that of `history`.
std::string file_to_read(const core::Policy& policy) {
  struct stat there {};
  const bool learned = !policy.learn.empty() && stat(policy.learn.c_str(), &there) == 0 && there.st_size > 0;
  return learned ? policy.learn : policy.history;
}

}  // namespace

void share_history(Job& j) {
  std::vector<char> bytes;
  if (j.rank == 0) {
    profiles::HistoryUse& use = j.mine.job.history;
    j.policy.learn = absolute_path(j.policy.learn);
    const std::string file = file_to_read(j.policy);
    // The other ranks wait for the bytes, whatever the file does to this rank.
    const Outcome done = attempt([&] {
      use.file = file.empty() ? j.policy.learn : file;
      use.why_not = file.empty() ? "it does not exist yet" : "it cannot be read";
      if (file.empty()) return;
      auto read = profiles::read_history(file, profiles::setup_of(j.mine.job, j.hosts));
      if (read) {
        j.history = std::move(*read);
        use.why_not = j.history.why_not;
      } else warn("%s", read.error().c_str());
      bytes = j.history.plan.serialize();
    });
    if (!done) {
      warn("history: '%s': %s", file.c_str(), done.why);
      j.history = {};
      bytes.clear();
    }
    if (!use.why_not.empty()) say(1, "no plan of '%s' is used: %s", use.file.c_str(), use.why_not.c_str());
  }
  share(j, bytes);
  if (j.rank != 0) core::Plan::deserialize(bytes, j.size, j.history.plan);
}

void keep_history(Job& j, const std::string& learned) noexcept {
  if (j.policy.learn.empty() || learned.empty()) return;
  const Outcome done = attempt([&] {
    const auto kept = profiles::keep_learned(j.policy.learn, learned);
    if (!kept) warn("learn: %s", kept.error().c_str());
  });
  if (!done) warn("learn: '%s': %s", j.policy.learn.c_str(), done.why);
}

}  // namespace latecomer::shim
