// SPDX-License-Identifier: BSD-3-Clause
// Creates and reads files in folders to which other users may write. Every created file is new (O_EXCL, no link is
// followed), so a planted link cannot redirect a write. A finished file replaces its name by a rename. Every file that
// is read is a regular one of the expected owner, so a planted pipe cannot stop a reader.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/types.hpp"
#include "profiles/base/process.hpp"

namespace latecomer::profiles {

using core::Rank;

/// Receives the text of a file piece by piece. The profile of a large job is too large to hold in memory twice.
using Sink = std::function<void(std::string_view)>;

/// Writes to a new file beside `path`, then renames it to `path`. A link called `path` is replaced, not followed.
core::Result<bool> write_file(const std::string& path, const std::function<void(const Sink&)>& produce);
core::Result<bool> write_file(const std::string& path, const std::string& text);

/// Replaces a file after the new one is on disk. If `produce` returns false, with errno, the old file stays.
core::Result<bool> replace_file(const std::string& path, const std::function<bool(const Sink&)>& produce);

/// The bytes of a file that any user may have put into its folder. Accepts a regular file of `owner` with at most
/// `most` bytes. Follows no link, and never waits.
core::Result<std::string> read_placed_file(const std::string& path, uid_t owner, std::size_t most);
/// Derived: the snapshot of a rank that leads communicators of many thousand ranks takes a few GB.
inline constexpr std::size_t kMostSnapshot = std::size_t{64} << 30;

/// Writes a job's profile, flushes it to disk, and gives it the name `path`. Returns the name: where `path` exists, the
/// first free number. `replace`: a file called `path` is replaced.
core::Result<std::string> write_profile_file(const std::string& path, bool replace,
                                             const std::function<void(const Sink&)>& produce);

/// "rank7.a" and "rank7.b": the names of a rank's two snapshots (`which` is 0 or 1).
std::string snapshot_name(Rank rank, int which);
bool is_snapshot_name(std::string_view name);
/// "live-HOST.json": the name of a host's copy of its live state. It lies beside the snapshots.
std::string live_copy_name(const std::string& host);
bool is_live_copy_name(std::string_view name);
/// "last-HOST.json": the name of the last live state of a host, which `latecomer run` or `latecomer relay` keeps for
/// `latecomer recover`.
std::string last_state_name(const std::string& host);
bool is_last_state_name(std::string_view name);

/// The head of a snapshot. In a file that is not written yet, the serial is 0.
struct SnapshotHeader {
  char magic[8];
  std::uint64_t layout, serial, size, checksum;
  ProcessId writer;
  std::int64_t aborted_ns = 0;  ///< time of MPI_Abort since the start of MPI; 0: the process did not call it
};
inline constexpr char kSnapshotMagic[8] = {'l', 'a', 't', 'e', 's', 'p', 'l', '3'};

/// Returns a descriptor of the new, empty file `name` in the folder. Fails with -1 and errno if anything has this name.
/// Async-signal-safe.
int create_snapshot(int folder, const char* name) noexcept;

}  // namespace latecomer::profiles
