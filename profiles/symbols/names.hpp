// SPDX-License-Identifier: BSD-3-Clause
// Puts the names of functions and lines into a profile, and shortens them for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "profiles/base/progress.hpp"

namespace latecomer::cli {

using Json = nlohmann::ordered_json;

/// Sets function, file and line of every frame, `near` where only the symbol before it is known, and `inlined_into`,
/// the functions around an inlined one. Adds a warning for each module whose lines are unknown, with the remedy.
void resolve_names(Json& profile, Progress::Patience patience);

/// The name of a C++ function without its arguments, template arguments and result: "fe::dot" for
/// "double fe::dot<double>(fe::Vector<double> const&)". The outer scopes of a long name become "...". A procedure of a
/// Fortran module is "module::procedure".
std::string short_name(std::string name);

/// "function (file:line)", or module and offset if the name is unknown. For an inlined function " in " and the function
/// around it follow.
std::string place(const Json& frame);

}  // namespace latecomer::cli
