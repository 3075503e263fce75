// SPDX-License-Identifier: BSD-3-Clause
// Each rank's own policy, and the one of rank 0 that all ranks get.
#pragma once

#include <algorithm>
#include <string>

#include "core/policy/policy.hpp"
#include "shim/environment.hpp"
#include "shim/state/post.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

/// A policy that this process reads: from its file or, with `latecomer run --auto`, from its text.
struct OwnPolicy {
  explicit OwnPolicy(const std::string& given);
  std::string text;
  bool good = false;  ///< the policy could be read
  std::string name;   ///< for messages; "": no policy
  std::string error;  ///< why it could not be read
  core::PolicyReport report;
  /// The policy, or nullptr if it is missing or has mistakes.
  const core::Policy* policy() const { return good && report.ok() ? &report.policy : nullptr; }
};

/// Reads the policy once: the file that the environment names, or else the configuration. Else `good` is false.
const OwnPolicy& own_policy(const Environment& environment);
/// Reads the configuration of the site once.
const OwnPolicy& configuration(const Environment& environment);

/// Gives rank 0's policy to every rank.
void share_policy();

/// Notes the rules that name algorithms. The profile compares them at the end with the algorithms that ran.
void note_forced_rules();

/// Gives rank 0's bytes to every rank, in pieces. MPI may send large messages in another way, for which the program may
/// lack the rights.
template <typename Bytes>
void share_bytes(Bytes& bytes) {
  auto size = static_cast<long long>(bytes.size());
  PMPI_Bcast(&size, 1, MPI_LONG_LONG, 0, job_world().comm);
  bytes.resize(static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes)
    PMPI_Bcast(bytes.data() + at, static_cast<int>(std::min(kPieceBytes, bytes.size() - at)), MPI_BYTE, 0,
               job_world().comm);
}

}  // namespace latecomer::shim
