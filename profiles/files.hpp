// SPDX-License-Identifier: BSD-3-Clause
// Creating files in folders where other users may write. Every file is new (O_EXCL, no link is followed), so a planted
// link never leads a write elsewhere; a finished file replaces its name by a rename.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::profiles {

using core::Rank;

/// Takes a file piece by piece: at scale it is larger than anybody should hold twice.
using Sink = std::function<void(std::string_view)>;

/// Writes to a new file beside `path`, then renames it to `path`. A link called `path` is replaced, not followed.
core::Result<bool> write_file(const std::string& path, const std::function<void(const Sink&)>& produce);
core::Result<bool> write_file(const std::string& path, const std::string& text);

/// "rank7.a" and "rank7.b": the names of a rank's two snapshots (`which` is 0 or 1).
std::string snapshot_name(Rank rank, int which);
bool is_snapshot_name(std::string_view name);

/// A descriptor of the folder of snapshots, which is made (mode 0700) if it is not there. An existing folder is taken
/// only if it is this user's, nobody else may write to it, and it holds nothing but snapshots. Every rank of a job may
/// call this at the same time, on hosts that share the folder.
core::Result<int> open_snapshot_folder(const std::string& path);

/// A descriptor of the new, empty file `name` in the folder; a file or link of that name is removed first.
core::Result<int> create_snapshot(int folder, const std::string& name);

/// Removes the snapshots of an earlier job in the folder at `path`, and the folder if nothing else is in it.
core::Result<bool> remove_snapshots(const std::string& path);

}  // namespace latecomer::profiles
