// SPDX-License-Identifier: BSD-3-Clause
// The name of the profile, and the identity of the job that claims it.
#pragma once

#include <cstdint>
#include <string>

namespace latecomer::shim {

/// The path as it is now: programs change their directory.
std::string absolute_path(const std::string& path);

/// The id of the batch job, or the launcher's process id.
std::string job_id();

/// Equal on all ranks that one launcher has started, as far as they can know it without communication: on several hosts
/// only with PMIx or under Slurm. Different in other jobs.
std::uint64_t job_signature();

/// Fills in JobOutput::id, as far as this process knows its job. Ranks of a job have equal keys if they know a batch
/// job's step or have the same launcher.
void identify_job();

/// Chooses the profile's name on rank 0 and gives it to every rank. Starts the spool.
void share_output();

/// Chooses the name in a process that observes alone. Ranks with equal keys choose the same name. `suffix` is
/// added to the name. Does nothing if a name is chosen already.
void choose_output_alone(const std::string& suffix);

/// After the spool has ended: gives the name free if the job has left no snapshot.
void release_output();

}  // namespace latecomer::shim
