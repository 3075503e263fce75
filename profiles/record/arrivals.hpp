// SPDX-License-Identifier: BSD-3-Clause
// The optional record of single calls: arrivals and exits of all ranks (policy key `record`). Its memory is bounded. A
// full record keeps every second, fourth, ... window of the job's clock, so that it covers the run from start to end
// with whole stretches of consecutive calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "profiles/record/groups.hpp"
#include "profiles/record/site_key.hpp"

namespace latecomer::profiles {

class ArrivalRecord {
 public:
  /// The length of a window. Derived: within a second, a program that loses time in collectives makes many calls.
  static constexpr core::Nanoseconds kWindow = 1'000'000'000;
  /// The most memory of a process. Derived: two million arrivals and exits, which take 60 MB in the profile.
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  /// The properties that calls have in common.
  struct Kind {
    SiteKey key;
    std::uint32_t group = Groups::kOther;
    std::int32_t root = -1;
    std::int64_t bytes = -1;
    std::uint8_t algorithm = 0;  ///< as CallRecord::algorithm
    bool blocking = true;
    auto operator<=>(const Kind&) const = default;
  };
  struct Call {
    const Kind& kind;
    std::span<const core::Nanoseconds> arrivals, exits;  ///< [comm_size]; exit 0: unknown
  };

  /// Begins to record. `most`: memory in bytes.
  void start(std::size_t most) { data_.most = most; }
  /// Adds a call; both times: [comm_size]. Thins the record if it is full.
  void add(const Kind& kind, std::span<const core::Nanoseconds> arrivals, std::span<const core::Nanoseconds> exits);
  /// Adds the calls of another record. group_here[g]: the index in this record of the other record's group g.
  void merge(const ArrivalRecord& other, std::span<const std::uint32_t> group_here);

  void each(const std::function<void(const Call&)>& f) const;

  /// The whole content as plain data.
  struct Data {
    std::uint64_t most = 0;   ///< bytes of memory; 0: records nothing
    std::int64_t stride = 1;  ///< windows are kept whose number is a multiple of the stride
    std::uint64_t seen = 0;
    std::vector<Kind> kinds;
    std::vector<std::uint32_t> calls;      ///< index in `kinds`
    std::vector<core::Nanoseconds> times;  ///< per call: [comm_size] arrivals, then [comm_size] exits
  };
  const Data& data() const { return data_; }
  /// Replaces the content. Returns false, and leaves the record empty, if its parts do not fit together. `groups`:
  /// number of groups.
  bool restore(Data data, std::size_t groups);

 private:
  std::uint32_t index_of(const Kind& kind);
  void widen(std::int64_t stride);
  void take(const Data& from, const std::function<std::uint32_t(std::uint32_t)>& group_here);
  bool keeps(core::Nanoseconds first) const { return first / kWindow % data_.stride == 0; }
  bool several_windows() const { return last_ / kWindow - first_ / kWindow >= data_.stride; }
  std::size_t bytes() const;

  Data data_;
  std::map<Kind, std::uint32_t> index_;                     // of data_.kinds
  core::Nanoseconds first_ = INT64_MAX, last_ = INT64_MIN;  // of the first arrivals of the kept calls
};

}  // namespace latecomer::profiles
