// SPDX-License-Identifier: BSD-3-Clause
// Start and end of a job, and the states of its communicators.
#include "shim/job.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <cstring>
#include <fstream>
#include <sstream>

#include "profiles/profile.hpp"
#include "shim/exchange.hpp"
#include "shim/executor.hpp"
#include "shim/log.hpp"
#include "shim/requests.hpp"
#include "shim/sites.hpp"

namespace latecomer::shim {

std::atomic<bool> active{false};

Job& job() {
  static Job* the_job = new Job;  // never destroyed: callbacks may come after exit handlers
  return *the_job;
}

Nanoseconds now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

void Patience::wait() {
  // Spinning for about as long as a small message takes, then giving the core away. After a millisecond of
  // waiting (a late process) sleeping costs little: 50 us against what is being waited for.
  ++turns_;
  if (!courteous_) return;
  if (turns_ < 20) return;
  if (turns_ < 4000) {
    sched_yield();
    return;
  }
  const timespec nap{0, 50'000};
  nanosleep(&nap, nullptr);
}

namespace {

constexpr Nanoseconds kTeardownWait = 30'000'000'000;
int self_keyval = MPI_KEYVAL_INVALID;

std::string read_text(const std::string& path, bool& good) {
  std::ifstream in(path);
  good = static_cast<bool>(in);
  std::ostringstream text;
  if (good) text << in.rdbuf();
  return text.str();
}

/// On rank 0: the policy's text if it may be used, else "".
std::string load_policy(const Environment& environment) {
  if (environment.policy.empty()) return "";
  bool good = false;
  const std::string text = read_text(environment.policy, good);
  if (!good) {
    warn("%s: cannot be read; observing only", environment.policy.c_str());
    return "";
  }
  const auto report = core::parse_policy(text);
  if (report.ok()) {
    for (const auto& n : report.notes) say(1, "%s:%d: %s: %s", environment.policy.c_str(), n.line, n.path.c_str(), n.message.c_str());
    return text;
  }
  const auto& p = report.problems.front();
  std::string more;
  if (report.problems.size() > 1) more = "; and " + std::to_string(report.problems.size() - 1) + " more, see latecomer check";
  warn("%s:%d: %s%s%s%s; observing only", environment.policy.c_str(), p.line, p.path.c_str(), p.path.empty() ? "" : ": ", p.message.c_str(), more.c_str());
  return "";
}

/// The policy of rank 0 on every rank.
void share_policy(Job& j) {
  std::string text = j.rank == 0 ? load_policy(j.environment) : "";
  long long size = static_cast<long long>(text.size());
  PMPI_Bcast(&size, 1, MPI_LONG_LONG, 0, j.comm);
  text.resize(static_cast<std::size_t>(size));
  PMPI_Bcast(text.data(), static_cast<int>(size), MPI_BYTE, 0, j.comm);
  if (!text.empty()) j.policy = core::parse_policy(text).policy;
  if (j.policy.network.beta_ns_per_byte == 0 && !j.policy.network_given) j.policy.network = *core::network_preset("fdr");
}

/// Hosts of all ranks, whether cores are shared, and this host's clock against rank 0's.
void survey_hosts(Job& j) {
  char mine[MPI_MAX_PROCESSOR_NAME] = {};
  std::strncpy(mine, j.host.c_str(), sizeof mine - 1);
  std::vector<char> all(static_cast<std::size_t>(j.size) * sizeof mine);
  PMPI_Allgather(mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, j.comm);
  const auto host = [&](Rank r) { return std::string(all.data() + static_cast<std::size_t>(r) * sizeof mine); };
  std::vector<Rank> first_of;  // per rank: the first rank on its host
  int sharing = 0;
  for (Rank r = 0; r < j.size; ++r) {
    Rank first = 0;
    while (host(first) != host(r)) ++first;
    first_of.push_back(first);
    sharing += host(r) == j.host;
  }
  cpu_set_t cores;
  int have = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) > 0 && sharing > 1) have = std::max(CPU_COUNT(&cores), 1);
  int crowded = sharing > have;
  PMPI_Allreduce(MPI_IN_PLACE, &crowded, 1, MPI_INT, MPI_MAX, j.comm);
  j.courteous = j.policy.waiting == core::Waiting::courteous || (j.policy.waiting == core::Waiting::automatic && crowded);

  // Clocks: rank 0 and the first rank of every other host exchange 16 ping-pongs; every exchange bounds the
  // offset from both sides, and the intersection of the bounds is the estimate with its uncertainty.
  std::vector<long long> clocks(static_cast<std::size_t>(j.size) * 2, 0);
  for (Rank r = 1; r < j.size; ++r) {
    if (first_of[static_cast<std::size_t>(r)] != r || first_of[0] == r) continue;
    if (j.rank == 0) {
      long long low = INT64_MIN, high = INT64_MAX;
      for (int i = 0; i < 16; ++i) {
        const long long sent = now();
        long long there = 0;
        PMPI_Send(&there, 1, MPI_LONG_LONG, r, kClockChannel, j.comm);
        PMPI_Recv(&there, 1, MPI_LONG_LONG, r, kClockChannel, j.comm, MPI_STATUS_IGNORE);
        low = std::max(low, sent - there);
        high = std::min(high, static_cast<long long>(now()) - there);
      }
      clocks[static_cast<std::size_t>(r) * 2] = low + (high - low) / 2;
      clocks[static_cast<std::size_t>(r) * 2 + 1] = std::max(0ll, (high - low + 1) / 2);
    } else if (j.rank == r) {
      for (int i = 0; i < 16; ++i) {
        long long here = 0;
        PMPI_Recv(&here, 1, MPI_LONG_LONG, 0, kClockChannel, j.comm, MPI_STATUS_IGNORE);
        here = now();
        PMPI_Send(&here, 1, MPI_LONG_LONG, 0, kClockChannel, j.comm);
      }
    }
  }
  PMPI_Bcast(clocks.data(), 2 * j.size, MPI_LONG_LONG, 0, j.comm);
  const auto mine_at = static_cast<std::size_t>(first_of[static_cast<std::size_t>(j.rank)]) * 2;
  j.clock_offset = clocks[mine_at];
  // Patterns compare clocks of any two hosts: the widest interval counts.
  for (Rank r = 0; r < j.size; ++r) j.clock_uncertainty = std::max<Nanoseconds>(j.clock_uncertainty, 2 * clocks[static_cast<std::size_t>(r) * 2 + 1]);
}

void link_state(CommState* state) {
  Job& j = job();
  const JobLock lock;
  state->next = j.states;
  if (j.states) j.states->previous = state;
  j.states = state;
}

int on_communicator_end(MPI_Comm, int, void* attribute, void*) {
  auto* state = static_cast<CommState*>(attribute);
  Job& j = job();
  forget_pending(state);
  if (active.load()) {
    collect(*state);
    retain_log(*state);
    if (state->context > 0 && state->context < kContexts) {
      const std::lock_guard lock(j.context_mutex);
      j.used_contexts[static_cast<std::size_t>(state->context) / 64] &= ~(std::uint64_t{1} << (state->context % 64));
    }
  }
  {
    const JobLock lock;
    if (state->previous) state->previous->next = state->next;
    else if (j.states == state) j.states = state->next;
    if (state->next) state->next->previous = state->previous;
  }
  delete state;
  return MPI_SUCCESS;
}

std::string output_path(const Job& j, bool alone) {
  std::string id;
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
    if (const char* value = std::getenv(name); value && *value && id.empty()) id = value;
  if (id.empty()) id = std::to_string(getpid());
  std::string out;
  const std::string& form = j.environment.output;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%' || i + 1 == form.size()) {
      out += form[i];
      continue;
    }
    switch (form[++i]) {
      case 'j': out += id; break;
      case 'p': out += std::to_string(getpid()); break;
      case 'h': out += j.host; break;
      case '%': out += '%'; break;
      default: (out += '%') += form[i];
    }
  }
  return alone ? out + ".rank" + std::to_string(j.rank) : out;
}

std::string command_line() {
  bool good = false;
  std::string text = read_text("/proc/self/cmdline", good);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

profiles::Contribution contribution(Job& j) {
  profiles::Contribution c;
  c.rank = j.rank;
  c.host = j.host;
  c.clock_offset = j.clock_offset;
  c.clock_uncertainty = j.clock_uncertainty;
  c.frames = site_frames();
  c.local = j.local;
  c.patterns = j.patterns.sites();
  c.logs = j.retained;
  c.plans = j.plans;
  if (j.retained_missed > 0) warn("%zu calls have no arrival patterns: more than is kept until the end", j.retained_missed);
  for (int i = 0; i < warning_count(); ++i) c.warnings.emplace_back(warning_text(i));
  return c;
}

void write_parts(Job& j, std::vector<profiles::Contribution> parts, bool alone) {
  profiles::JobInfo info;
  info.command_line = command_line();
  info.program = info.command_line.substr(0, info.command_line.find(' '));
  info.start = j.start_time;
  info.ranks = j.size;
  info.wall_time_s = static_cast<double>(now() - j.started) * 1e-9;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  PMPI_Get_library_version(version, &length);
  info.mpi_library = std::string(version).substr(0, std::string(version).find('\n'));
  std::replace(info.mpi_library.begin(), info.mpi_library.end(), '\t', ' ');
  info.mode = j.policy.mode == core::Mode::apply ? "apply" : "observe";
  info.network_known = j.policy.network_given;
  info.network = j.policy.network;
  const std::string path = output_path(j, alone);
  const auto result = profiles::write_file(path, profiles::write_profile(info, std::move(parts)));
  if (!result) warn("%s", result.error().c_str());
  else say(1, "profile written to %s", path.c_str());
}

/// Everybody's share to rank 0, which writes the profile. False if not all came in time.
bool gather_profile(Job& j) {
  Patience patience(true);
  MPI_Request all_here = MPI_REQUEST_NULL;
  PMPI_Ibarrier(j.comm, &all_here);
  Nanoseconds deadline = now() + kTeardownWait;
  for (int done = 0; !done;) {
    PMPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
    for (CommState* s = j.states; s; s = s->next) collect(*s);
    sweep_outgoing();
    if (now() > deadline) return false;
    if (!done) patience.wait();
  }
  for (CommState* s = j.states; s; s = s->next) collect(*s), retain_log(*s);
  // A second barrier: nobody sends a profile before everybody has stopped looking for logs of any tag.
  retain_strays();
  drain_outgoing(deadline);
  PMPI_Ibarrier(j.comm, &all_here);
  for (int done = 0; !done;) {
    PMPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
    retain_strays();
    if (now() > deadline) return false;
    if (!done) patience.wait();
  }
  profiles::Contribution mine = contribution(j);
  if (j.rank != 0) {
    const std::string bytes = mine.serialize();
    MPI_Request sent = MPI_REQUEST_NULL;
    PMPI_Isend_c(bytes.data(), static_cast<MPI_Count>(bytes.size()), MPI_BYTE, 0, kFinalChannel, j.comm, &sent);
    for (int done = 0; !done;) {
      PMPI_Test(&sent, &done, MPI_STATUS_IGNORE);
      if (now() > deadline) return false;
      if (!done) patience.wait();
    }
    return true;
  }
  std::vector<profiles::Contribution> parts{std::move(mine)};
  std::vector<char> come(static_cast<std::size_t>(j.size), 0);
  int missing = j.size - 1;
  while (missing > 0 && now() < deadline) {
    MPI_Message message;
    MPI_Status status;
    int there = 0;
    PMPI_Improbe(MPI_ANY_SOURCE, kFinalChannel, j.comm, &there, &message, &status);
    if (!there) {
      patience.wait();
      continue;
    }
    patience.reset();
    int size = 0;
    PMPI_Get_count(&status, MPI_BYTE, &size);
    std::string bytes(static_cast<std::size_t>(std::max(size, 0)), '\0');
    PMPI_Mrecv(bytes.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    profiles::Contribution part;
    if (profiles::Contribution::deserialize(bytes, part)) parts.push_back(std::move(part));
    --missing;
    deadline = now() + kTeardownWait;
  }
  if (missing > 0) warn("%d ranks did not send their part of the profile", missing);
  write_parts(j, std::move(parts), false);
  return true;
}

int on_end(MPI_Comm, int, void*, void*) {
  if (!active.exchange(false)) return MPI_SUCCESS;
  Job& j = job();
  try {
    const bool merged = j.together && gather_profile(j);
    if (!merged) write_parts(j, {contribution(j)}, true);
  } catch (...) {
    warn("out of memory while writing the profile");
  }
  return MPI_SUCCESS;
}

}  // namespace

CommState* state_of(MPI_Comm comm) {
  Job& j = job();
  if (comm == MPI_COMM_NULL || comm == j.comm) return nullptr;
  void* attribute = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, j.keyval, &attribute, &found) != MPI_SUCCESS) return nullptr;
  if (found) return static_cast<CommState*>(attribute);
  auto* state = new (std::nothrow) CommState;
  if (!state) return nullptr;
  state->comm = comm;
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_size(comm, &state->size);
  PMPI_Comm_rank(comm, &state->rank);
  state->foreign = inter != 0;
  if (PMPI_Comm_set_attr(comm, j.keyval, state) != MPI_SUCCESS) {
    delete state;
    return nullptr;
  }
  link_state(state);
  if (!state->foreign && state->size > 1) resolve_members(*state);
  return state;
}

void start_job() {
  Job& j = job();
  if (active.load() || self_keyval != MPI_KEYVAL_INVALID) return;
  PMPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &j.size);
  j.environment = read_environment(j.rank == 0);
  if (j.environment.disable) return;
  set_speaker(j.rank, j.size, j.environment.verbose);
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0, level = MPI_THREAD_SINGLE;
  PMPI_Get_library_version(version, &length);
  if (std::strncmp(version, "MPICH Version:\t4.", 17) != 0) {
    if (j.rank == 0) warn("this MPI is not MPICH 4: doing nothing");
    return;
  }
  PMPI_Query_thread(&level);
  j.threads = level == MPI_THREAD_MULTIPLE;
  j.started = now();
  const std::time_t wall = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&wall));
  j.start_time = text;
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  j.host = host;
  if (j.rank == 0 && j.environment.check) warn("LATECOMER_CHECK is not available in this version");
  sites_start();
  j.used_contexts.assign(kContexts / 64, 0);
  j.used_contexts[0] = 1;  // MPI_COMM_WORLD's
  PMPI_Comm_group(MPI_COMM_WORLD, &j.world_group);

  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  double timeout_s = j.policy.roll_call_timeout_s;
  if (!j.environment.policy.empty()) {
    // Only the time-out: everything else comes from rank 0.
    bool good = false;
    const auto report = core::parse_policy(read_text(j.environment.policy, good));
    if (good && report.ok()) timeout_s = report.policy.roll_call_timeout_s;
  }
  j.together = parent == MPI_COMM_NULL && roll_call(j.rank, j.size, timeout_s);
  if (j.together) {
    if (PMPI_Comm_create(MPI_COMM_WORLD, j.world_group, &j.comm) != MPI_SUCCESS) return;
    PMPI_Comm_set_errhandler(j.comm, MPI_ERRORS_RETURN);
    share_policy(j);
    if (j.policy.mode == core::Mode::off) return;
    j.announces = j.policy.mode == core::Mode::apply && j.policy.wants_patterns();
    survey_hosts(j);
  } else if (parent != MPI_COMM_NULL) {
    if (j.rank == 0) warn("spawned processes are observed one by one");
  }
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_communicator_end, &j.keyval, nullptr);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &self_keyval, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, self_keyval, nullptr);
  if (CommState* world = state_of(MPI_COMM_WORLD); world && j.together && j.size > 1) {
    world->context = kWorldContext;
    world->identity = 1;
    if (world->rank == 0) world->leadership = std::make_unique<Leadership>(world->size, j.policy.predictor_window);
  }
  if (j.rank == 0)
    say(1, "%s, %d ranks, %s%s, %zu rules, waiting %s, output %s", j.policy.mode == core::Mode::apply ? "apply" : "observe", j.size,
        j.together ? "together" : "each rank alone", j.policy.exchange == core::Exchange::finalize ? ", exchange at the end" : "",
        j.policy.rules.size(), j.courteous ? "courteous" : "spinning", output_path(j, !j.together).c_str());
  active.store(true, std::memory_order_release);
}

}  // namespace latecomer::shim

using namespace latecomer::shim;

extern "C" {

LATECOMER_EXPORT int MPI_Init(int* argc, char*** argv) {
  const int rc = PMPI_Init(argc, argv);
  if (rc == MPI_SUCCESS) start_job();
  return rc;
}

LATECOMER_EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int rc = PMPI_Init_thread(argc, argv, required, provided);
  if (rc == MPI_SUCCESS) start_job();
  return rc;
}

// MPICH's mpi_f08 binding calls PMPI_Init directly.
LATECOMER_EXPORT void mpi_init_f08_(int* ierror) {
  int rc = MPI_SUCCESS;
  if (auto* next = reinterpret_cast<void (*)(int*)>(dlsym(RTLD_NEXT, "mpi_init_f08_"))) next(&rc);
  else rc = PMPI_Init(nullptr, nullptr);
  if (rc == MPI_SUCCESS) start_job();
  if (ierror) *ierror = rc;
}
LATECOMER_EXPORT void mpi_init_thread_f08_(const int* required, int* provided, int* ierror) {
  int rc = MPI_SUCCESS;
  if (auto* next = reinterpret_cast<void (*)(const int*, int*, int*)>(dlsym(RTLD_NEXT, "mpi_init_thread_f08_"))) next(required, provided, &rc);
  else rc = PMPI_Init_thread(nullptr, nullptr, *required, provided);
  if (rc == MPI_SUCCESS) start_job();
  if (ierror) *ierror = rc;
}

}  // extern "C"
