// SPDX-License-Identifier: BSD-3-Clause
// The present state of a process in shared memory of its host: one file per process, which the process writes with
// plain stores and `latecomer who` reads. The file may hold values of two moments, so a reader looks twice.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiles/base/process.hpp"

namespace latecomer::profiles {

/// One cache line: the last collective of the process on a communicator of several ranks.
struct alignas(64) LiveLine {
  std::atomic<std::uint64_t> communicator{0};  ///< identity, equal on all members; 0: not agreed yet
  std::atomic<std::uint64_t> n{0};             ///< call number on the communicator
  std::atomic<std::uint64_t> site{0};
  std::atomic<std::int64_t> bytes{-1};  ///< -1: not known on every rank
  std::atomic<std::int64_t> since{0};   ///< CLOCK_MONOTONIC of its arrival, or of its exit, in ns
  std::atomic<std::int64_t> message{
      0};  ///< CLOCK_MONOTONIC of the begin of a blocking call that is no collective; 0: none
  std::atomic<std::int32_t> root{-1};
  std::atomic<std::int32_t> comm_size{0};
  std::atomic<std::uint8_t> op{0};
  std::atomic<std::uint8_t> inside{0};            ///< 1: in this collective; 0: outside since its end; kFinalizing
  static constexpr std::uint8_t kFinalizing = 2;  ///< in MPI_Finalize
};
static_assert(sizeof(LiveLine) == 64 && std::atomic<std::int64_t>::is_always_lock_free);

/// A second line: the last blocking call that was no collective. LiveLine::message says whether the process is inside.
struct alignas(64) LiveMessage {
  std::atomic<std::uint64_t> site{0};  ///< 0: not known
  std::atomic<std::uint32_t> call{0};  ///< in kMpiCalls
  std::atomic<std::int32_t> peer{-1};  ///< in MPI_COMM_WORLD; kAnyRank; other negative numbers: none, or not known
  std::atomic<std::int32_t> tag{-1};   ///< negative: none, any, or not known
  static constexpr int kAnyRank = -2;
};

struct LiveFrame {
  std::uint64_t site, offset;
  char module[240];
};

struct LiveFile {
  static constexpr std::uint32_t kVersion = 4;
  static constexpr int kFrames = 128;  ///< 32 KiB; further sites have no name in `who`
  char magic[16] = {};                 ///< kMagic, written last
  std::uint32_t version = kVersion;
  std::int32_t rank = 0, ranks = 0;
  ProcessId process;
  std::uint64_t job = 0;  ///< Contribution::job_key
  char host[64] = {};
  char output[1024] = {};  ///< absolute path of the profile, which names the job
  LiveLine line;
  LiveMessage message;
  std::atomic<std::int32_t> frames{0};
  LiveFrame frame[kFrames];
};
inline constexpr char kLiveMagic[16] = "latecomer live";
/// The folder and the begin of the names of these files. The pid namespace and the pid follow, since containers may
/// share the folder.
inline constexpr char kLiveFolder[] = "/dev/shm", kLivePrefix[] = "latecomer-live-";

}  // namespace latecomer::profiles
