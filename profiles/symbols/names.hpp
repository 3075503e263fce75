// SPDX-License-Identifier: BSD-3-Clause
// Puts the names of functions and lines into a profile.
#pragma once

#include <nlohmann/json.hpp>

#include "profiles/analysis/frame.hpp"
#include "profiles/base/progress.hpp"

namespace latecomer::profiles {

using Json = nlohmann::ordered_json;

/// Sets function, file and line of every frame that lacks one of them, and `inlined_into`, the functions around an
/// inlined one. A name stays where the module does not tell more. Adds a
/// warning for each module whose lines are unknown, with the remedy, in the place of those of an earlier look. Returns
/// whether a frame has changed.
bool resolve_names(Json& profile, Progress::Patience patience);

/// A frame of a profile as the schema has it, and back.
analysis::NamedFrame frame_of(const Json& frame);
Json frame_json(const analysis::NamedFrame& frame);

}  // namespace latecomer::profiles
