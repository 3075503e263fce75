// SPDX-License-Identifier: BSD-3-Clause
// Gives each job a profile name of its own. The folder of snapshots, NAME.parts, is the claim to a name: it appears
// with its first claim file by one rename, so of two jobs only one gets it. Files of a job that may run are never
// touched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "profiles/base/process.hpp"

namespace latecomer::profiles {

/// The identity of a job.
struct JobId {
  std::uint64_t key = 0;  ///< the same on all ranks
  std::string id;         ///< job id of the batch system, or the launcher's process id
  std::string start;      ///< UTC
  std::string host;       ///< host of the process that makes the claim
};

/// The names of the claims in a folder: of `latecomer run`, before the job starts, and of a process of the job.
inline constexpr char kRunClaim[] = "run.claim", kJobClaim[] = "job.claim";

/// The texts in the places of %j, %u, %h, %p and %% in a profile's name.
struct NameParts {
  std::string job, user, host, process, percent = "%";
};
std::string fill_name(const std::string& form, const NameParts& parts);

/// USER or LOGNAME of the environment, else the number of the user. A look-up of the name could wait for a server.
std::string user_name();

/// Makes the missing folders of `path` whose names, in `form`, hold a pattern, and those below them. If one cannot be
/// made, the claim of the name says why.
void make_folders(const std::string& form, const std::string& path);

/// "out.json", "out-2.json", "out-3.json".
std::string numbered(const std::string& output, int number);

/// The state of a folder of snapshots and of its job.
struct FolderState {
  bool exists = false;
  /// Whether the known processes of the job live. `unknown` if any of them is on another host, or if the folder has no
  /// claim.
  Life life = Life::unknown;
  bool snapshots = false;           ///< the folder holds observations of ranks
  bool last_state = false;          ///< the folder holds last_state_name() of a host
  std::vector<std::uint64_t> keys;  ///< job keys of its claims
  std::string job;                  ///< "job 77, process 12 on host0, since 2025-01-01T00:00:00Z"; "": unknown
  bool of(std::uint64_t key) const;
  /// Whether `latecomer recover` finds anything in it.
  bool observed() const { return snapshots || last_state; }
};
FolderState folder_state(const std::string& folder);

struct Claimed {
  std::string output;       ///< the profile's name
  std::string passed_over;  ///< why the job did not get the wanted name: a sentence without a full stop, or ""
};

/// Finds and claims a name: `output`, or the first numbered one that has no profile and no folder of another job.
/// Discards folders of ended jobs that hold no observation. `claim`: kRunClaim or kJobClaim. `replace`: an existing
/// file does not keep `output` from being used. `join`: a folder with this key is taken as it is, wherever its number
/// is.
core::Result<Claimed> claim_output(const std::string& output, const JobId& job, const char* claim, bool replace,
                                   bool join);

/// Makes the job the owner of a name that `latecomer run` claimed with the job's key. Returns false if `run` did not
/// claim it, or if another job has become its owner before.
bool take_over(const std::string& output, const JobId& job);

/// Opens the folder of snapshots and returns its descriptor. Creates it (mode 0700) if it does not exist. Refuses a
/// link, a folder of another user or job, and one to which other users may write.
core::Result<int> open_snapshot_folder(const std::string& folder, const JobId& job);

/// Removes the folder if it is the job's and holds no observation. `whole`: the job has a profile, so a last state does
/// not count.
void leave_snapshot_folder(const std::string& folder, std::uint64_t key, bool whole = false);

/// Removes the folder of a job that has ended, and returns whether it did. `snapshots`: even if it holds observations.
bool discard_ended(const std::string& folder, bool snapshots);

/// Renames the folder of a job that has ended, if it holds observations. Returns its new name, or "". Before that, it
/// discards a folder that has been set aside earlier.
std::string set_aside(const std::string& folder);

}  // namespace latecomer::profiles
