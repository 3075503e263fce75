// SPDX-License-Identifier: BSD-3-Clause
// The place of a job's profile, as `latecomer run` knows it. This file finds the profile and its snapshots. It must
// neither start the job nor read a profile.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <map>
#include <string>
#include <utility>

namespace latecomer::cli {

/// This process knows `%j` of the form. Only rank 0 knows `%p` and `%h`, so a pattern finds these files.
class Output {
 public:
  /// `form`: the value of --output; "": latecomer.%j.json, with a number where that exists.
  explicit Output(std::string form);

  /// As LATECOMER_OUTPUT.
  const std::string& for_ranks() const { return for_ranks_; }
  /// Throws BadUsage if the profile cannot be written, or if something would be lost.
  void prepare(bool overwrite, bool force) const;
  /// A file that this job has written, or "".
  std::string written() const;
  /// A folder of snapshots of this job, without ".parts", or "".
  std::string left() const;

 private:
  using State = std::pair<ino_t, std::pair<std::time_t, long>>;
  static State state(const std::string& path);
  std::string parts() const { return here_ + ".parts"; }
  bool taken() const;

  std::string for_ranks_;  ///< as LATECOMER_OUTPUT
  std::string anywhere_;   ///< "*" for what rank 0 fills in
  std::string here_;       ///< the same, if rank 0 is on this host
  bool has_process_ = false;
  std::map<std::string, State> before_;
};

}  // namespace latecomer::cli
