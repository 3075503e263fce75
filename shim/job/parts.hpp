// SPDX-License-Identifier: BSD-3-Clause
// Declarations that the files of this folder share. Other folders include shim/state/job.hpp.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "shim/state/job.hpp"
#include "shim/state/post.hpp"

namespace latecomer::shim {

// policy.cpp

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

/// Reads the policy once: that of the environment, or else the configuration. Without either, `good` is false.
const OwnPolicy& own_policy(const Environment& environment);
/// Reads the configuration of the site once.
const OwnPolicy& configuration(const Environment& environment);

/// Gives rank 0's policy to every rank.
void share_policy(Job& j);

/// Notes the rules that name algorithms. The profile compares them at the end with the algorithms that ran.
void note_forced_rules(Job& j);

/// Gives rank 0's bytes to every rank, in pieces: MPI may have another way for large messages, which the program may
/// not be able to take.
template <typename Bytes>
void share(const Job& j, Bytes& bytes) {
  auto size = static_cast<long long>(bytes.size());
  PMPI_Bcast(&size, 1, MPI_LONG_LONG, 0, j.comm);
  bytes.resize(static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes)
    PMPI_Bcast(bytes.data() + at, static_cast<int>(std::min(kPieceBytes, bytes.size() - at)), MPI_BYTE, 0, j.comm);
}

// history.cpp

/// Gives an earlier run's plan to every rank. Its arrival patterns stay on rank 0, the leader of MPI_COMM_WORLD.
void share_history(Job& j);

/// Rank 0: puts what this run has learned into the file of the policy key `learn`.
void keep_history(Job& j, const std::string& learned) noexcept;

// network.cpp

/// For "network": "measure": measures on rank 0 and gives the figures to every rank.
void measure_network(Job& j);

/// In mode observe, if no figures are known: measures when the profile is on disk, and adds the figures to it. Takes at
/// most a hundredth of the time of the run; nothing if that is too short. Collective over the ranks of the job, which
/// are all there (Gathered::whole).
void measure_network_for_profile(Job& j) noexcept;

// hosts.cpp

/// Identifies the kernel and its time namespace. Processes that share both read one clock.
std::uint64_t clock_domain();

/// The cores that this process may use; all of the host's if the kernel does not say.
cpu_set_t own_cores();
/// Their numbers, such as "0-3,8".
std::string core_list(const cpu_set_t& cores);

/// Compares the hosts of all ranks: which ranks share cores, and which share clocks.
void survey_hosts(Job& j);

// output.cpp

/// The path as it is now: programs change their directory.
std::string absolute_path(const std::string& path);

/// The id of the batch job, or the launcher's process id.
std::string job_id();

/// Equal on all ranks that one launcher has started, as far as they can know it without communication: on several hosts
/// only with PMIx or under Slurm. Different in other jobs.
std::uint64_t job_signature();

/// Fills in Job::id, as far as this process knows its job. Ranks of a job have equal keys if they know a batch job's
/// step or have the same launcher.
void identify_job(Job& j);

/// Chooses the profile's name on rank 0 and gives it to every rank. Starts the spool.
void share_output(Job& j);

/// The same for a process that observes alone. Ranks with equal keys choose alike without communication. `suffix` is
/// added to the name. Does nothing if a name is chosen already.
void choose_output_alone(Job& j, const std::string& suffix);

/// After the spool has ended: gives the name free if the job has left no snapshot.
void release_output(Job& j);

// contribution.cpp

/// Fills the head of the profile as far as it is known at start.
void describe_job(Job& j);

/// Takes over the frames of new sites. The caller holds the lock.
void take_frames(Job& j);

/// Takes over the texts of new warnings.
void take_warnings(Job& j);

/// Brings this process's contribution up to date. The caller holds the lock.
void refresh(Job& j, bool finished);

// snapshots.cpp

/// When the job has started: from now on, MPI calls write snapshots.
void begin_snapshots(Job& j);

/// Writes a snapshot with live logs. The caller holds the lock.
bool write_snapshot(Job& j, bool finished);

/// Before MPI_Abort, which may come from a signal handler that interrupted anything: malloc, this library, or another
/// thread's snapshot. Ends observation, and says in the last snapshot that the process aborted. The calls since then
/// are lost. Async-signal-safe, without memory and locks (Spool::note_abort).
void before_abort() noexcept;

// prometheus.cpp

/// Sets the path of the file.
void begin_prometheus(Job& j);
/// Writes the figures of the calls that this process has matched as a leader, if the policy asks for them. The caller
/// holds the lock.
void write_prometheus(Job& j);
/// At the end of the job.
void remove_prometheus(Job& j);

// gather.cpp

enum class Gathered {
  whole,   ///< the profile is written, with the parts of all ranks
  partly,  ///< a rank could not make its part, or rank 0 could not write the profile; all ranks know it
  cut      ///< a rank ended before
};
/// Sends all contributions to rank 0, which writes the profile. Collective over the ranks of the job. A rank that fails
/// says so, and the others go on. Unless the result is `whole`, every rank still has its own contribution.
Gathered gather_profile(Job& j) noexcept;

// teardown.cpp

/// Sets an attribute of MPI_COMM_SELF, so that MPI_Finalize ends the job.
void set_end(Job&);

// thread_level.cpp

/// The thread level that the program was told, if MPI grants more for the engine. -1: MPI's own answer.
extern int told_level;

/// Whether the policy asks for an engine. Called before MPI starts, so each rank reads the policy itself. If a rank
/// cannot read it, no rank has an engine.
bool engine_wanted() noexcept;

/// The thread level that MPI_Init implies.
int default_level();

// start.cpp

/// Called around MPI_Init: a call inside it is no sign that MPI has started unseen.
void expect_start(bool begins);

/// Meets the other ranks. Call it after a successful MPI_Init or MPI_Init_thread.
void start_job() noexcept;

/// Starts observation in a session without MPI_Init. MPI_COMM_WORLD does not exist, but its process set contains this
/// rank.
#if MPI_VERSION >= 4
void start_session(MPI_Session session) noexcept;
#endif

// entries.cpp

/// The functions of latecomer.h, behind the front.
void say_edge(double fraction);
int flush();

}  // namespace latecomer::shim
