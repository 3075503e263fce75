// SPDX-License-Identifier: BSD-3-Clause
// Gathers the contributions of all ranks at the end.
#pragma once

namespace latecomer::shim {

enum class Gathered {
  whole,   ///< the profile is written, with the parts of all ranks
  partly,  ///< a rank could not make its part, or rank 0 could not write the profile; all ranks know it
  cut      ///< a rank ended before
};
/// Sends all contributions to rank 0, which writes the profile. Collective over the ranks of the job. A rank that fails
/// says so, and the others go on. Unless the result is `whole`, every rank still has its own contribution.
Gathered gather_profile() noexcept;

}  // namespace latecomer::shim
