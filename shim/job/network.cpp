// SPDX-License-Identifier: BSD-3-Clause
// Measures the network's figures: at the start if the policy asks for it, else at the end for the profile.
#include "shim/job/network.hpp"

// clang-format off
#include "shim/mpi/api.hpp"  // before measure.hpp, which programs that link MPI use, too
// clang-format on

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "core/model/plausible.hpp"
#include "profiles/format/profile.hpp"
#include "shim/guard.hpp"
#include "shim/log.hpp"
#include "shim/measure.hpp"
#include "shim/state/output.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/world.hpp"
#include "shim/waiting/alive.hpp"

namespace latecomer::shim {
namespace {

struct MeasureWithPmpi {
  static void isend(const void* data, int bytes, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    PMPI_Isend(data, bytes, MPI_BYTE, to, tag, comm, request);
  }
  static void irecv(void* data, int bytes, int from, int tag, MPI_Comm comm, MPI_Request* request) {
    PMPI_Irecv_c(data, bytes, MPI_BYTE, from, tag, comm, request);
  }
  static void test(MPI_Request* request, int* done) { PMPI_Test(request, done, MPI_STATUS_IGNORE); }
  static void ibarrier(MPI_Comm comm, MPI_Request* request) { PMPI_Ibarrier(comm, request); }
  static void reduce_local(const float* in, float* inout, int n) {
    PMPI_Reduce_local_c(in, inout, n, MPI_FLOAT, MPI_SUM);
  }
  /// A nap would be a part of the measured time.
  class Wait : public RankWait {
   public:
    explicit Wait(bool yielding) : RankWait(yielding ? Between::yields : Between::nothing) {}
  };
};

using Measurement = shim::Measurement<MeasureWithPmpi>;
alignas(64) char buffers[2][Measurement::kHalf];

Measurement::Answer measure(const Effort& effort) {
  return Measurement(job_world().comm, job_world().rank, job_world().hosts, effort, Measurement::Buffer(buffers[0]),
                     Measurement::Buffer(buffers[1]))
      .run();
}

void say_measured(const core::Network& n) {
  for (const std::string& doubt : core::implausible(n)) say(1, "network measured: %s", doubt.c_str());
  say(1, "network measured: alpha %.3f us, beta %.4f ns/B, latency %.2f us, eager to %lld B", n.alpha_ns / 1e3,
      n.beta_ns_per_byte, n.latency_ns / 1e3, static_cast<long long>(n.eager_bytes));
}

// The share of the run that measuring at the end may take, with writing the profile once more.
constexpr double kShare = 0.01;
// A shorter time gives no figures. Derived: the naps, the local loops and three rounds take 20 ms in shared memory.
constexpr double kLeastTime = 25e6;
// A longer time delays the user. Derived: the least sizes take 0.5 s at 40 Mbit/s.
constexpr double kMostTime = 1e9;

// Equal messages on quiet cores differ by less. With a larger factor, other processes have disturbed the figures.
constexpr double kSteady = 3;

/// Whether MPI may send large messages through the memory of other processes, as it does on one host. The program may
/// have given up rights since MPI_Init, and a filter may refuse the system call.
bool memory_is_open() {
  char from = 1, to = 0;
  const iovec there{&from, 1}, here{&to, 1};
  return prctl(PR_GET_DUMPABLE) == 1 && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

constexpr char kRankEnded[] = "the network is not measured: a rank ended";

}  // namespace

void measure_network() {
  core::Network n = measure(at_start(job_rules().courteous)).network.value_or(core::Network());
  PMPI_Bcast(&n, sizeof n, MPI_BYTE, 0, job_world().comm);
  job_rules().policy.network = n;
  job_rules().policy.network_given = true;
  if (job_world().rank == 0) say_measured(n);
}

void measure_network_for_profile() noexcept {
  if (job_rules().policy.mode != core::Mode::observe || !job_rules().policy.measure_network ||
      job_rules().policy.network_given || job_world().size < 2)
    return;
  // Rank 0 gives the time to all ranks; 0: measure nothing.
  static long long most;  // MPI may still write it after a wait that was given up
  most = memory_is_open() ? INT64_MAX : 0;
  if (job_world().rank == 0 && most > 0)
    most = std::max<long long>(
        0, static_cast<long long>(std::min(kMostTime, kShare * static_cast<double>(now() - job_process().started)) -
                                  static_cast<double>(job_output().wrote)));
  if (job_world().rank == 0 && static_cast<double>(most) < kLeastTime) most = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Iallreduce(MPI_IN_PLACE, &most, 1, MPI_LONG_LONG, MPI_MIN, job_world().comm, &request);
  RankWait wait;
  for (int done = 0; !done;) {
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done && !wait.again()) return say(1, kRankEnded);
  }
  if (most == 0) {
    if (job_world().rank == 0)
      say(1, "the network is not measured: the run is too short, or a process may not read others' memory");
    return;
  }
  const Outcome done = attempt([&] {
    const auto [given_up, n, factor] = measure(at_end(job_rules().courteous, static_cast<double>(most)));
    if (given_up) return say(1, kRankEnded);
    if (job_world().rank == 0 && !n)
      return say(1, "the network is not measured: it is too slow for the time of this run");
    if (!n) return;
    say_measured(*n);
    if (factor > kSteady)
      return say(1,
                 "network measured: equal messages took times that differ by a factor of %.1f: the cores were busy; "
                 "measure again",
                 factor);
    if (!core::implausible(*n).empty()) return;
    if (const auto added = profiles::add_network(job_output().written, *n); !added)
      warn("the profile has no figures of the network: %s", added.error().c_str());
  });
  if (!done) warn("the profile has no figures of the network: %s", done.why);
}

}  // namespace latecomer::shim
