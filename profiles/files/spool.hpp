// SPDX-License-Identifier: BSD-3-Clause
// Snapshots: the observations of a process on disk while the job runs, so that a killed job loses only the calls since
// its last snapshot. The process writes two files in turn, so an interrupted write leaves the other file complete. It
// uses pwrite and no memory mapping, because a full or failing file system must not raise a signal in the program.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "profiles/files/claim.hpp"
#include "profiles/record/record.hpp"

namespace latecomer::profiles {

/// The pause after a snapshot: 2,000 times the duration of the write, but from a second to a minute, so that writes
/// take 0.05% of the time. With a shorter pause, a killed job would hardly lose less. With a longer pause, it would
/// lose too much. Derived: of a minute, a write of 30 ms takes 0.05%, and one of 0.6 s takes 1%.
constexpr Nanoseconds pause_after_snapshot(Nanoseconds took) {
  constexpr Nanoseconds kTimes = 2000, kLeast = 1'000'000'000, kMost = 60'000'000'000;
  return took >= kMost / kTimes ? kMost : std::max(kTimes * took, kLeast);
}

class Spool {
 public:
  /// Uses the files DIRECTORY/rank<N>.a and .b. "": writes nothing. The first write creates the directory if necessary.
  void begin(std::string directory, Rank rank, JobId job);
  bool begun() const { return !directory_.empty(); }
  /// Prepares the record that note_abort() writes before the first snapshot: `mine`, which has no call yet.
  void prepare(const Contribution& mine);
  /// Writes a snapshot: of each file, the blocks that have changed since its last write. Allocates only if the
  /// contribution has grown. If the files cannot be made, later calls do nothing.
  core::Result<bool> write(const Contribution& mine, std::span<const LiveLog> live);
  /// Writes into the newest snapshot, or into the prepared record, that the process calls MPI_Abort. `after`: the time
  /// since the start of MPI. A signal handler may call this function after it interrupted any code, malloc and write()
  /// included. So it uses async-signal-safe functions only, no lock, and allocates nothing.
  void note_abort(Nanoseconds after) noexcept;
  /// Removes the files, and the directory if no rank has files in it. Call this after the profile is written.
  void remove();
  const std::string& directory() const { return directory_; }
  /// Whether a snapshot is on disk.
  bool written() const { return serial_ > 0; }
  /// Whether the files existed before the last write.
  bool made() const { return serial_ > 1; }

 private:
  /// Closes and removes the files.
  void close_files(int folder);
  /// Forgets the prepared record.
  void drop_first();
  bool write_changed(int which);

  std::string directory_, body_;
  JobId job_;
  ProcessId writer_;
  Rank rank_ = 0;
  int files_[2] = {-1, -1};
  std::vector<std::uint64_t> blocks_[2];  ///< checksums of the blocks of each file
  std::uint64_t serial_ = 0;
  bool failed_ = false;
  std::atomic<int> newest_{-1};  ///< the file with the last snapshot; -1: none is on disk
  std::string first_;            ///< header and body of the prepared record; "": none
  std::string first_name_;
  int folder_ = -1;  ///< of the prepared record
};

struct Recovered {
  std::vector<Contribution> parts;    ///< of one job: the newest snapshot of each rank, by ascending rank
  std::vector<std::string> problems;  ///< files that could not be used, with the reason
};

/// Reads the snapshots in a directory. If they come from several jobs, takes those of the job that started last.
core::Result<Recovered> read_spool(const std::string& directory);

}  // namespace latecomer::profiles
