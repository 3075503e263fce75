// SPDX-License-Identifier: BSD-3-Clause
// What a process has observed so far, on disk while the job runs, so that a killed job loses no more than
// what came after its last epoch. Two files in turn: a write that was cut off leaves the other one whole.
// Written with pwrite, never mapped: a full or failing file system must not become a signal in the program.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "profiles/record.hpp"

namespace latecomer::profiles {

class Spool {
 public:
  /// Files DIRECTORY/rank<N>.a and .b; the directory is made at the first write.
  void begin(std::string directory, Rank rank);
  bool begun() const { return !directory_.empty(); }
  /// Writes a snapshot. Allocates only if the contribution has grown. After a failure it stays off.
  core::Result<bool> write(const Contribution& mine, std::span<const LiveLog> live);
  /// The profile has been written elsewhere: removes the files, and the directory once it is empty.
  void remove();
  const std::string& directory() const { return directory_; }
  /// Both files were there before the last write.
  bool made() const { return serial_ > 2; }

 private:
  std::string directory_, body_;
  Rank rank_ = 0;
  int files_[2] = {-1, -1};
  std::uint64_t serial_ = 0;
  bool failed_ = false;
};

struct Recovered {
  std::vector<Contribution> parts;    ///< of one job, newest snapshot of each rank, ascending ranks
  std::vector<std::string> problems;  ///< files that could not be used, and why
};

/// Reads the snapshots in a directory. If several jobs left some there, the one started last wins.
core::Result<Recovered> read_spool(const std::string& directory);

}  // namespace latecomer::profiles
