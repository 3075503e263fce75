// SPDX-License-Identifier: BSD-3-Clause
// Writes the callers of a site: the same counts as for the site, split by the frames above it. A function that serves
// many callers, such as a program's own wrapper of MPI_Allreduce, is one site, and its users ask for the caller.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "profiles/record/record.hpp"

namespace latecomer::profiles {

/// The frame as a profile shows it. Names are null unless the process knew them.
nlohmann::ordered_json frame_json(const Frame& frame);
/// The payload of the calls; null: not known.
nlohmann::ordered_json bytes_json(const LocalSite& own);
/// The means of sampled intervals, and their number.
nlohmann::ordered_json intervals_json(const Intervals& intervals);
/// Adds the key `waits_for`, longest wait first, with times divided by `by`; nothing if no rank is known.
void add_peers(nlohmann::ordered_json& out, const Peers& peers, double by);

/// The data of one caller, summed over ranks.
struct Caller {
  const std::vector<Frame*>* frames = nullptr;  ///< nullptr: calls whose caller is not known
  LocalSite own;
  const PatternSite* pattern = nullptr;      ///< nullptr: no call with records of all ranks
  std::map<std::int32_t, Intervals> before;  ///< by row of ranks
  std::uint64_t calls = 0;                   ///< of all ranks together, each operation once
  double waited_ns() const;
};

/// The value of the profile's key `callers`, longest wait first. `per_row`: the number of ranks that share a row.
nlohmann::ordered_json callers_json(std::vector<Caller> callers, int per_row);

}  // namespace latecomer::profiles
