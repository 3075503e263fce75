// SPDX-License-Identifier: BSD-3-Clause
// Starts the job: in MPI_Init, in a session, or at the first call if MPI started unseen.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#include "profiles/base/launchers.hpp"
#include "shim/call/communicators.hpp"
#include "shim/causes/usage.hpp"
#include "shim/engine/engine.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/exchange/mail.hpp"
#include "shim/job/parts.hpp"
#include "shim/live/live.hpp"
#include "shim/log.hpp"
#include "shim/mpi/end_job.hpp"
#include "shim/sites/sites.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {
namespace {

std::mutex start_mutex;
std::atomic<bool> mpi_starts{false};  // within MPI_Init: a tool behind this one may call collectives there
bool began = false, ended_at_start = false;

/// Says so if another library's launcher started this process as one of several.
void note_other_launcher(int size) {
  const profiles::Launcher* own = profiles::launcher_of(kFamily);
  for (const profiles::Launcher& other : profiles::kLaunchers) {
    if (&other == own || other.mpi.empty()) continue;
    const char *of = std::getenv(other.size), *which = std::getenv(other.rank);
    if (size == 1 && of && std::atol(of) > 1 && which && std::strcmp(which, "0") == 0)
      warn(
          "the launcher started %s processes (%s), and %s makes each one a job of its own: if they are one job, "
          "start them with %s's launcher",
          of, other.size, own->title.data(), own->title.data());
  }
}

/// The common part of every start. Returns false if latecomer must not observe this process.
bool begin_observing(Job& j, int rank, int size) {
  j.rank = rank;
  j.size = size;
  j.pid = getpid();
  j.thread = gettid();
  j.environment = read_environment(rank == 0);
  if (j.environment.disable) return false;
  set_speaker(rank, size, j.environment.verbose);
  if (const char* wrong = leave_other_interface()) {
    if (rank == 0)
      warn("the MPI library has not the binary interface of the family %s: %s: latecomer is inactive", kFamily, wrong);
    return false;
  }
  note_other_launcher(size);
  j.started = now();
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  j.mine.host = host;
  sites_start();
  j.used_contexts.assign(kContexts / 64, 0);
  j.used_contexts[0] = 1;  // the context of MPI_COMM_WORLD
  j.mine.patterns.job_of(size);
  describe_job(j);
  identify_job(j);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_communicator_end, &j.keyval, nullptr);
  return true;
}

/// Observes without the other ranks: each rank has only its own data, and `latecomer recover` merges them.
void stay_alone(Job& j, const char* why, const std::string& suffix = "") {
  choose_output_alone(j, suffix);
  if (j.rank == 0)
    warn("%s: every rank observes alone and all calls stay native%s; after the job, run latecomer recover %s", why,
         j.environment.check ? ", so LATECOMER_CHECK has no effect" : "", (j.output + ".parts").c_str());
}

/// From now on `latecomer who` can see the process, its waiting calls are timed, and it writes snapshots.
void show_job(Job& j) {
  if (!j.policy.causes) sampler.never();
  else sampler.begin(j.clocks.common());
  timing.store(j.policy.causes, std::memory_order_relaxed);
  if (j.policy.live) live_start(j.rank, j.size, j.mine.job_key, j.mine.host, j.output);
  begin_snapshots(j);
}

/// After an exception, the process runs on without observation. After the roll call the other ranks wait for this one:
/// then the job ends.
void give_up(const char* why) noexcept {
  ended_at_start = true;
  if (job().comm == MPI_COMM_NULL) return warn("this rank is not observed: %s", why);
  warn("the other ranks wait for this one at the start, and it cannot go on (%s): the job ends", why);
  end_job(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
}

}  // namespace

void start_job() noexcept try {
  Job& j = job();
  const std::lock_guard lock(start_mutex);
  if (ended_at_start || j.comm != MPI_COMM_NULL) return;
  int rank = 0, size = 1, level = MPI_THREAD_SINGLE;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!began && !begin_observing(j, rank, size)) {
    ended_at_start = true;
    return;
  }
  PMPI_Query_thread(&level);
  if (!began) j.threads = (told_level >= 0 ? told_level : level) == MPI_THREAD_MULTIPLE;
  began = true;
  if (j.world_group == MPI_GROUP_NULL) PMPI_Comm_group(MPI_COMM_WORLD, &j.world_group);

  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  // Use only the time-out of this rank's policy: everything else comes from rank 0.
  const core::Policy* own = own_policy(j.environment).policy();
  const double timeout_s = (own ? *own : j.policy).roll_call_timeout_s;
  if (parent != MPI_COMM_NULL) {
    // The spawned processes have their own MPI_COMM_WORLD. The parents' profile has the plain name.
    stay_alone(j, "spawned processes", ".spawned-" + std::to_string(getppid()));
    // After a session, ranks may have used a communicator of the session, some of them before their MPI_Init and some
    // after it. So calls stay native.
  } else if (!j.sessions && roll_call(rank, size, timeout_s)) {
    if (PMPI_Comm_create(MPI_COMM_WORLD, j.world_group, &j.comm) != MPI_SUCCESS) return;
    PMPI_Comm_set_errhandler(j.comm, MPI_ERRORS_RETURN);
    share_policy(j);
    begin_prometheus(j);
    if (j.policy.mode == core::Mode::off) {
      ended_at_start = true;
      yield_in_progress(false);
      return;
    }
    survey_hosts(j);
    share_output(j);
    j.announces = j.policy.mode == core::Mode::apply && j.policy.wants_plans();
    j.rooted_waits = j.announces && j.policy.exchange == core::Exchange::epoch &&
                     j.policy.rooted_waits.value_or(!j.policy.rules.empty());
    if (j.policy.mode == core::Mode::apply) note_forced_rules(j);
    if (j.policy.record_arrivals) j.mine.job.record_arrivals = true, j.mine.patterns.record_arrivals();
    const int depth = j.policy.sites_depth, callers = j.policy.sites_callers;
    constexpr int kFrames = 4;  // by default: what an overhead of 100 ns per call allows (docs/results/overhead.md)
    sites_depth(depth, callers < 0 ? std::max(0, kFrames - depth) : callers, j.policy.sites_python,
                j.policy.sites_wrappers);
    if (j.policy.network_measure && size > 1) measure_network(j);
    if (j.policy.mode == core::Mode::apply && j.policy.background_enabled && size > 1)
      start_engine(level == MPI_THREAD_MULTIPLE);
    if (!(j.policy.history.empty() && j.policy.learn.empty()) && j.announces) share_history(j);
    j.together = true;
  } else if (!j.sessions) {
    choose_output_alone(j, "");
  }
  set_end(j);
  CommState* world = state_of(MPI_COMM_WORLD);
  if (world && j.together && size > 1) {
    world->context = kWorldContext;
    world->identity = profiles::kWorldIdentity;
    if (j.announces && j.policy.exchange == core::Exchange::epoch) world->member.begin_early();
    if (j.policy.mode == core::Mode::observe && j.policy.record_sample)
      j.mine.sample.start(size), world->sample = &j.mine.sample;
    world->member.remember(j.history.plan);
    take_place(*world);
    expect_mail_at_end();
  }
  j.world_state = world;
  if (rank == 0)
    say(1, "%s, %d ranks, %s%s, %zu rules, waiting %s%s, %d clock%s, output %s",
        j.policy.mode == core::Mode::apply ? "apply" : "observe", size, j.together ? "together" : "each rank alone",
        j.policy.exchange == core::Exchange::finalize ? ", exchange at the end" : "", j.policy.rules.size(),
        j.courteous ? "courteous" : "spinning", j.nonblocking_waits ? " in non-blocking forms" : "", j.clocks.domains,
        j.clocks.domains == 1 ? "" : "s", j.output.c_str());
  show_job(j);
  active.store(true, std::memory_order_release);
} catch (const std::exception& e) {
  give_up(e.what());
}

void expect_start(bool begins) { mpi_starts.store(begins); }

bool start_late() noexcept try {
  if (mpi_starts.load()) return false;
  const std::lock_guard lock(start_mutex);
  int initialized = 0, finalized = 0;
  if (active.load()) return true;
  if (began || ended_at_start) return false;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  if (!initialized || finalized) return false;
  Job& j = job();
  int rank = 0, size = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!begin_observing(j, rank, size)) return ended_at_start = true, false;
  began = true;
  j.threads = true;  // the level is unknown
  PMPI_Comm_group(MPI_COMM_WORLD, &j.world_group);
  stay_alone(j, "latecomer did not see MPI start");
  set_end(j);
  show_job(j);
  active.store(true, std::memory_order_release);
  return true;
} catch (const std::exception& e) {
  return give_up(e.what()), false;
}

#if MPI_VERSION >= 4
void start_session(MPI_Session session) noexcept try {
  Job& j = job();
  const std::lock_guard lock(start_mutex);
  if (began || ended_at_start) return;
  int rank = 0, size = 1;
  if (PMPI_Group_from_session_pset(session, "mpi://WORLD", &j.world_group) != MPI_SUCCESS) return;
  PMPI_Group_rank(j.world_group, &rank);
  PMPI_Group_size(j.world_group, &size);
  if (!begin_observing(j, rank, size)) {
    ended_at_start = true;
    return;
  }
  began = true;
  j.threads = true;
  j.sessions = true;
  stay_alone(j, "MPI sessions");
  show_job(j);
  active.store(true, std::memory_order_release);
} catch (const std::exception& e) {
  give_up(e.what());
}
#endif

}  // namespace latecomer::shim
