// SPDX-License-Identifier: BSD-3-Clause
// A stack frame of a call site, and its place as people read it.
#pragma once

#include <string>
#include <vector>

namespace latecomer::profiles::analysis {

struct NamedFrame {
  struct Name {
    std::string function, file;  ///< "": unknown
    int line = 0;                ///< of `file`
  };
  std::string module, build_id, offset;  ///< `offset`: hexadecimal
  Name name;
  std::vector<Name> inlined_into;  ///< the functions around an inlined one, outwards
};

/// The name of a C++ function without its arguments, template arguments and result: "fe::dot" for
/// "double fe::dot<double>(fe::Vector<double> const&)". The outer scopes of a long name become "...". A procedure of a
/// Fortran module is "module::procedure".
std::string short_name(std::string name);

/// The place of a site, whose innermost frame may be generated code: "generated code from solve (solve.c:7)".
std::string place_of(const std::vector<NamedFrame>& frames);

/// "function (file:line)", or module and offset if the name is unknown. For an inlined function " in " and the function
/// around it follow.
std::string place_of(const NamedFrame& frame);

}  // namespace latecomer::profiles::analysis
