// SPDX-License-Identifier: BSD-3-Clause
// Creates and reads files in folders to which other users may write. Every created file is new (O_EXCL, no link is
// followed), so a planted link cannot redirect a write. A finished file replaces its name by a rename. Every file that
// is read is a regular one of the expected owner, so a planted pipe cannot stop a reader.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::profiles {

using core::Rank;

/// Takes a file piece by piece. The profile of a large job is too large to hold in memory twice.
using Sink = std::function<void(std::string_view)>;

/// Writes to a new file beside `path`, then renames it to `path`. A link called `path` is replaced, not followed.
core::Result<bool> write_file(const std::string& path, const std::function<void(const Sink&)>& produce);
core::Result<bool> write_file(const std::string& path, const std::string& text);

/// The bytes of a file that any user may have put into its folder. Accepts a regular file of `owner` with at most
/// `most` bytes. Follows no link, and never waits.
core::Result<std::string> read_placed_file(const std::string& path, uid_t owner, std::size_t most);
/// Derived: the snapshot of a rank that leads communicators of many thousand ranks takes a few GB.
inline constexpr std::size_t kMostSnapshot = std::size_t{64} << 30;

/// "rank7.a" and "rank7.b": the names of a rank's two snapshots (`which` is 0 or 1).
std::string snapshot_name(Rank rank, int which);
bool is_snapshot_name(std::string_view name);
/// "live-HOST.json": the name of a host's copy of its live state. It lies beside the snapshots.
std::string live_copy_name(const std::string& host);
bool is_live_copy_name(std::string_view name);

/// Opens the folder of snapshots and returns its descriptor. Creates the folder (mode 0700) if it does not exist.
/// Accepts an existing folder only if this user owns it, no other user may write to it, and it holds only snapshots
/// and copies of the live state.
/// All ranks of a job may call this at the same time, also from several hosts that share the folder.
core::Result<int> open_snapshot_folder(const std::string& path);

/// Returns a descriptor of the new, empty file `name` in the folder. Removes a file or link of that name first.
core::Result<int> create_snapshot(int folder, const std::string& name);

/// Removes the snapshots of an earlier job from the folder at `path`, then the folder if it is empty.
core::Result<bool> remove_snapshots(const std::string& path);

}  // namespace latecomer::profiles
