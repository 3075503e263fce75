// SPDX-License-Identifier: BSD-3-Clause
// The start and the end of the engine. This file must not serve calls.
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "shim/engine/background_engine.hpp"
#include "shim/log.hpp"
#include "shim/mpi/file_progress.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"
#include "shim/waiting/alive.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {

BackgroundEngine* engine = nullptr;

BackgroundEngine::BackgroundEngine(MPI_Comm comm, int ranks, core::Bytes bound)
    : comm_(comm), bound_(bound), notices_(comm, ranks), edges_(comm, ranks) {
  // The program's threads handle the signals: this thread blocks all.
  struct BlockSignals {
    sigset_t all, before;
    BlockSignals() {
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } const blocked;
  thread_ = std::thread([this] { run_thread(); });
}

void BackgroundEngine::end_thread() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake_.notify_one();
  thread_.join();
}

void BackgroundEngine::stop() {
  end_thread();
  // Complete the messages of calls that the process has left: their receivers arrive later. Drop the runs of calls that
  // the process never entered.
  for (auto& run : runs_) {
    if (run->left) run->running.run_until(job_rules().courteous, [&] { return run->running.done(); });
    else run->running.drop_messages();
  }
  runs_.clear();
  take_last_notices();
}

void BackgroundEngine::halt() {
  stopping_ = true;
  wake_.notify_all();
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  ++until.tv_sec;
  if (pthread_timedjoin_np(thread_.native_handle(), nullptr, &until) != 0) pthread_detach(thread_.native_handle());
}

void BackgroundEngine::take_last_notices() {
  RankWait wait;
  int expected = 0;
  MPI_Request counting = MPI_REQUEST_NULL;
  edges_.stop_sending();  // a message that is sent after the count is never received
  std::vector<int> sent = notices_.sent();
  for (std::size_t r = 0; r < sent.size(); ++r) sent[r] += edges_.sent()[r];
  if (PMPI_Ireduce_scatter_block(sent.data(), &expected, 1, MPI_INT, MPI_SUM, comm_, &counting) != MPI_SUCCESS) return;
  int counted = 0;
  while (!counted || received_ + edges_.received() < expected) {
    if (!counted) PMPI_Test(&counting, &counted, MPI_STATUS_IGNORE);
    {
      std::unique_lock lock(mutex_);
      if (take_notice(lock)) continue;
    }
    if (edges_.take_message()) continue;
    if (!wait.again()) return;  // a rank has died: MPI cleans up the messages
  }
  edges_.finish_sends();
  notices_.finish_messages();
}

bool engine_runs() { return engine != nullptr; }

void start_engine(bool granted) {
  std::unique_ptr<BackgroundEngine> made;
  std::string why = "no communicator is left";
  if (PMPI_Comm_create(MPI_COMM_WORLD, job_world().group, &job_world().engine_comm) == MPI_SUCCESS) try {
      PMPI_Comm_set_errhandler(job_world().engine_comm, MPI_ERRORS_RETURN);
      made = std::make_unique<BackgroundEngine>(job_world().engine_comm, job_world().size,
                                                job_rules().policy.background_max_buffer_mib << 20);
    } catch (const std::exception& e) {
      why = e.what();
    }
  // Whether all ranks have the thread level, and the first rank without an engine.
  int facts[2] = {granted, made ? job_world().size : job_world().rank};
  PMPI_Allreduce(MPI_IN_PLACE, facts, 2, MPI_INT, MPI_MIN, job_world().comm);
  if (facts[0] && facts[1] == job_world().size) {
    count_progress();
    keep_files_to_program();
    engine = made.release();
    engine->begin_receiving();
    return;
  }
  if (!facts[0] && job_world().rank == 0)
    warn("MPI_THREAD_MULTIPLE is not to be had on every rank: background algorithms run in the foreground");
  else if (facts[0] && job_world().rank == facts[1])
    warn("no thread can be made on this rank (%s): background algorithms run in the foreground on all ranks",
         why.c_str());
  job_rules().policy.background_enabled = false;
  job_world().engine_comm = MPI_COMM_NULL;
}

void stop_engine() noexcept {
  BackgroundEngine* const ending = std::exchange(engine, nullptr);
  if (!ending) return;
  {
    // Attribute callbacks of MPI_Finalize may still call collectives: these run in the foreground.
    const JobLock lock;
    for (CommState* s = lock->states; s; s = s->next) s->dispatch.watched.reset();
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

}  // namespace latecomer::shim
