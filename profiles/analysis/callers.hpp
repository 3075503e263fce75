// SPDX-License-Identifier: BSD-3-Clause
// Groups the callers of a site by the frames that they share. A function that serves many callers, such as a wrapper of
// MPI_Allreduce, is one site, and the reports show its callers beneath it.
#pragma once

#include <string>
#include <vector>

#include "profiles/analysis/profile.hpp"

namespace latecomer::profiles::analysis {

/// One caller, summed over the ways that lead to it. `figures.ranks` holds the longest awaited ranks only.
struct CallerNode {
  const NamedFrame* frame = nullptr;  ///< nullptr: the caller is not known
  CallFigures figures;
  std::vector<CallerNode> callers;  ///< callers of this caller, longest wait first

  std::string place() const { return frame ? analysis::place_of(*frame) : "other callers"; }
};

/// The most callers of one function in the details of a site.
inline constexpr std::size_t kMostCallers = 12;

/// The callers of a site, longest wait first. Empty if the profile names none. The result refers to the site.
std::vector<CallerNode> callers_of(const Site& site);

/// The callers that a site serves: the innermost level that has several callers. Wrappers may call each other, so a
/// level with a single caller is passed over. If each level has a single caller, the outermost one.
const std::vector<CallerNode>& served(const std::vector<CallerNode>& callers);

/// Whether these are several callers.
bool serves_many(const std::vector<CallerNode>& callers);

}  // namespace latecomer::profiles::analysis
