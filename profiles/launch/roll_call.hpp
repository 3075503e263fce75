// SPDX-License-Identifier: BSD-3-Clause
// Answers the ranks of a job that ask whether all of them are here (profiles/base/roll_call.hpp). Knows nothing else of
// the job, and ends no process.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "profiles/base/descriptor.hpp"
#include "profiles/base/roll_call.hpp"

namespace latecomer::profiles {

/// Listens from its construction on, and puts the offer into the environment. Without a socket, it offers nothing. A
/// thread answers. The ranks of a JOB get one verdict; after `no`, every further rank of that job gets `no`, too.
class RollCall {
 public:
  RollCall() noexcept;
  ~RollCall();
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  /// Call this after the launcher was forked, with the signals blocked that this process waits for.
  void start() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    enum class State { greeted, here, asked, ready, answered };
    Descriptor fd;
    RollCallLines lines;
    State state = State::greeted;
    Clock::time_point since = Clock::now();  ///< of `greeted` and `answered`
    std::string job;
    int rank = -1;
  };
  struct Job {
    std::string build;
    std::vector<int> ranks;  ///< their connections, or -1
    std::size_t here = 0, ready = 0;
    Clock::time_point asked;
    bool over = false;  ///< with `no`
  };

  void serve_ranks() noexcept;
  void answer_ranks();
  void accept_connections();
  void read_connection(int fd);
  void admit_rank(Connection& from, const std::string& line);
  void note_ready(Connection& from);
  void end_incomplete(Job& job);
  void refuse_job(Job& job, const std::string& why);
  void send_verdict(Connection& to, const std::string& verdict);
  void forget_old_connections();
  static std::string describe_missing(const Job& job);

  RollCallOffer offer_;
  Descriptor listener_, events_, stop_;
  std::map<int, Connection> connections_;  ///< by descriptor
  std::map<std::string, Job> jobs_;
  std::thread thread_;
};

}  // namespace latecomer::profiles
