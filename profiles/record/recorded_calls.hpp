// SPDX-License-Identifier: BSD-3-Clause
// The record of arrivals in a profile: each recorded call with the waits of its ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/collective/collective.hpp"

namespace latecomer::profiles {

/// One recorded collective. Times are nanoseconds since the earliest recorded arrival. The vectors go by the position
/// in the communicator.
struct RecordedCall {
  std::size_t site = 0;  ///< its place in the file
  core::Collective op = core::Collective::barrier;
  std::size_t group = 0;  ///< index in RecordedArrivals::groups
  std::string algorithm;
  core::Bytes bytes = -1;  ///< -1: unknown
  core::Rank root = -1;
  bool blocking = true;
  std::uint64_t number = 0;                        ///< on MPI_COMM_WORLD, in a sample
  std::vector<core::Nanoseconds> arrivals, exits;  ///< an exit of -1 is unknown
  std::vector<std::int32_t> awaited;               ///< the position that it waited for; -1: it did not wait
  std::vector<core::Nanoseconds> wait_ends;
  core::Nanoseconds last = 0;  ///< the last arrival
};

/// One rank in one call.
struct Visit {
  std::uint32_t call, position;
  bool nested;  ///< it overlaps no earlier visit of the rank, so slices of one track can show it
};

struct RecordedArrivals {
  std::vector<std::vector<core::Rank>> groups;  ///< ranks of MPI_COMM_WORLD in the order of the communicator
  std::vector<RecordedCall> calls;              ///< by ascending first arrival
  std::vector<std::vector<Visit>> ranks;        ///< [ranks of the job], by ascending arrival
  std::vector<std::string> site_ids;            ///< of the profile's sites, in the order of the file
  double window_ns = 0, stride = 1;             ///< as in the profile
  std::uint64_t sample = 0;                     ///< calls of a stretch; 0: the record is no sample of MPI_COMM_WORLD
  std::uint64_t calls_of_job = 0;               ///< with records of all ranks; of a sample: on MPI_COMM_WORLD
  std::uint64_t left_out = 0;  ///< events of folded sites, or of groups whose members the profile does not name
};

/// The part of the record that a call belongs to. Calls of different parts do not follow each other.
std::int64_t part_of(const RecordedArrivals& record, const RecordedCall& call);

}  // namespace latecomer::profiles
