// SPDX-License-Identifier: BSD-3-Clause
// The observations of a process on disk while the job runs: a killed job loses at most the data after its last epoch.
// The process writes two files in turn, so an interrupted write leaves the other file complete. It uses pwrite and no
// memory mapping: a full or failing file system must not raise a signal in the program.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "profiles/record/claim.hpp"
#include "profiles/record/record.hpp"

namespace latecomer::profiles {

class Spool {
 public:
  /// Uses the files DIRECTORY/rank<N>.a and .b. "": writes nothing. The first write creates the directory if necessary.
  void begin(std::string directory, Rank rank, JobId job);
  bool begun() const { return !directory_.empty(); }
  /// Writes a snapshot. Allocates only if the contribution has grown. If the files cannot be made, later calls do
  /// nothing.
  core::Result<bool> write(const Contribution& mine, std::span<const LiveLog> live);
  /// Removes the files, and the directory if no rank has files in it. Call this after the profile is written.
  void remove();
  const std::string& directory() const { return directory_; }
  /// Whether a snapshot is on disk.
  bool written() const { return serial_ > 0; }
  /// Whether both files existed before the last write.
  bool made() const { return serial_ > 2; }

 private:
  /// Closes and removes the files.
  void close_files(int folder);

  std::string directory_, body_;
  JobId job_;
  ProcessId writer_;
  Rank rank_ = 0;
  int files_[2] = {-1, -1};
  std::uint64_t serial_ = 0;
  bool failed_ = false;
};

struct Recovered {
  std::vector<Contribution> parts;    ///< of one job: the newest snapshot of each rank, by ascending rank
  std::vector<std::string> problems;  ///< files that could not be used, with the reason
};

/// Reads the snapshots in a directory. If they come from several jobs, takes those of the job that started last.
core::Result<Recovered> read_spool(const std::string& directory);

}  // namespace latecomer::profiles
