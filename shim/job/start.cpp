// SPDX-License-Identifier: BSD-3-Clause
// Starts the job: in MPI_Init, in a session, or at the first call if MPI started unseen.
#include "shim/job/start.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#include "profiles/base/launchers.hpp"
#include "profiles/format/decisions.hpp"
#include "shim/call/communicators.hpp"
#include "shim/causes/message_ends.hpp"
#include "shim/causes/usage.hpp"
#include "shim/engine/engine.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/exchange/mail.hpp"
#include "shim/job/contribution.hpp"
#include "shim/job/history.hpp"
#include "shim/job/host_load.hpp"
#include "shim/job/hosts.hpp"
#include "shim/job/network.hpp"
#include "shim/job/output.hpp"
#include "shim/job/policy.hpp"
#include "shim/job/prometheus.hpp"
#include "shim/job/roll_call.hpp"
#include "shim/job/snapshots.hpp"
#include "shim/job/teardown.hpp"
#include "shim/job/thread_level.hpp"
#include "shim/live/live.hpp"
#include "shim/log.hpp"
#include "shim/mpi/beneath.hpp"
#include "shim/mpi/end_job.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/earlier_run.hpp"
#include "shim/state/output.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {
namespace {

std::mutex start_mutex;
std::atomic<bool> mpi_starts{false};  // within MPI_Init: a tool behind this one may call collectives there
bool began = false, ended_at_start = false;
int open_sessions = 0;

/// Warns if the launcher of another MPI library started this process as one of several.
void note_other_launcher(int size) {
  const profiles::Launcher* own = profiles::launcher_of(beneath().mpi);
  if (!own) return;
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
bool begin_observing(int rank, int size) {
  job_world().rank = rank;
  job_world().size = size;
  job_process().pid = getpid();
  job_process().thread = gettid();
  job_rules().environment = read_environment(rank == 0);
  if (job_rules().environment.disable) return false;
  set_speaker(rank, size, job_rules().environment.verbose);
  if (const char* wrong = leave_other_interface()) {
    if (rank == 0)
      warn("the MPI library has not the binary interface of the family %s: %s: latecomer is inactive", kFamily, wrong);
    return false;
  }
  note_other_launcher(size);
  job_process().started = now();
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  sites_start();
  {
    const JobLock lock;
    lock->mine.host = host;
    lock->mine.patterns.job_of(size);
  }
  describe_job();
  identify_job();
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_communicator_end, &job_world().keyval, nullptr);
  return true;
}

/// Observes without the other ranks: each rank has only its own data, and `latecomer recover` merges them.
void stay_alone(const char* why, const std::string& suffix = "") {
  choose_output_alone(suffix);
  if (job_world().rank == 0)
    warn("%s: every rank observes alone and all calls stay native%s; after the job, run latecomer recover %s", why,
         job_rules().environment.check ? ", so LATECOMER_CHECK has no effect" : "",
         (job_output().path + ".parts").c_str());
}

/// From now on `latecomer who` can see the process, its waiting calls are timed, and it writes snapshots.
void show_job() {
  if (!job_rules().policy.causes) {
    sampler.decline_sampling();
  } else {
    sampler.begin_first_interval(job_clocks().common_now());
    if (mpi_time.watched) {
      code_sampler.begin_samples(job_rules().policy.sampling_hz);
      if (job_rules().policy.sampling_hz > 0) sampler.count_instructions();
      code_sampler.begin_first_stretch(now());
    }
  }
  // Without what latecomer itself did since then, as it waits up to the time-out of the roll call.
  if (job_process().entered > 0) JobLock()->mine.process.init = job_process().started - job_process().entered;
  timing.store(job_rules().policy.causes, std::memory_order_relaxed);
  // Messages of several threads at the same time have no order.
  if (job_rules().policy.causes && job_world().together && !job_process().threads) message_ends.begin_numbers();
  if (job_rules().policy.live)
    live_start(job_world().rank, job_world().size, job_output().id.key, job_output().id.host, job_output().path,
               job_world().first_here);
  begin_snapshots();
  if (job_rules().policy.causes) begin_host_load();
}

/// After an exception, the process runs on without observation. After the roll call the other ranks wait for this one:
/// then the job ends.
void give_up(const char* why) noexcept {
  ended_at_start = true;
  if (job_world().comm == MPI_COMM_NULL) return warn("this rank is not observed: %s", why);
  warn("the other ranks wait for this one at the start, and it cannot go on (%s): the job ends", why);
  end_job(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
}

/// The time-out of this rank's policy. Everything else comes from rank 0.
double find_timeout() {
  const core::Policy* own = own_policy(job_rules().environment).policy();
  return (own ? *own : job_rules().policy).roll_call_timeout_s;
}

}  // namespace

void start_job() noexcept try {
  const Spending work(profiles::CostOf::start);
  const std::lock_guard lock(start_mutex);
  int rank = 0, size = 1, level = MPI_THREAD_SINGLE;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  // After a session, ranks may have used a communicator of the session, some of them before their MPI_Init and some
  // after it. So calls stay native.
  if (job_world().sessions && parent == MPI_COMM_NULL) decline_roll_call(rank, size, find_timeout());
  if (ended_at_start || job_world().comm != MPI_COMM_NULL) return;
  if (!began && !begin_observing(rank, size)) {
    ended_at_start = true;
    return;
  }
  PMPI_Query_thread(&level);
  if (!began) job_process().threads = (told_level >= 0 ? told_level : level) == MPI_THREAD_MULTIPLE;
  began = true;
  if (job_world().group == MPI_GROUP_NULL) PMPI_Comm_group(MPI_COMM_WORLD, &job_world().group);

  if (parent != MPI_COMM_NULL) {
    // The spawned processes have their own MPI_COMM_WORLD. The parents' profile has the plain name.
    stay_alone("spawned processes", ".spawned-" + std::to_string(getppid()));
  } else if (!job_world().sessions && roll_call(rank, size, find_timeout())) {
    if (PMPI_Comm_create(MPI_COMM_WORLD, job_world().group, &job_world().comm) != MPI_SUCCESS) return;
    PMPI_Comm_set_errhandler(job_world().comm, MPI_ERRORS_RETURN);
    share_policy();
    begin_prometheus();
    if (job_rules().policy.mode == core::Mode::off) {
      ended_at_start = true;
      yield_in_progress(false);
      return;
    }
    survey_hosts();
    share_output();
    job_rules().announces = job_rules().policy.mode == core::Mode::apply && job_rules().policy.wants_plans();
    job_rules().rooted_waits = job_rules().announces && job_rules().policy.exchange == core::Exchange::epoch &&
                               job_rules().policy.rooted_waits.value_or(!job_rules().policy.rules.empty());
    if (job_rules().policy.mode == core::Mode::apply) note_forced_rules();
    if (job_rules().policy.record_arrivals) {
      const JobLock lock;
      lock->mine.job.record_arrivals = true;
      lock->mine.patterns.record_arrivals();
    }
    const int depth = job_rules().policy.sites_depth, callers = job_rules().policy.sites_callers;
    constexpr int kFrames = 4;  // by default: what an overhead of 100 ns per call allows (docs/results/overhead.md)
    sites_depth(depth, callers < 0 ? std::max(0, kFrames - depth) : callers, job_rules().policy.sites_python,
                job_rules().policy.sites_wrappers);
    if (job_rules().policy.network_measure && size > 1) measure_network();
    if (job_rules().policy.mode == core::Mode::apply && job_rules().policy.background_enabled && size > 1)
      start_engine(level == MPI_THREAD_MULTIPLE);
    if (!job_rules().policy.learn.empty() && job_rules().announces) share_history();
    job_world().together = true;
  } else if (!job_world().sessions) {
    choose_output_alone("");
  }
  set_end();
  CommState* world = state_of(MPI_COMM_WORLD);
  if (world && job_world().together && size > 1) {
    world->context = kWorldContext;
    world->identity = profiles::kWorldIdentity;
    if (job_rules().announces && job_rules().policy.exchange == core::Exchange::epoch) world->member.begin_early();
    if (job_rules().policy.mode == core::Mode::observe && job_rules().policy.record_sample) {
      const JobLock lock;
      lock->mine.sample.start(size);
      world->sample = &lock->mine.sample;
    }
    world->member.begin_with_plan(earlier_run().history.plan);
    take_place(*world);
    greet_neighbours();
    expect_mail_at_end();
  }
  job_world().state = world;
  if (rank == 0)
    say(1, "%s, %d ranks, %s%s, %zu rules, waiting %s%s, %d clock%s, output %s",
        job_rules().policy.mode == core::Mode::apply ? "apply" : "observe", size,
        job_world().together ? "together" : "each rank alone",
        job_rules().policy.exchange == core::Exchange::finalize ? ", exchange at the end" : "",
        job_rules().policy.rules.size(), job_rules().courteous ? "courteous" : "spinning",
        job_rules().nonblocking_waits ? " in non-blocking forms" : "", job_clocks().domains,
        job_clocks().domains == 1 ? "" : "s", job_output().path.c_str());
  show_job();
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
  int rank = 0, size = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!begin_observing(rank, size)) {
    ended_at_start = true;
    return false;
  }
  began = true;
  job_process().threads = true;  // the level is unknown
  PMPI_Comm_group(MPI_COMM_WORLD, &job_world().group);
  stay_alone("latecomer did not see MPI start");
  set_end();
  show_job();
  active.store(true, std::memory_order_release);
  return true;
} catch (const std::exception& e) {
  give_up(e.what());
  return false;
}

void start_session(MPI_Session session) noexcept try {
  const std::lock_guard lock(start_mutex);
  ++open_sessions;
  if (began || ended_at_start) return;
  int rank = 0, size = 1;
  if (!PMPI_Group_from_session_pset ||
      PMPI_Group_from_session_pset(session, "mpi://WORLD", &job_world().group) != MPI_SUCCESS)
    return;
  PMPI_Group_rank(job_world().group, &rank);
  PMPI_Group_size(job_world().group, &size);
  if (!begin_observing(rank, size)) {
    ended_at_start = true;
    return;
  }
  began = true;
  job_process().threads = true;
  job_world().sessions = true;
  stay_alone("MPI sessions");
  show_job();
  active.store(true, std::memory_order_release);
} catch (const std::exception& e) {
  give_up(e.what());
}

void end_session() noexcept {
  const std::lock_guard lock(start_mutex);
  int initialized = 0;
  PMPI_Initialized(&initialized);
  if (--open_sessions > 0 || initialized) return;
  ended_at_start = true;
  timing.store(false);
  end_observation();
}

}  // namespace latecomer::shim
