// SPDX-License-Identifier: BSD-3-Clause
// The identity of a row of the report.
#pragma once

#include <cstdint>
#include <string>

#include "core/collective/collective.hpp"

namespace latecomer::profiles {

/// A row of the report: one place in the program, one collective, one communicator size.
struct SiteKey {
  std::uint64_t site = 0;
  core::Collective op = core::Collective::barrier;
  std::int32_t comm_size = 0;
  /// Hash of the frames above the site. It splits the counts of a site by caller. Plans, ids and policies ignore it. 0:
  /// the callers are not known.
  std::uint32_t callers = 0;
  auto operator<=>(const SiteKey&) const = default;
  SiteKey site_only() const { return {site, op, comm_size}; }
  /// 16 hexadecimal digits, the same on every rank and in every run of the same binaries.
  std::string id() const;
  std::uint64_t number() const;  ///< the id as a number
};

}  // namespace latecomer::profiles
