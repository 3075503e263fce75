// SPDX-License-Identifier: BSD-3-Clause
// Groups the callers of a site by the frames that they share. A function that serves many callers, such as a wrapper of
// MPI_Allreduce, is one site, and the reports show its callers beneath it.
#pragma once

#include <string>
#include <vector>

#include "profiles/format/reader.hpp"

namespace latecomer::cli {

/// One caller, summed over the ways that lead to it. `figures.ranks` holds the longest awaited ranks only.
struct CallerNode {
  const Json* frame = nullptr;  ///< nullptr: the caller is not known
  analysis::Calls figures;
  std::vector<CallerNode> callers;  ///< its own, longest wait first
};

/// The most callers of one function in the details of a site.
inline constexpr std::size_t kMostCallers = 12;

/// The callers of a site, longest wait first. Empty if the profile knows none.
std::vector<CallerNode> callers_of(const Site& site);

/// The callers that a site serves: the innermost that are several. Wrappers may call each other, so a single caller
/// stands for its own callers. The outermost known callers if there is only one all along.
const std::vector<CallerNode>& served(const std::vector<CallerNode>& callers);

/// Whether these are several callers.
bool serves_many(const std::vector<CallerNode>& callers);

/// The place of a caller.
std::string place_of(const CallerNode& caller);

}  // namespace latecomer::cli
