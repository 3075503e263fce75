// SPDX-License-Identifier: BSD-3-Clause
// Start and end of a job, and the states of its communicators.
#include "shim/job.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/base/text.hpp"
#include "core/model/plausible.hpp"
#include "profiles/profile.hpp"
#include "shim/alive.hpp"
#include "shim/engine.hpp"
#include "shim/entry.hpp"
#include "shim/exchange.hpp"
#include "shim/executor.hpp"
#include "shim/intercept.hpp"
#include "shim/log.hpp"
#include "shim/measure.hpp"
#include "shim/requests.hpp"
#include "shim/sites.hpp"

namespace latecomer::shim {

std::atomic<bool> active{false};

Job* const job_instance = new Job;

namespace {

// For logs that were sent to a communicator's leader and that nobody may receive any more: the profile does without them.
constexpr Nanoseconds kDrainWait = 30'000'000'000;

std::string read_text(const std::string& path, bool& good) {
  std::ifstream in(path);
  good = static_cast<bool>(in);
  std::ostringstream text;
  if (good) text << in.rdbuf();
  return text.str();
}

/// The policy as this process reads it: its file or, as `latecomer run --auto` gives it, its text.
struct OwnPolicy {
  std::string text;
  bool good = false;  ///< could be read
  core::PolicyReport report;
  /// Nothing where there is none, or none that may be used.
  const core::Policy* policy() const { return good && report.ok() ? &report.policy : nullptr; }
};

/// Read once. Without a policy: not good.
const OwnPolicy& own_policy(const Environment& environment) {
  static const OwnPolicy* const read = [&] {
    auto* own = new OwnPolicy;
    if (environment.policy.empty()) return own;
    own->good = environment.policy.starts_with("{");
    own->text = own->good ? environment.policy : read_text(environment.policy, own->good);
    if (own->good) own->report = core::parse_policy(own->text);
    return own;
  }();
  return *read;
}

/// On rank 0: the policy's text if it may be used, else "".
std::string load_policy(const Environment& environment) {
  if (environment.policy.empty()) return "";
  const OwnPolicy& own = own_policy(environment);
  if (!own.good) {
    warn("%s: cannot be read; observing only", environment.policy.c_str());
    return "";
  }
  const auto& report = own.report;
  if (report.ok()) {
    for (const auto& n : report.notes) say(1, "%s:%d: %s: %s", environment.policy.c_str(), n.line, n.path.c_str(), n.message.c_str());
    return own.text;
  }
  const auto& p = report.problems.front();
  std::string more;
  if (report.problems.size() > 1) more = "; and " + std::to_string(report.problems.size() - 1) + " more, see latecomer check";
  warn("%s:%d: %s%s%s%s; observing only", environment.policy.c_str(), p.line, p.path.c_str(), p.path.empty() ? "" : ": ", p.message.c_str(), more.c_str());
  return "";
}

/// Rank 0's bytes on every rank.
template <typename Bytes>
void share(const Job& j, Bytes& bytes) {
  auto size = static_cast<long long>(bytes.size());
  PMPI_Bcast(&size, 1, MPI_LONG_LONG, 0, j.comm);
  bytes.resize(static_cast<std::size_t>(size));
  PMPI_Bcast(bytes.data(), static_cast<int>(size), MPI_BYTE, 0, j.comm);
}

/// The policy of rank 0 on every rank.
void share_policy(Job& j) {
  std::string text = j.rank == 0 ? load_policy(j.environment) : "";
  share(j, text);
  const core::Policy* own = own_policy(j.environment).policy();
  j.policy = own && own_policy(j.environment).text == text ? *own : core::parse_policy(text.empty() ? "{\"version\": 1}" : text).policy;
  std::uint64_t key = core::mix64(static_cast<std::uint64_t>(j.started) ^ static_cast<std::uint64_t>(j.pid) << 40) | 1;
  PMPI_Bcast(&key, 1, MPI_UINT64_T, 0, j.comm);
  j.mine.job_key = key;
  int checks = j.environment.check;
  PMPI_Bcast(&checks, 1, MPI_INT, 0, j.comm);
  j.checks = checks != 0;
}

/// What the profile compares at the end with what ran.
void note_forced_rules(Job& j) {
  for (const core::Rule& rule : j.policy.rules)
    for (const core::Collective op : rule.match.ops)
      if (const core::Algorithm* a = rule.use.kind == core::Use::Kind::algorithm ? core::find_algorithm(op, rule.use.algorithm) : nullptr)
        j.mine.job.forced.push_back({core::index_of(a), rule.line, rule.match.bytes, rule.match.comm_size});
}

/// An earlier run's plan to every rank; its arrival patterns stay with rank 0, which leads MPI_COMM_WORLD.
void share_history(Job& j) {
  std::vector<char> bytes;
  if (j.rank == 0) {
    auto read = profiles::read_history(j.policy.history, j.size);
    if (read) j.history = std::move(*read);
    else warn("%s", read.error().c_str());
    bytes = j.history.plan.serialize();
  }
  share(j, bytes);
  if (j.rank != 0) core::Plan::deserialize(bytes, j.size, j.history.plan);
}

struct MeasureWithPmpi {
  static void isend(const void* data, int bytes, int to, int tag, MPI_Comm comm, MPI_Request* request) { PMPI_Isend(data, bytes, MPI_BYTE, to, tag, comm, request); }
  static void irecv(void* data, int bytes, int from, int tag, MPI_Comm comm, MPI_Request* request) { PMPI_Irecv_c(data, bytes, MPI_BYTE, from, tag, comm, request); }
  static void test(MPI_Request* request, int* done) { PMPI_Test(request, done, MPI_STATUS_IGNORE); }
  static void ibarrier(MPI_Comm comm, MPI_Request* request) { PMPI_Ibarrier(comm, request); }
  static void reduce_local(const float* in, float* inout, int n) { PMPI_Reduce_local_c(in, inout, n, MPI_FLOAT, MPI_SUM); }
};

/// "network": "measure": rank 0's figures on every rank.
void measure_network(Job& j) {
  constexpr int kHurry = 4;  // two partners, a quarter of the rounds
  core::Network n = Measurement<MeasureWithPmpi>(j.comm, j.rank, j.size, j.courteous, kHurry).run();
  PMPI_Bcast(&n, sizeof n, MPI_BYTE, 0, j.comm);
  j.policy.network = n;
  j.policy.network_given = true;
  if (j.rank != 0) return;
  for (const std::string& doubt : core::implausible(n)) say(1, "network measured: %s", doubt.c_str());
  say(1, "network measured: alpha %.3f us, beta %.4f ns/B, latency %.2f us, eager to %lld B", n.alpha_ns / 1e3, n.beta_ns_per_byte, n.latency_ns / 1e3, static_cast<long long>(n.eager_bytes));
}

/// What ranks tell each other of where they run.
struct Place {
  std::uint64_t domain = 0, kernel = 0;  // equal: one clock, one set of cores
  cpu_set_t cores;
  ProcessId process;
};

std::uint64_t kernel_id() {
  bool good = false;
  std::string id = read_text("/proc/sys/kernel/random/boot_id", good);
  return core::fnv1a(good ? id : job().mine.host);
}

/// The kernel and its time namespace: processes that share both read one clock.
std::uint64_t clock_domain() {
  struct stat info {};
  const std::uint64_t space = stat("/proc/self/ns/time", &info) == 0 ? static_cast<std::uint64_t>(info.st_ino) : 0;
  return core::mix64(kernel_id() ^ core::mix64(space));
}

/// Hosts of all ranks: whether cores are shared, and the clocks.
void survey_hosts(Job& j) {
  Place mine;
  CPU_ZERO(&mine.cores);
  mine.domain = clock_domain();
  mine.kernel = kernel_id();
  mine.process = this_process(mine.kernel);
  if (sched_getaffinity(0, sizeof mine.cores, &mine.cores) != 0)
    for (int c = 0; c < std::min<int>(CPU_SETSIZE, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))); ++c) CPU_SET(c, &mine.cores);
  std::vector<Place> all(static_cast<std::size_t>(j.size));
  PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, j.comm);
  std::map<std::uint64_t, Rank> first;
  std::vector<Rank> first_of;  // per rank: the first rank in its clock domain
  int sharing = 0;
  cpu_set_t cores;  // every rank may be bound to one of many
  CPU_ZERO(&cores);
  for (Rank r = 0; r < j.size; ++r) {
    const Place& there = all[static_cast<std::size_t>(r)];
    first_of.push_back(first.try_emplace(there.domain, r).first->second);
    if (there.kernel != mine.kernel) continue;
    ++sharing;
    CPU_OR(&cores, &cores, &there.cores);
  }
  std::vector<ProcessId> processes;
  for (const Place& there : all) processes.push_back(there.process);
  watch_ranks(mine.process, processes);
  const bool hook = yield_in_progress(false);
  int facts[2] = {sharing > CPU_COUNT(&cores), !hook};
  PMPI_Allreduce(MPI_IN_PLACE, facts, 2, MPI_INT, MPI_MAX, j.comm);
  j.courteous = j.policy.waiting == core::Waiting::courteous || (j.policy.waiting == core::Waiting::automatic && facts[0]);
  if (j.courteous) {
    // One way for the whole job: a rank in the blocking form and one in the non-blocking form never meet.
    j.nonblocking_waits = j.policy.courteous_by == core::CourteousBy::nonblocking || (j.policy.courteous_by == core::CourteousBy::automatic && facts[1]);
    if (!j.nonblocking_waits) yield_in_progress(true);
  }
  j.decides = j.policy.mode == core::Mode::apply || j.nonblocking_waits;
  j.may_idle = !j.nonblocking_waits && !j.policy.decides_alone();
  survey_clocks(j.clocks, j.rank, first_of);
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
  if (idle.state == state) idle_stop();
  forget_pending(state);
  unwatch(*state);
  if (j.world_state == state) j.world_state = nullptr;
  if (active.load()) {
    collect(*state);
    hear_last(*state);
    note_decisions(*state);
    retain_log(*state);
    {
      const JobLock lock;
      constexpr std::size_t kDecisionsKept = 256;
      if (state->leadership)
        for (auto& text : state->leadership->decisions)
          if (j.past_decisions.size() < kDecisionsKept) j.past_decisions.push_back(std::move(text));
    }
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

/// The profile's path as asked for: names filled in, absolute (programs change their directory).
std::string output_path(const Job& j) {
  std::string id;
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
    if (const char* value = std::getenv(name); value && *value && id.empty()) id = value;
  // Without a batch system: the launcher's process, which the ranks of a host have in common.
  if (id.empty()) id = std::to_string(getppid());
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
      case 'h': out += j.mine.host; break;
      case '%': out += '%'; break;
      default: (out += '%') += form[i];
    }
  }
  char folder[4096];
  if (!out.starts_with('/') && getcwd(folder, sizeof folder)) out = std::string(folder) + "/" + out;
  return out;
}

std::string command_line() {
  bool good = false;
  std::string text = read_text("/proc/self/cmdline", good);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

/// The head of the profile, as far as it is known at start.
void describe_job(Job& j) {
  profiles::JobInfo& info = j.mine.job;
  info.command_line = command_line();
  info.program = info.command_line.substr(0, info.command_line.find(' '));
  const std::time_t wall = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&wall));
  info.start = text;
  info.ranks = j.size;
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  PMPI_Get_library_version(version, &length);
  info.mpi_library = std::string(version).substr(0, std::string(version).find('\n'));
  std::replace(info.mpi_library.begin(), info.mpi_library.end(), '\t', ' ');
  j.mine.rank = j.rank;
  char domain[24];
  std::snprintf(domain, sizeof domain, "%016llx", static_cast<unsigned long long>(clock_domain()));
  j.mine.clock_domain = domain;
  // Before the clocks have been compared, nothing is known of those elsewhere.
  j.mine.clock_uncertainty = -1;
}

void take_frames(Job& j) {
  if (site_count() != j.mine.frames.size()) j.mine.frames = site_frames();
}

/// Brings this process's contribution up to date. The caller holds the lock.
void refresh(Job& j, bool finished) {
  profiles::Contribution& c = j.mine;
  idle_drain();
  j.queue.drain();
  c.job.wall_time_s = static_cast<double>(now() - j.started) * 1e-9;
  c.job.mode = j.policy.mode == core::Mode::apply ? "apply" : "observe";
  c.job.network_known = j.policy.network_given;
  c.job.network = j.policy.network;
  c.finished = finished;
  if (j.together) {
    c.clock_offset = j.clocks.offset;
    c.clock_uncertainty = j.clocks.uncertainty_now();
    c.clock_looks = j.clocks.looks;
  }
  c.decisions = j.past_decisions;
  for (const CommState* s = j.states; s; s = s->next)
    if (s->leadership) c.decisions.insert(c.decisions.end(), s->leadership->decisions.begin(), s->leadership->decisions.end());
  take_frames(j);
  while (static_cast<int>(c.warnings.size()) < warning_count()) c.warnings.emplace_back(warning_text(static_cast<int>(c.warnings.size())));
}

/// Writes a snapshot, live logs included. The caller holds the lock.
bool write_spool(Job& j, bool finished) {
  std::vector<profiles::LiveLog>& live = j.live;
  const Nanoseconds begin = now();
  refresh(j, finished);
  live.clear();
  for (const CommState* s = j.states; s; s = s->next)
    if (!s->log.empty() && !s->foreign && s->size > 1 && !s->world.empty())
      live.push_back({s->identity, s->size, s->rank, s->world[static_cast<std::size_t>(s->rank)], s->logged_from, s->log});
  const auto result = j.spool.write(j.mine, live);
  const Nanoseconds end = now();
  // While one rank writes, the others wait for it sooner or later: the shares of all add up. What making the two files
  // took is no measure of what the next write takes.
  constexpr Nanoseconds kAsIfMade = 50'000;
  j.spool_next = end + kPauseAfterWriting * (j.spool.made() ? end - begin : std::min(end - begin, kAsIfMade));
  if (!result && (j.rank == 0 || !j.together)) warn("%s", result.error().c_str());
  return static_cast<bool>(result);
}

void write_whole(Job& j, std::vector<profiles::Contribution> parts) {
  std::vector<std::string> never_ran;
  const auto result = profiles::write_file(j.output, [&](const profiles::Sink& sink) { profiles::write_profile(std::move(parts), sink, &never_ran); });
  std::string lines;
  for (const std::string& line : never_ran) lines += (lines.empty() ? "" : "; ") + line;
  if (!lines.empty()) warn("a rule's algorithm never ran: %s", lines.c_str());
  if (!result) warn("%s", result.error().c_str());
  else say(1, "profile written to %s", j.output.c_str());
  say(2, "schedules built: %d ahead of their plan, %d inside a call; exchanges planned: %llu", Executor::built_ahead.load(), Executor::built_inside.load(), static_cast<unsigned long long>(Executor::planned()));
}

/// Waits courteously for `done`; false if a rank has died that the others wait for (RankWait).
template <typename Done>
bool wait_until(Done done) {
  RankWait wait;
  while (!done())
    if (!wait.again()) return false;
  return true;
}

/// All ranks reach this point. What is known is on disk before a long wait: the launcher may end the job in it.
bool meet(Job& j, void (*meanwhile)(Job&)) {
  MPI_Request all_here = MPI_REQUEST_NULL;
  PMPI_Ibarrier(j.comm, &all_here);
  RankWait wait;
  for (int done = 0;;) {
    PMPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
    meanwhile(j);
    if (done) return true;
    if (wait.became_long() && !j.profile_gathered) {
      const JobLock lock;
      write_spool(j, false);
    }
    if (!wait.again()) return false;
  }
}

/// Everybody's share to rank 0, which writes the profile. False if a rank died before that.
bool gather_profile(Job& j) {
  const auto collect_all = [](Job& job_) {
    for (CommState* s = job_.states; s; s = s->next) collect(*s);
    sweep_outgoing();
  };
  if (!meet(j, collect_all)) return false;
  for (CommState* s = j.states; s; s = s->next) collect(*s), note_decisions(*s), retain_log(*s), s->log.clear();
  // A second barrier: nobody sends a profile before everybody has stopped looking for logs of any tag.
  retain_strays();
  drain_outgoing(now() + kDrainWait);
  if (!meet(j, [](Job&) { retain_strays(); })) return false;
  say(2, "announcements of communicators that are gone: %d", dropped_strays);
  if (j.retained_missed > 0) warn("%zu calls have no arrival patterns: more than is kept until the end", j.retained_missed);
  refresh(j, true);
  j.profile_gathered = true;
  bool whole = true;
  if (j.rank != 0) {
    std::string bytes;
    j.mine.serialize(bytes);
    MPI_Request sent = MPI_REQUEST_NULL;
    PMPI_Isend_c(bytes.data(), static_cast<MPI_Count>(bytes.size()), MPI_BYTE, 0, kFinalChannel, j.comm, &sent);
    whole = wait_until([&] {
      int done = 0;
      PMPI_Test(&sent, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  } else {
    std::vector<profiles::Contribution> parts;
    parts.push_back(std::move(j.mine));
    int missing = j.size - 1;
    while (missing > 0 && whole) {
      MPI_Message message;
      MPI_Status status;
      whole = wait_until([&] {
        int there = 0;
        PMPI_Improbe(MPI_ANY_SOURCE, kFinalChannel, j.comm, &there, &message, &status);
        return there != 0;
      });
      if (!whole) break;
      int size = 0;
      PMPI_Get_count(&status, MPI_BYTE, &size);
      std::string bytes(static_cast<std::size_t>(std::max(size, 0)), '\0');
      PMPI_Mrecv(bytes.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      profiles::Contribution part;
      if (profiles::Contribution::deserialize(bytes, part)) parts.push_back(std::move(part));
      --missing;
    }
    if (missing > 0) warn("%d ranks did not send their part of the profile", missing);
    write_whole(j, std::move(parts));
  }
  // Until the profile is there, the snapshots stay. Rank 0 may take a while for a large one.
  return meet(j, [](Job&) {}) && whole;
}

int on_end(MPI_Comm, int, void*, void*) {
  if (!active.exchange(false)) return MPI_SUCCESS;
  idle_stop();
  Job& j = job();
  try {
    if (j.together && gather_profile(j)) {
      j.spool.remove();
    } else if (!(j.profile_gathered && j.rank == 0)) {  // there, what rank 0 knew is in the profile that it wrote
      const JobLock lock;
      write_spool(j, true);
      if (j.together) warn("a rank ended before all of them had met in MPI_Finalize: latecomer recover %s", j.spool.directory().c_str());
    }
  } catch (...) {
    warn("out of memory while writing the profile");
  }
  return MPI_SUCCESS;
}

/// A process that ends without MPI_Finalize, or that used sessions only.
__attribute__((destructor)) void on_exit() {
  if (!active.exchange(false)) return;
  Job& j = job();
  if (j.pid != getpid()) return;  // a forked child
  halt_engine();
  try {
    write_spool(j, true);
  } catch (...) {
  }
}

/// What every kind of start has in common; false if this process is not to be observed.
bool begin_observing(Job& j, int rank, int size) {
  j.rank = rank;
  j.size = size;
  j.pid = getpid();
  j.environment = read_environment(rank == 0);
  if (j.environment.disable) return false;
  set_speaker(rank, size, j.environment.verbose);
  j.started = now();
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  j.mine.host = host;
  sites_start();
  j.used_contexts.assign(kContexts / 64, 0);
  j.used_contexts[0] = 1;  // MPI_COMM_WORLD's
  j.mine.patterns.job_of(size);
  j.output = output_path(j);
  describe_job(j);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_communicator_end, &j.keyval, nullptr);
  j.spool.begin(j.output + ".parts", rank);
  return true;
}

/// Observing without the others: what is known is each rank's own, and a command brings it together.
void stay_alone(Job& j, const char* why) {
  if (j.rank == 0) warn("%s: every rank observes by itself, nothing is dispatched%s; at the end: latecomer recover %s", why, j.environment.check ? ", so LATECOMER_CHECK compares nothing" : "", j.spool.directory().c_str());
}

void set_end(Job&) {
  static int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &keyval, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
}

std::mutex start_mutex;
bool began = false, ended_at_start = false;
int told_level = -1;  // the thread level that the program was told, where MPI grants more: the engine's

/// Before MPI is started: whether the policy asks for an engine. It comes from rank 0 later; a rank that cannot read it
/// here does without, and then all do.
bool engine_wanted() {
  const Environment environment = read_environment(false);
  const core::Policy* own = environment.disable ? nullptr : own_policy(environment).policy();
  return own && own->mode == core::Mode::apply && own->background_enabled;
}

/// The level that MPI_Init stands for.
int default_level() {
  const char* asked = std::getenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL");
  constexpr std::pair<const char*, int> kLevels[] = {{"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE}, {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED}, {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED}};
  for (const auto& [name, level] : kLevels)
    if (asked && std::strcmp(asked, name) == 0) return level;
  return MPI_THREAD_SINGLE;
}

/// More ranks than this machine has cores: MPI_Init itself would crawl. What holds for the job is decided in it.
void yield_during_init() {
  const char* size = std::getenv("PMI_SIZE");
  if (size && std::atol(size) > sysconf(_SC_NPROCESSORS_ONLN)) yield_in_progress(true);
}

/// Starts MPI: as the program asked, by `plain`, or at the level that the engine needs, by `init_thread`, and then tells it
/// what it would have been told.
template <typename InitThread, typename Plain>
int start_mpi(int required, int* provided, InitThread init_thread, Plain plain) {
  yield_during_init();
  int rc;
  if (required < MPI_THREAD_MULTIPLE && engine_wanted()) {
    int granted = MPI_THREAD_SINGLE;
    rc = init_thread(MPI_THREAD_MULTIPLE, &granted);
    if (rc == MPI_SUCCESS) told_level = std::min(granted, required);
    if (provided) *provided = told_level;
  } else {
    rc = plain();
  }
  if (rc == MPI_SUCCESS) start_job();
  return rc;
}

}  // namespace

CommState* state_of_any(MPI_Comm comm) {
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
  // Only the time-out: everything else comes from rank 0.
  const core::Policy* own = own_policy(j.environment).policy();
  const double timeout_s = (own ? *own : j.policy).roll_call_timeout_s;
  if (parent != MPI_COMM_NULL) {
    // Their MPI_COMM_WORLD is not their parents', whose profile has this name.
    j.spool.begin(j.output + ".spawned-" + std::to_string(getppid()) + ".parts", rank);
    stay_alone(j, "spawned processes");
  } else if (roll_call(rank, size, timeout_s)) {
    if (PMPI_Comm_create(MPI_COMM_WORLD, j.world_group, &j.comm) != MPI_SUCCESS) return;
    PMPI_Comm_set_errhandler(j.comm, MPI_ERRORS_RETURN);
    share_policy(j);
    if (j.policy.mode == core::Mode::off) {
      ended_at_start = true;
      yield_in_progress(false);
      return;
    }
    j.announces = j.policy.mode == core::Mode::apply && j.policy.wants_plans();
    j.rooted_waits = j.announces && j.policy.exchange == core::Exchange::epoch && j.policy.rooted_waits.value_or(!j.policy.rules.empty());
    if (j.policy.mode == core::Mode::apply) note_forced_rules(j);
    sites_depth(j.policy.sites_depth, j.policy.sites_python);
    if (!j.policy.spool) j.spool.begin("", rank);
    survey_hosts(j);
    if (j.policy.network_measure && size > 1) measure_network(j);
    if (j.policy.mode == core::Mode::apply && j.policy.background_enabled && size > 1) start_engine(level == MPI_THREAD_MULTIPLE);
    if (!j.policy.history.empty() && j.announces) share_history(j);
    j.together = true;
  }
  set_end(j);
  CommState* world = state_of(MPI_COMM_WORLD);
  if (world && j.together && size > 1) {
    world->context = kWorldContext;
    world->identity = profiles::kWorldIdentity;
    world->plan.install(j.history.plan);
    watch(*world);
    if (world->rank == 0) lead(*world);
  }
  j.world_state = world;
  if (rank == 0)
    say(1, "%s, %d ranks, %s%s, %zu rules, waiting %s%s, %d clock%s, output %s", j.policy.mode == core::Mode::apply ? "apply" : "observe", size,
        j.together ? "together" : "each rank alone", j.policy.exchange == core::Exchange::finalize ? ", exchange at the end" : "",
        j.policy.rules.size(), j.courteous ? "courteous" : "spinning", j.nonblocking_waits ? " in non-blocking forms" : "", j.clocks.domains,
        j.clocks.domains == 1 ? "" : "s", j.output.c_str());
  active.store(true, std::memory_order_release);
}

void Job::keep_plan(std::string text) {
  // What is kept is written with every snapshot and read again at the end. The last one is worth more than another early
  // one; those of MPI_COMM_WORLD, which a later run takes over, more than others.
  constexpr std::size_t kPlansKept = 256, kPlanBytes = 2 << 20;
  std::size_t bytes = text.size();
  for (const std::string& plan : mine.plans) bytes += plan.size();
  while (!mine.plans.empty() && (mine.plans.size() == kPlansKept || bytes > kPlanBytes)) {
    const auto other = std::find_if_not(mine.plans.rbegin(), mine.plans.rend(), [](const std::string& p) { return profiles::is_of_world(p); });
    const auto gone = other == mine.plans.rend() ? mine.plans.end() - 1 : other.base() - 1;
    bytes -= gone->size(), mine.plans.erase(gone);
  }
  mine.plans.push_back(std::move(text));
}

bool start_late() {
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
  j.threads = true;  // nobody told us
  PMPI_Comm_group(MPI_COMM_WORLD, &j.world_group);
  stay_alone(j, "MPI was started out of latecomer's sight");
  set_end(j);
  active.store(true, std::memory_order_release);
  return true;
}

void keep_on_disk(bool due, Nanoseconds at) {
  constexpr Nanoseconds kAtLeastEvery = 5'000'000'000;
  Job& j = job();
  if (due) {
    // Not left to the next snapshot, which may be long after the site was new: then a steady program would allocate.
    const JobLock lock;
    take_frames(j);
  }
  const bool first = j.spool_late == 0;
  if (at < j.spool_next || !j.spool.begun()) {
    j.spool_late = std::max(at, j.spool_next.load()) + kAtLeastEvery;
    return;
  }
  const JobLock lock;
  if (due || !first) write_spool(j, false);
  j.spool_late = now() + kAtLeastEvery;
}

namespace {

/// A session that was begun without MPI_Init. There is no MPI_COMM_WORLD, but its process set knows us.
void start_session(MPI_Session session) {
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
  active.store(true, std::memory_order_release);
}

/// Maybe from a signal's handler: what this thread or another was in the middle of is left alone, and the last snapshot stands.
void before_abort() noexcept {
  if (!active.load() || inside) return;
  try {
    std::unique_lock lock(job().mutex, std::defer_lock);
    if (job().threads && !lock.try_lock()) return;
    write_spool(job(), false);
  } catch (...) {
  }
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) const char* latecomer_preloaded_version() { return LATECOMER_VERSION; }

__attribute__((visibility("default"))) void latecomer_preloaded_edge(double fraction) {
  if (!active.load(std::memory_order_acquire) || !(fraction >= 0 && fraction <= 1)) return;
  engine_edge(fraction, common_now());
  const JobLock lock;
  job().edge_said = true;
  ++job().mine.edges;
  job().mine.edge_sum += fraction;
}

/// MPI_Pcontrol's first argument and whatever lies where a first double would.
LATECOMER_HIDDEN void latecomer_pcontrol(int level, double fraction) {
  if (level == 5711) latecomer_preloaded_edge(fraction);  // LATECOMER_EDGE
}

__attribute__((visibility("default"))) int latecomer_preloaded_flush() try {
  if (!active.load() || !job().spool.begun()) return 1;
  const KeepErrno keep;
  const JobLock lock;
  return write_spool(job(), false) ? 0 : 1;
} catch (...) {
  return 1;
}
}

// The Fortran 2008 binding goes past the C level here; ierror is optional.
LATECOMER_ENTRY(int, MPI_Init_thread, (int* argc, char*** argv, int required, int* provided)) {
  return start_mpi(required, provided, [&](int level, int* granted) { return next::MPI_Init_thread(argc, argv, level, granted); },
                   [&] { return next::MPI_Init_thread(argc, argv, required, provided); });
}
LATECOMER_ENTRY(int, MPI_Init, (int* argc, char*** argv)) {
  return start_mpi(default_level(), nullptr, [&](int level, int* granted) { return next::MPI_Init_thread(argc, argv, level, granted); },
                   [&] { return next::MPI_Init(argc, argv); });
}
LATECOMER_ENTRY(void, mpi_init_thread_f08_, (const int* required, int* provided, int* ierror)) {
  int rc = MPI_SUCCESS;
  start_mpi(*required, provided, [&](int level, int* granted) { return next::mpi_init_thread_f08_(&level, granted, &rc), rc; },
            [&] { return next::mpi_init_thread_f08_(required, provided, &rc), rc; });
  if (ierror) *ierror = rc;
}
LATECOMER_ENTRY(void, mpi_init_f08_, (int* ierror)) {
  int rc = MPI_SUCCESS;
  start_mpi(default_level(), nullptr, [&](int level, int* granted) { return next::mpi_init_thread_f08_(&level, granted, &rc), rc; },
            [&] { return next::mpi_init_f08_(&rc), rc; });
  if (ierror) *ierror = rc;
}
// No thread may be inside MPI when MPI_Finalize begins: MPICH then leaves locks behind (MPI 4.0, 11.2.2 forbids it).
LATECOMER_ENTRY(int, MPI_Finalize, (void)) {
  stop_engine();
  return next::MPI_Finalize();
}
LATECOMER_ENTRY(void, mpi_finalize_f08_, (int* ierror)) {
  stop_engine();
  next::mpi_finalize_f08_(ierror);
}
LATECOMER_ENTRY(int, MPI_Query_thread, (int* provided)) {
  const int rc = next::MPI_Query_thread(provided);
  if (rc == MPI_SUCCESS && told_level >= 0) *provided = told_level;
  return rc;
}
LATECOMER_ENTRY(void, mpi_query_thread_f08_, (int* provided, int* ierror)) {
  int rc = MPI_SUCCESS;
  next::mpi_query_thread_f08_(provided, &rc);
  if (rc == MPI_SUCCESS && told_level >= 0) *provided = told_level;
  if (ierror) *ierror = rc;
}
LATECOMER_ENTRY(int, MPI_Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session)) {
  const int rc = next::MPI_Session_init(info, errhandler, session);
  if (rc == MPI_SUCCESS) start_session(*session);
  return rc;
}
LATECOMER_ENTRY(void, mpi_session_init_f08_, (const MPI_Info* info, const MPI_Errhandler* errhandler, MPI_Session* session, int* ierror)) {
  int rc = MPI_SUCCESS;
  next::mpi_session_init_f08_(info, errhandler, session, &rc);
  if (rc == MPI_SUCCESS) start_session(*session);
  if (ierror) *ierror = rc;
}
// Whatever a program gives to MPI_Pcontrol goes on as it came: looked at on the way, in assembly, since a
// handler in C could not pass on arguments that it does not know.
LATECOMER_PASSING_ENTRY(MPI_Pcontrol, latecomer_pcontrol)

LATECOMER_ENTRY(int, MPI_Abort, (MPI_Comm comm, int code)) {
  before_abort();
  return next::MPI_Abort(comm, code);
}
LATECOMER_ENTRY(void, mpi_abort_f08_, (const MPI_Comm* comm, const int* code, int* ierror)) {
  before_abort();
  next::mpi_abort_f08_(comm, code, ierror);
}

}  // namespace latecomer::shim
