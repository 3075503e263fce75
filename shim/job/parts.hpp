// SPDX-License-Identifier: BSD-3-Clause
// What the files of this folder have from each other. Others include shim/state/job.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "shim/state/job.hpp"

namespace latecomer::shim {

// read_text.cpp

/// The whole text of a file; `good`: it could be read.
std::string read_text(const std::string& path, bool& good);

// policy.cpp

/// The policy as this process reads it: its file or, as `latecomer run --auto` gives it, its text.
struct OwnPolicy {
  std::string text;
  bool good = false;  ///< could be read
  core::PolicyReport report;
  /// Nothing where there is none, or none that may be used.
  const core::Policy* policy() const { return good && report.ok() ? &report.policy : nullptr; }
};

/// Read once. Without a policy: not good.
const OwnPolicy& own_policy(const Environment& environment);

/// The policy of rank 0 on every rank.
void share_policy(Job& j);

/// What the profile compares at the end with what ran.
void note_forced_rules(Job& j);

/// Rank 0's bytes on every rank.
template <typename Bytes>
void share(const Job& j, Bytes& bytes) {
  auto size = static_cast<long long>(bytes.size());
  PMPI_Bcast(&size, 1, MPI_LONG_LONG, 0, j.comm);
  bytes.resize(static_cast<std::size_t>(size));
  PMPI_Bcast(bytes.data(), static_cast<int>(size), MPI_BYTE, 0, j.comm);
}

// history.cpp

/// An earlier run's plan to every rank; its arrival patterns stay with rank 0, which leads MPI_COMM_WORLD.
void share_history(Job& j);

// network.cpp

/// "network": "measure": rank 0's figures on every rank.
void measure_network(Job& j);

// hosts.cpp

/// The kernel and its time namespace: processes that share both read one clock.
std::uint64_t clock_domain();

/// Hosts of all ranks: whether cores are shared, and the clocks.
void survey_hosts(Job& j);

// output.cpp

/// The profile's path as asked for: names filled in, absolute (programs change their directory).
std::string output_path(const Job& j);

// contribution.cpp

/// The head of the profile, as far as it is known at start.
void describe_job(Job& j);

/// Takes over the frames of sites that are new. The caller holds the lock.
void take_frames(Job& j);

/// Brings this process's contribution up to date. The caller holds the lock.
void refresh(Job& j, bool finished);

// snapshots.cpp

/// Writes a snapshot, live logs included. The caller holds the lock.
bool write_spool(Job& j, bool finished);

// gather.cpp

/// Everybody's share to rank 0, which writes the profile. False if a rank died before that.
bool gather_profile(Job& j);

// teardown.cpp

/// From here on MPI_Finalize ends the job: it deletes an attribute of MPI_COMM_SELF.
void set_end(Job&);

/// Maybe from a signal's handler: what this thread or another was in the middle of is left alone, and the last snapshot
/// stands.
void before_abort() noexcept;

// thread_level.cpp

/// The thread level that the program was told, where MPI grants more: the engine's. -1: what MPI says.
extern int told_level;

/// Before MPI is started: whether the policy asks for an engine. It comes from rank 0 later; a rank that cannot read it
/// here does without, and then all do.
bool engine_wanted();

/// The level that MPI_Init stands for.
int default_level();

// roll_call.cpp

/// Confirms, beside MPI's communication, that every rank of MPI_COMM_WORLD runs this library build.
/// All ranks get the same answer. Local calls only (MPI_Publish_name, MPI_Lookup_name).
bool roll_call(int rank, int size, double timeout_s);

// start.cpp

/// After a successful MPI_Init or MPI_Init_thread: meets the other ranks.
void start_job();

/// A session that was begun without MPI_Init. There is no MPI_COMM_WORLD, but its process set knows us.
void start_session(MPI_Session session);

}  // namespace latecomer::shim
