// SPDX-License-Identifier: BSD-3-Clause
// The background engine's thread.
#include "shim/dispatch/engine/engine.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <map>
#include <thread>
#include <utility>

#include "shim/log.hpp"
#include "shim/waiting/alive.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {
namespace {

struct Notice {
  std::uint64_t identity, n, plan_hash;
  std::int64_t count;
  std::int32_t algorithm, segments, pattern, root;
  std::uint8_t overlap, commutative, pad[6];
  core::Bytes element_bytes;
};
static_assert(sizeof(Notice) == 64);

Nanoseconds thread_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

class Engine {
 public:
  Engine(MPI_Comm comm, int ranks, core::Bytes bound)
      : comm_(comm), bound_(bound), sent_(static_cast<std::size_t>(ranks), 0), edges_(comm, ranks) {
    expect_notice();
    // Signals are the program's: none is handled here.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { loop(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void stop() {
    stopping_ = true;
    wake_.notify_one();
    thread_.join();
    // What the process has left behind is on its way: those it is for have yet to come. What it never came for is
    // dropped.
    for (auto& run : runs_) {
      if (run->left) run->running.run_until(job().courteous, [&] { return run->running.done(); });
      else run->running.abandon();
    }
    runs_.clear();
    take_last_notices();
  }

  /// At exit without MPI_Finalize: maybe from a signal's handler, in the middle of anything, so it takes no lock and
  /// waits for a second at most.
  void halt() {
    stopping_ = true;
    wake_.notify_all();
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    ++until.tv_sec;
    if (pthread_timedjoin_np(thread_.native_handle(), nullptr, &until) != 0) pthread_detach(thread_.native_handle());
  }

  void watch(std::shared_ptr<Watched> watched) {
    edges_.watch(watched);
    const std::lock_guard lock(mutex_);
    watched_[watched->identity] = std::move(watched);
  }
  void unwatch(const Watched& watched) {
    edges_.unwatch(watched);
    const std::lock_guard lock(mutex_);
    watched_.erase(watched.identity);
    std::erase_if(pending_, [&](const Notice& p) { return p.identity == watched.identity; });
  }
  void plan(Watched& watched, const core::Plan& plan, std::uint64_t hash) {
    auto copy = std::make_shared<const core::Plan>(plan);
    const auto own =
        std::find_if(plan.entries.begin(), plan.entries.end(), [](const core::PlanEntry& e) { return e.edge != 0; });
    if (own != plan.entries.end()) edges_.expect(watched, offsets_of(plan, own->pattern));
    const std::lock_guard lock(mutex_);
    watched.plan = std::move(copy), watched.plan_hash = hash;
    if (own != plan.entries.end()) kick();
  }

  int run(const std::shared_ptr<Watched>& watched, std::uint64_t n, const Executor::Key& key, const Operands& operands,
          const OwnPattern* own) {
    std::unique_ptr<Run> run = claim(watched, n, key, own);
    Run& r = *run;
    // A root in place whose part was begun as if it were not: its own block is where it belongs.
    char* input = static_cast<char*>(const_cast<void*>(operands.send));
    if (key.in_place && core::is_gather(key.algorithm->op))
      input = static_cast<char*>(operands.recv) + watched->rank * key.count;
    r.running.arrive(input, static_cast<char*>(operands.recv), MPI_BYTE, MPI_OP_NULL, Layout::bytes());
    const int rc =
        r.running.run_until(job().courteous, [&] { return r.running.foreground_done() && r.running.all_posted(); });
    if (rc != MPI_SUCCESS) r.running.abandon();
    const std::lock_guard lock(mutex_);
    watched->posted.store(n + 1, std::memory_order_release);
    r.left = true;
    if (rc != MPI_SUCCESS || r.running.done()) {
      recycle(std::move(run));
    } else {
      runs_.push_back(std::move(run));
      kick();
    }
    return rc;
  }

  void edge(double fraction, Nanoseconds at) {
    const Nanoseconds begin = iteration_began_;
    if (begin == 0 || !(fraction > 0) || said_.exchange(true)) return;
    edges_.say(begin + static_cast<Nanoseconds>(static_cast<double>(at - begin) / fraction), at);
  }

  std::optional<OwnPattern> pattern(const Watched& watched, int planned, Nanoseconds arrival) {
    std::shared_ptr<const core::Plan> plan;
    {
      const std::lock_guard lock(mutex_);
      plan = watched.plan;
    }
    said_ = false;
    return edges_.take(watched, plan ? offsets_of(*plan, planned) : std::span<const Nanoseconds>(), arrival);
  }

  void greet(std::span<const Rank> world) {
    for (const Rank r : world) edges_.greet(r);
    const std::lock_guard lock(mutex_);
    if (!used_) kick();
  }

  void iteration(Nanoseconds at) { iteration_began_.store(at, std::memory_order_relaxed); }

  EngineFigures figures() {
    const std::lock_guard lock(mutex_);
    EngineFigures out = figures_;
    out.patterns = edges_.patterns(), out.edge_messages = edges_.messages();
    return out;
  }

 private:
  struct Run final : Herald {
    Engine* engine = nullptr;
    std::shared_ptr<Watched> watched;
    std::uint64_t n = 0, plan_hash = 0;
    Executor::Key key;
    std::shared_ptr<Compiled> program;
    Running running;
    std::vector<char> scratch;
    std::vector<char> told;  // [rank]
    bool stepped = false;    // the engine's thread is at it, without the lock
    bool left = false;       // the process has been in the call and gone
    bool early = false;      // begun before it arrived

    core::Bytes scratch_bytes() const { return static_cast<core::Bytes>(program->scratch * key.element_bytes); }
    void before_message(Rank peer) override {
      char& known = told[static_cast<std::size_t>(peer)];
      if (!known) known = 1, engine->send_notice(*this, peer);
    }
  };
  struct Outgoing {
    Notice notice;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// Gives a lock back for as long as something runs.
  class Unlocked {
   public:
    explicit Unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) {}
    template <typename Function>
    void run(Function function) {
      lock_.unlock();
      function();
      lock_.lock();
    }

   private:
    std::unique_lock<std::mutex>& lock_;
  };

  /// Receives every notice that is on its way (UCX complains of messages that nobody received), then one from itself,
  /// so that none is expected any more and nothing has to be cancelled.
  void take_last_notices() {
    RankWait wait;
    int expected = 0;
    MPI_Request counting = MPI_REQUEST_NULL;
    std::vector<int> sent = sent_;
    for (std::size_t r = 0; r < sent.size(); ++r) sent[r] += edges_.sent()[r];
    if (PMPI_Ireduce_scatter_block(sent.data(), &expected, 1, MPI_INT, MPI_SUM, comm_, &counting) != MPI_SUCCESS)
      return;
    int counted = 0;
    while (!counted || received_ + edges_.received() < expected) {
      if (!counted) PMPI_Test(&counting, &counted, MPI_STATUS_IGNORE);
      {
        std::unique_lock lock(mutex_);
        if (take_notice(lock)) continue;
      }
      if (edges_.advance()) continue;
      if (!wait.again()) return;  // a rank has died: what is left behind is for MPI to sweep up
    }
    for (Outgoing& o : outgoing_)
      for (int done = o.request == MPI_REQUEST_NULL; !done;) PMPI_Test(&o.request, &done, MPI_STATUS_IGNORE);
    edges_.finish();
    PMPI_Sendrecv_c(&notice_, 0, MPI_BYTE, job().rank, kNoticeChannel, nullptr, 0, MPI_BYTE, MPI_PROC_NULL,
                    kNoticeChannel, comm_, MPI_STATUS_IGNORE);
    for (int done = 0; !done;) PMPI_Test(&notice_request_, &done, MPI_STATUS_IGNORE);
  }

  /// Under the lock: there is something to look at now.
  void kick() {
    used_ = kicked_ = true;
    wake_.notify_one();
  }

  /// The run of call n as the engine left it, or a new one. From here on the engine leaves call n alone.
  std::unique_ptr<Run> claim(const std::shared_ptr<Watched>& watched, std::uint64_t n, const Executor::Key& key,
                             const OwnPattern* own) {
    std::unique_lock lock(mutex_);
    if (!used_) kick();
    last_claim_ = now();
    watched->begun.store(n + 1, std::memory_order_relaxed);
    std::erase_if(pending_, [&](const Notice& p) { return p.identity == watched->identity && p.n <= n; });
    for (auto at = runs_.begin(); at != runs_.end(); ++at) {
      if ((*at)->watched != watched || (*at)->n != n || (*at)->left) continue;
      Run& mine = **at;  // stays where it is: nobody else claims it
      claimable_.wait(lock, [&] { return !mine.stepped; });
      std::unique_ptr<Run> run = std::move(*at);
      runs_.erase(at);
      if (run->running.background_done()) ++figures_.complete;
      return run;
    }
    Executor::Key plain = key;
    plain.in_place = plain.in_place && !core::is_gather(key.algorithm->op);
    if (own) plain.pattern = kOwn;
    return make(watched, n, plain, watched->plan.get(), own ? own->number : watched->plan_hash,
                own ? &own->pattern : nullptr);
  }

  /// Under the lock. `plan_hash`: of the plan that has the key's pattern; for a pattern of this call's own, its number.
  std::unique_ptr<Run> make(const std::shared_ptr<Watched>& watched, std::uint64_t n, const Executor::Key& key,
                            const core::Plan* plan, std::uint64_t plan_hash, const core::Pattern* own) {
    std::unique_ptr<Run> run;
    if (!idle_.empty()) run = std::move(idle_.back()), idle_.pop_back();
    else run = std::make_unique<Run>();
    run->engine = this;
    run->watched = watched, run->n = n, run->key = key, run->plan_hash = key.pattern < 0 && !own ? 0 : plan_hash;
    run->left = run->early = false;
    run->program = nullptr;
    if (own) run->program = Executor::build(watched->rank, watched->size, key, *own);
    for (auto& kept : kept_)
      if (!run->program && kept.key == key && kept.identity == watched->identity && kept.plan_hash == run->plan_hash &&
          kept.program) {
        run->program = std::move(kept.program);
        break;
      }
    if (!run->program) run->program = Executor::build(watched->rank, watched->size, key, plan);
    const std::size_t need = static_cast<std::size_t>(run->scratch_bytes()) + 64;
    if (run->scratch.size() < need) run->scratch.resize(need);
    run->told.assign(static_cast<std::size_t>(watched->size), 0);
    run->running.begin(*run->program, {comm_, watched->context, watched->world, job().rank}, run.get());
    run->running.give_scratch(run->scratch.data(), Layout::bytes());
    return run;
  }

  /// Under the lock.
  void recycle(std::unique_ptr<Run> run) {
    if (run->early) held_ -= run->scratch_bytes();
    if (run->key.pattern == kOwn) run->program.reset();  // nobody asks for it again
    constexpr std::size_t kIdle = 8;
    constexpr std::size_t kSmallScratch = 1 << 20;
    if (run->program) keep(*run);
    run->watched.reset();
    if (run->scratch.size() > kSmallScratch) std::vector<char>().swap(run->scratch);
    if (idle_.size() < kIdle) idle_.push_back(std::move(run));
  }

  /// Under the lock: its program, for another run of the same.
  void keep(Run& run) {
    constexpr std::size_t kPrograms = 64;
    Kept* place = nullptr;
    for (auto& kept : kept_)
      if (!kept.program && (!place || kept.key == run.key)) place = &kept;
    if (!place && kept_.size() < kPrograms) place = &kept_.emplace_back();
    if (!place) place = &kept_[next_victim_++ % kept_.size()];
    *place = {run.key, run.watched->identity, run.plan_hash, std::move(run.program)};
  }

  void send_notice(const Run& run, Rank peer) {
    const Executor::Key& k = run.key;
    send({run.watched->identity,
          run.n,
          run.plan_hash,
          k.count,
          core::index_of(k.algorithm),
          k.segments,
          k.pattern,
          k.root,
          k.overlap,
          k.commutative,
          {},
          k.element_bytes},
         run.watched->world[static_cast<std::size_t>(peer)], kOutgoing);
  }

  /// To a world rank. With `most` under way already: not at all, they do it themselves when they arrive.
  void send(const Notice& notice, Rank to, std::size_t most) {
    const std::lock_guard lock(notices_mutex_);
    Outgoing* free = nullptr;
    for (Outgoing& o : outgoing_) {
      int done = o.request == MPI_REQUEST_NULL;
      if (!done) PMPI_Test(&o.request, &done, MPI_STATUS_IGNORE);
      if (done) {
        free = &o;
        break;
      }
    }
    if (!free && outgoing_.size() < most) free = &outgoing_.emplace_back();
    if (!free) return;
    free->notice = notice;
    if (PMPI_Isend(&free->notice, sizeof(Notice), MPI_BYTE, to, kNoticeChannel, comm_, &free->request) != MPI_SUCCESS)
      free->request = MPI_REQUEST_NULL;
    else ++sent_[static_cast<std::size_t>(to)];
  }

  void expect_notice() {
    PMPI_Irecv_c(&notice_, sizeof notice_, MPI_BYTE, MPI_ANY_SOURCE, kNoticeChannel, comm_, &notice_request_);
  }

  /// The engine's thread, or nobody but the caller once it has ended. Under the lock, which is not held while MPI is
  /// asked: MPI has one of its own, for which its callers may queue for long where many threads are in it. False:
  /// nothing came.
  bool take_notice(std::unique_lock<std::mutex>& lock) {
    int there = 0;
    Notice notice;
    Unlocked(lock).run([&] {
      if (PMPI_Test(&notice_request_, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there) return;
      notice = notice_;
      expect_notice();
    });
    if (!there) return false;
    ++received_, ++figures_.notices;
    const auto found = watched_.find(notice.identity);
    if (found == watched_.end() || notice.n < found->second->begun.load(std::memory_order_acquire)) return true;
    if (std::any_of(pending_.begin(), pending_.end(),
                    [&](const Notice& p) { return p.identity == notice.identity && p.n == notice.n; }))
      return true;
    if (std::any_of(runs_.begin(), runs_.end(),
                    [&](const auto& r) { return r->watched->identity == notice.identity && r->n == notice.n; }))
      return true;
    constexpr std::size_t kPending = 1024;
    if (pending_.size() < kPending) pending_.push_back(notice);
    return true;
  }

  /// Under the lock: begins what can be begun.
  void begin_pending() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < pending_.size(); ++i) {
        const Notice notice = pending_[i];
        const auto found = watched_.find(notice.identity);
        const bool stale = found == watched_.end() || notice.n < found->second->begun.load(std::memory_order_acquire);
        if (!stale && !startable(found->second, notice)) continue;
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i--));
        if (stale) continue;
        begin_early(found->second, notice);
        any = true;
      }
    }
  }

  bool startable(const std::shared_ptr<Watched>& watched, const Notice& notice) {
    std::uint64_t next = watched->posted.load(std::memory_order_acquire);
    for (bool further = true; further;) {
      further = false;
      for (const auto& r : runs_)
        if (r->watched == watched && r->n == next && !r->left && r->running.all_posted()) ++next, further = true;
    }
    if (notice.n != next) return false;
    if (notice.pattern == kOwn && !edges_.frozen(*watched, notice.plan_hash)) return false;
    if (notice.pattern >= 0 && (!watched->plan || watched->plan_hash != notice.plan_hash ||
                                notice.pattern >= static_cast<std::int32_t>(watched->plan->patterns.size())))
      return false;
    return held_ < bound_;
  }

  void begin_early(const std::shared_ptr<Watched>& watched, const Notice& notice) {
    Executor::Key key;
    key.algorithm = &core::algorithm_at(notice.algorithm);
    key.count = notice.count, key.element_bytes = notice.element_bytes;
    key.segments = notice.segments, key.pattern = notice.pattern, key.root = notice.root;
    key.overlap = notice.overlap != 0, key.commutative = notice.commutative != 0;
    std::optional<core::Pattern> own;
    if (notice.pattern == kOwn) own = edges_.frozen(*watched, notice.plan_hash);
    if (notice.pattern == kOwn && !own) return;  // the process has just taken it, and is about to do it all
    std::unique_ptr<Run> run = make(watched, notice.n, key, watched->plan.get(),
                                    own ? notice.plan_hash : watched->plan_hash, own ? &*own : nullptr);
    run->early = true;
    held_ += run->scratch_bytes();
    if (held_ > bound_) {
      recycle(std::move(run));  // the process will do it when it is there
      return;
    }
    ++figures_.begun;
    runs_.push_back(std::move(run));
  }

  void loop() {
    // A poll that finds nothing costs as much as a timer: measured 2 to 5 us on a real machine, 20 to 50 us on a
    // virtual one. It may take this from the program's core. So the polls are rationed by their cost on this machine.
    // While messages move, the engine polls again at once.
    constexpr Nanoseconds kShortest = 50'000, kIdle = 500'000, kLongest = 20'000'000;
    constexpr double kShare = 0.004;  // of the time
    prctl(PR_SET_TIMERSLACK, 1000);
    Nanoseconds pause = kIdle, spent = thread_time();
    double cost = 20'000;  // ns of a look in vain, the timer included
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (!used_) {  // no call of ours was ever dispatched: nothing can come
        wake_.wait_for(lock, std::chrono::milliseconds(250), [&] { return used_ || stopping_; });
        continue;
      }
      const unsigned progress = progress_of_thread();
      bool moved = false, active = edges_.open();
      while (take_notice(lock)) moved = true;
      Unlocked(lock).run([&] {
        while (edges_.advance()) moved = true;
      });
      begin_pending();
      for (auto at = runs_.begin(); at != runs_.end();) {
        Run& r = **at;
        bool step = false, over = r.running.background_done();
        if (!over) {
          r.stepped = true;
          Unlocked(lock).run([&] { over = r.running.step(step) != MPI_SUCCESS || r.running.background_done(); });
          r.stepped = false;
          claimable_.notify_all();
        }
        moved = moved || step;
        if (over && r.left) {
          auto run = std::move(*at);
          at = runs_.erase(at);
          recycle(std::move(run));
          continue;
        }
        active = active || !over;
        ++at;
      }
      figures_.busy = thread_time();
      if (moved || (active && progress_of_thread() != progress)) {
        pause = kShortest;
        spent = figures_.busy;
        lock.unlock();
        sched_yield();
        lock.lock();
        continue;
      }
      cost += (static_cast<double>(figures_.busy - spent) - cost) / 16;
      spent = figures_.busy;
      // The longer the process has been away, the less the delay of a poll matters.
      const auto rationed = static_cast<Nanoseconds>(cost / kShare);
      const Nanoseconds idle =
          std::clamp<Nanoseconds>(std::max(rationed, (now() - last_claim_) / 100), kIdle, kLongest);
      pause = active ? std::min(2 * pause, idle) : idle;
      wake_.wait_for(lock, std::chrono::nanoseconds(pause), [&] { return kicked_ || stopping_; });
      kicked_ = false;
    }
  }

  struct Kept {
    Executor::Key key;
    std::uint64_t identity = 0, plan_hash = 0;
    std::shared_ptr<Compiled> program;  // none while a run has it
  };
  static constexpr std::size_t kOutgoing = 4096;
  /// The key of a schedule whose pattern is its call's own.
  static constexpr int kOwn = -2;

  static std::span<const Nanoseconds> offsets_of(const core::Plan& plan, int pattern) {
    if (pattern < 0) return {};
    return plan.patterns[static_cast<std::size_t>(pattern)];
  }

  MPI_Comm comm_;
  const core::Bytes bound_;
  std::mutex mutex_;
  std::condition_variable wake_, claimable_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  bool used_ = false, kicked_ = false;
  std::map<std::uint64_t, std::shared_ptr<Watched>> watched_;
  std::list<std::unique_ptr<Run>> runs_;  // begun early and not claimed, or left behind
  std::vector<std::unique_ptr<Run>> idle_;
  std::vector<Kept> kept_;
  std::size_t next_victim_ = 0;
  std::vector<Notice> pending_;
  core::Bytes held_ = 0;
  Nanoseconds last_claim_ = 0;
  std::atomic<Nanoseconds> iteration_began_{0};
  std::atomic<bool> said_{false};  // since the last call with a pattern of its own
  Notice notice_{};
  MPI_Request notice_request_ = MPI_REQUEST_NULL;
  std::mutex notices_mutex_;
  std::list<Outgoing> outgoing_;
  std::vector<int> sent_;  // notices, by world rank
  Edges edges_;
  int received_ = 0;
  EngineFigures figures_;
};

Engine* engine = nullptr;  // from start_engine to stop_engine

}  // namespace

bool engine_runs() { return engine != nullptr; }

void start_engine(bool granted) {
  Job& j = job();
  int all = granted;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, j.comm);
  if (!all) {
    if (j.rank == 0)
      warn("MPI_THREAD_MULTIPLE is not to be had on every rank: background algorithms run in the foreground");
    j.policy.background_enabled = false;
    return;
  }
  if (PMPI_Comm_create(MPI_COMM_WORLD, j.world_group, &j.engine_comm) != MPI_SUCCESS) return;
  PMPI_Comm_set_errhandler(j.engine_comm, MPI_ERRORS_RETURN);
  count_progress();
  engine = new Engine(j.engine_comm, j.size, j.policy.background_max_buffer_mib << 20);
}

void stop_engine() noexcept {
  Engine* const ending = std::exchange(engine, nullptr);
  if (!ending) return;
  {
    // Attribute callbacks of MPI_Finalize may still call collectives: these run in the foreground.
    const JobLock lock;
    for (CommState* s = job().states; s; s = s->next) s->watched.reset();
  }
  ending->stop();
  const EngineFigures f = ending->figures();
  delete ending;
  say(1,
      "background engine: %llu notices, %llu calls begun before their process came, %llu of them complete by then, "
      "%llu patterns of single calls, %llu messages for them, %.3f ms of processor time",
      static_cast<unsigned long long>(f.notices), static_cast<unsigned long long>(f.begun),
      static_cast<unsigned long long>(f.complete), static_cast<unsigned long long>(f.patterns),
      static_cast<unsigned long long>(f.edge_messages), static_cast<double>(f.busy) / 1e6);
}

void halt_engine() noexcept {
  if (engine) engine->halt();
  engine = nullptr;
}

void watch(CommState& state) {
  if (!engine || !state.usable() || state.size < 2) return;
  auto watched = std::make_shared<Watched>();
  watched->identity = state.identity, watched->context = state.context, watched->size = state.size,
  watched->rank = state.rank, watched->world = state.world;
  watched->begun = watched->posted = state.sequence.next_number();
  state.watched = watched;
  engine->watch(std::move(watched));
  if (!state.plan.plan().empty()) engine_plan(state);
}

void unwatch(CommState& state) {
  if (engine && state.watched) engine->unwatch(*state.watched);
  state.watched.reset();
}

void engine_plan(CommState& state) {
  if (engine && state.watched) engine->plan(*state.watched, state.plan.plan(), state.plan.hash());
}

void engine_edge(double fraction, Nanoseconds at) {
  if (engine) engine->edge(fraction, at);
}
std::optional<OwnPattern> engine_pattern(CommState& state, int planned, Nanoseconds arrival) {
  return engine ? engine->pattern(*state.watched, planned, arrival) : std::nullopt;
}
void engine_greet(std::span<const Rank> world) {
  if (engine) engine->greet(world);
}
void engine_iteration(Nanoseconds at) {
  if (engine) engine->iteration(at);
}

int run_with_engine(CommState& state, std::uint64_t n, const Executor::Key& key, const Operands& operands,
                    const OwnPattern* own) {
  return engine->run(state.watched, n, key, operands, own);
}

}  // namespace latecomer::shim
