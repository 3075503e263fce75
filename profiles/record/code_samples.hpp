// SPDX-License-Identifier: BSD-3-Clause
// Which code a process ran before its calls that may wait: samples of the functions, and the times between two calls of
// the thread that started MPI. This file must not know how a rank takes samples.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/text.hpp"
#include "profiles/record/lengths.hpp"
#include "profiles/record/site_key.hpp"
#include "profiles/record/timed_site.hpp"

namespace latecomer::profiles {

/// A call site in the form of its `id` in the profile; 0: not known.
inline std::uint64_t call_id(const TimedKey& key) { return key.site == 0 ? 0 : core::mix64(key.site + key.call); }
inline std::uint64_t call_id(const SiteKey& key) { return key.site == 0 ? 0 : key.number(); }

/// Code before a call.
struct CodeKey {
  std::uint64_t place = 0;       ///< Frame::site of a CodePlace; 0: samples that found no place in the table
  std::uint64_t next = 0;        ///< the next call that may wait
  std::uint64_t collective = 0;  ///< the blocking collective that comes next
  std::uint8_t others = 0;       ///< 1: samples of other threads than the one that started MPI
  auto operator<=>(const CodeKey&) const = default;
  static auto members(auto& k) { return std::tie(k.place, k.next, k.collective, k.others); }
};
struct CodeSamples {
  CodeKey key;
  std::uint64_t samples = 0;
};

/// The time from the exit of a call to the entry of the next one. Short ones are not counted.
struct StretchKey {
  std::uint64_t from = 0, to = 0;  ///< the calls at both ends
  std::uint64_t collective = 0;    ///< the blocking collective that comes next
  auto operator<=>(const StretchKey&) const = default;
  static auto members(auto& k) { return std::tie(k.from, k.to, k.collective); }
};
struct StretchSums {
  std::uint64_t stretches = 0;
  Nanoseconds time = 0;
  void merge(const StretchSums& o) {
    stretches += o.stretches;
    time = plus(time, o.time);
  }
};
struct Stretch {
  StretchKey key;
  StretchSums sums;
};

/// How a process took samples.
struct Sampling {
  double hz = 0;            ///< of the processor time of the thread in the program; 0: there are no samples
  std::uint64_t taken = 0;  ///< outside calls that may wait
  std::uint64_t lost = 0;   ///< that found no place in memory
  std::string why_not;      ///< why the rank takes no samples, a part of a sentence; "": the policy wants none
  /// Of other threads that compute: how many had samples at the same time, and as above, for each thread.
  std::uint32_t others = 0;
  double others_hz = 0;
  std::uint64_t others_taken = 0, others_lost = 0;
  std::string others_why_not;  ///< why some of them have none; "": they compute too little, or end before the next call
  static auto members(auto& s) {
    return std::tie(s.hz, s.taken, s.lost, s.why_not, s.others, s.others_hz, s.others_taken, s.others_lost,
                    s.others_why_not);
  }
};

/// The code of all ranks, by row of ranks. Beyond the limit, the places with the least samples count for the whole
/// function, then for no function.
struct CodeOfRanks {
  /// Derived: a row takes 60 bytes in a map, so both take 16 MiB per merged part.
  static constexpr std::size_t kMostRows = std::size_t{1} << 17;

  std::map<CodeKey, std::map<std::int32_t, std::uint64_t>> samples;
  std::map<StretchKey, std::map<std::int32_t, StretchSums>> stretches;

  /// By place: that of the whole function.
  std::map<std::uint64_t, std::uint64_t> whole;

  void add(const std::vector<CodeSamples>& code, const std::vector<Stretch>& between, std::int32_t row);
  void merge(const CodeOfRanks& other);
  static auto members(auto& c) { return std::tie(c.samples, c.stretches, c.whole); }

 private:
  void limit();
};

}  // namespace latecomer::profiles
