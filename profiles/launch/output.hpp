// SPDX-License-Identifier: BSD-3-Clause
// The place of a job's profile, as `latecomer run` knows it: claims its name before the job, and finds the profile and
// the snapshots after it. This file must not start the job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace latecomer::profiles {

/// This process knows `%j` and `%u` of the form. Only rank 0 knows `%p` and `%h`, so rank 0 claims names with these,
/// and a pattern finds the files.
class Output {
 public:
  /// `form`: the value of --output; "": latecomer.%j.json.
  explicit Output(std::string form);
  /// Gives the name free if the job has left nothing.
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Claims the name, prints where the profile goes if that is not the wanted name and not `quiet`, and tells the ranks
  /// through their environment. A profile that cannot be written is an error only if `strict`.
  void claim(bool overwrite, bool strict, bool quiet);
  /// The file that this job has written, or "".
  std::string written() const;
  /// A folder with snapshots of this job, without ".parts", or "".
  std::string left() const;
  /// Whether a rank has called MPI_Init, as far as the folder says it.
  bool began() const;
  std::uint64_t key() const { return key_; }
  /// The user knows that no profile can be written.
  bool lost() const { return lost_; }

 private:
  std::vector<std::string> found(const std::string& ending) const;

  std::string job_, form_;
  std::string for_ranks_;  ///< as LATECOMER_OUTPUT
  std::string pattern_;    ///< "*" for the parts that rank 0 fills in
  std::string here_;       ///< the name, if rank 0 fills in nothing
  std::string aside_;      ///< snapshots of an earlier job that this one replaces
  std::uint64_t key_ = 0;  ///< of the job
  bool claimed_ = false, lost_ = false;
};

}  // namespace latecomer::profiles
