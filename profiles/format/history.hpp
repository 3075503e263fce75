// SPDX-License-Identifier: BSD-3-Clause
// What one run learned, for the next: the winners of its call sites. It is a part of the profile, and the content of
// the file of the policy key `learn`. This file must not decide anything.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/learning/learner.hpp"
#include "profiles/record/record.hpp"

namespace latecomer::profiles {

/// The properties that must be equal in the run that learned and in the run that uses its results.
struct Setup {
  std::string program;  ///< name of its file; a profile that the user names may be another program's
  int ranks = 0, hosts = 0;
  std::uint64_t placement = 0;  ///< hash of the host of each rank
  std::string mpi_library;
  std::uint64_t catalogue = 0;  ///< hash of the algorithms of this version
  bool operator==(const Setup&) const = default;
};
/// `hosts`: [ranks], number of each rank's host.
Setup setup_of(const JobInfo& job, const std::vector<int>& hosts);
/// The first difference, in words that follow "it is of"; "" if all properties are equal.
std::string difference(const Setup& learned, const Setup& now, bool other_programs);

/// The results of an earlier run for the communicator of all ranks.
struct History {
  core::Plan plan;                                            ///< of the winners
  std::map<std::string, std::vector<core::Learned>> winners;  ///< by site id; Learned::site is not set
  std::string why_not;                                        ///< why no plan is used; "": one is
  const core::Learned* winner_of(const std::string& id, const core::Signature& signature) const;
};

/// Reads a profile or a file of `learn`. A run with another setup has no plan (`why_not`).
core::Result<History> read_history(const std::string& path, const Setup& now);

/// The winners of a run as JSON. `earlier`: those of sites that this run has not reached stay.
std::string learned_json(const Setup& setup, const std::vector<core::Learned>& learned,
                         const std::vector<core::SlotReport>& seen, const History& earlier);

/// Puts the winners of a run into the file of `learn`, in place of those of an earlier run with the same setup. The
/// file keeps the latest 16 runs, in at most 16 MiB. It is locked meanwhile, and whole at any time. Waits 5 s at most
/// for other jobs. An error leaves the file as it was, and a profile stays as it is.
core::Result<bool> keep_learned(const std::string& path, const std::string& learned);

}  // namespace latecomer::profiles
