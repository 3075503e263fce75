// SPDX-License-Identifier: BSD-3-Clause
// The server of the roll call: one thread, one set of events, no write that waits.
#include "profiles/launch/roll_call.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sstream>

namespace latecomer::profiles {

namespace {

// Chosen: a rank answers a line at once, unless its host is stopped or crowded.
constexpr std::chrono::seconds kAnswer{5};
// Chosen: beyond, `run` takes no rank that speaks for itself.
constexpr int kMostRanks = 16'000'000;

std::string make_random_text() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return "";
  std::string out;
  for (const unsigned char byte : bytes)
    for (const int digit : {byte >> 4, byte & 15}) out += "0123456789abcdef"[digit];
  return out;
}

/// Of this host, at most eight: 127.0.0.1 first, for ranks beside this process.
std::vector<std::string> list_own_addresses() {
  std::vector<std::string> out = {"127.0.0.1"};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return out;
  for (const ifaddrs* one = all; one && out.size() < 8; one = one->ifa_next) {
    char text[INET_ADDRSTRLEN];
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if ((one->ifa_flags & IFF_LOOPBACK) == 0 && inet_ntop(AF_INET, &address->sin_addr, text, sizeof text))
      out.emplace_back(text);
  }
  freeifaddrs(all);
  return out;
}

}  // namespace

RollCall::RollCall() noexcept try {
  unsetenv(RollCallOffer::kVariable);  // of a `latecomer run` around this one
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Descriptor events(epoll_create1(EPOLL_CLOEXEC)), stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  socklen_t size = sizeof here;
  auto* address = reinterpret_cast<sockaddr*>(&here);
  if (listener.get() < 0 || events.get() < 0 || stop.get() < 0 || bind(listener.get(), address, size) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0 || getsockname(listener.get(), address, &size) != 0)
    return;
  for (const int fd : {listener.get(), stop.get()}) {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = fd;
    if (epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &wanted) != 0) return;
  }
  offer_ = {ntohs(here.sin_port), make_random_text(), make_random_text(), list_own_addresses()};
  if (offer_.name.empty() || offer_.secret.empty()) return;
  listener_ = std::move(listener);
  events_ = std::move(events);
  stop_ = std::move(stop);
  setenv(RollCallOffer::kVariable, offer_.text().c_str(), 1);
} catch (...) {  // no memory: the ranks use the process manager alone
}

RollCall::~RollCall() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void RollCall::start() noexcept try {
  if (listener_.get() < 0) return;
  // A connection for each rank. The launcher keeps its own limit.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  thread_ = std::thread([this] { serve_ranks(); });
} catch (...) {
  listener_ = Descriptor();  // the ranks are refused at once
}

/// Without memory, all connections end before a verdict, and each rank observes alone.
void RollCall::serve_ranks() noexcept {
  try {
    answer_ranks();
  } catch (...) {
  }
  listener_ = Descriptor();
  connections_.clear();
}

void RollCall::answer_ranks() {
  for (;;) {
    epoll_event came[64];
    const int n = epoll_wait(events_.get(), came, 64, connections_.empty() ? -1 : 250);
    if (n < 0 && errno != EINTR) return;
    for (int i = 0; i < n; ++i) {
      if (came[i].data.fd == stop_.get()) return;
      if (came[i].data.fd == listener_.get()) accept_connections();
      else read_connection(came[i].data.fd);
    }
    forget_old_connections();
  }
}

void RollCall::accept_connections() {
  for (;;) {
    Descriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // No descriptor is left for a rank, so there is no `yes`.
      if (errno == EMFILE || errno == ENFILE) listener_ = Descriptor();
      return;
    }
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = fd.get();
    const int number = fd.get();
    if (!send_roll_call_line(number, offer_.greeting()) ||
        epoll_ctl(events_.get(), EPOLL_CTL_ADD, number, &wanted) != 0)
      continue;
    connections_[number].fd = std::move(fd);
  }
}

void RollCall::read_connection(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  Connection& from = found->second;
  const bool open = from.lines.read_bytes(fd);
  for (auto line = from.lines.take_line(); line; line = from.lines.take_line())
    if (from.state == Connection::State::greeted) admit_rank(from, *line);
    else if (from.state == Connection::State::asked && *line == "ready") note_ready(from);
  if (open) return;
  if (from.state != Connection::State::greeted && from.state != Connection::State::answered)
    end_incomplete(jobs_[from.job]);
  connections_.erase(found);
}

void RollCall::admit_rank(Connection& from, const std::string& line) {
  std::istringstream words(line);
  std::string secret, name, build;
  int rank = -1, size = 0;
  words >> secret >> name >> rank >> size >> build;
  if (!words || secret != offer_.secret || size < 1 || size > kMostRanks || rank < 0 || rank >= size)
    return send_verdict(from, "no 0");
  Job& job = jobs_[name];
  if (job.over) return send_verdict(from, "no 0");
  if (job.ranks.empty()) {
    job.ranks.assign(static_cast<std::size_t>(size), -1);
    job.build = build;
  }
  from.job = name;
  from.rank = rank;
  from.state = Connection::State::here;
  const bool fits = job.ranks.size() == static_cast<std::size_t>(size) && job.build == build;
  if (!fits || job.ranks[static_cast<std::size_t>(rank)] >= 0) {
    from.job.clear();
    from.state = Connection::State::greeted;
    // A rank that has used a session declines, and says no reason: the others do.
    const bool declines = build.ends_with(kSessionMark), others_decline = job.build.ends_with(kSessionMark);
    const auto lowest = std::ranges::find_if(job.ranks, [](int fd) { return fd >= 0; }) - job.ranks.begin();
    std::string why = "rank " + std::to_string(rank) +
                      (fits ? " has come to latecomer run twice" : " is preloaded with another build of latecomer");
    if (declines != others_decline) why = describe_session(declines ? rank : static_cast<int>(lowest));
    const bool tells = others_decline && !declines;
    refuse_job(job, tells ? "" : why);
    return send_verdict(from, tells ? "no 1 " + why : "no 0");
  }
  job.ranks[static_cast<std::size_t>(rank)] = from.fd.get();
  if (++job.here < job.ranks.size()) return;
  job.asked = Clock::now();
  for (const int fd : job.ranks) {
    Connection& to = connections_.at(fd);
    to.state = Connection::State::asked;
    send_roll_call_line(fd, "here");  // a lost connection shows itself when it is read
  }
}

void RollCall::note_ready(Connection& from) {
  from.state = Connection::State::ready;
  Job& job = jobs_.at(from.job);
  if (++job.ready < job.ranks.size()) return;
  const std::vector<int> ranks = std::move(job.ranks);
  jobs_.erase(from.job);  // the step may run another MPI program
  for (const int fd : ranks) send_verdict(connections_.at(fd), "yes");
}

/// Other incomplete jobs of this size end, too: they may be parts of one job.
void RollCall::end_incomplete(Job& job) {
  const auto parted = [&](const auto& other) {
    return &other.second != &job && !other.second.over && other.second.here < other.second.ranks.size() &&
           other.second.ranks.size() == job.ranks.size() && other.second.build == job.build;
  };
  if (std::ranges::none_of(jobs_, parted)) return refuse_job(job, describe_missing(job));
  for (auto& other : jobs_)
    if (parted(other)) refuse_job(other.second, "");
  refuse_job(
      job,
      "some ranks cannot tell latecomer run that they are one job: the launcher has neither PMIx nor Slurm's steps, "
      "and they are on several hosts or have different parent processes");
}

/// The lowest rank that is here says why. Without a reason, nobody does.
void RollCall::refuse_job(Job& job, const std::string& why) {
  job.over = true;
  bool said = why.empty();
  for (const int fd : std::exchange(job.ranks, {}))
    if (fd >= 0) {
      send_verdict(connections_.at(fd), said ? "no 0" : "no 1 " + why);
      said = true;
    }
}

/// The connection stays open until the rank has read the line.
void RollCall::send_verdict(Connection& to, const std::string& verdict) {
  send_roll_call_line(to.fd.get(), verdict);
  shutdown(to.fd.get(), SHUT_WR);
  to.state = Connection::State::answered;
  to.since = Clock::now();
}

void RollCall::forget_old_connections() {
  const Clock::time_point now = Clock::now();
  for (auto& [name, job] : jobs_)
    if (!job.over && job.here == job.ranks.size() && now - job.asked > kAnswer)
      refuse_job(job, "a rank is here and does not answer latecomer run");
  std::erase_if(connections_, [&](const auto& one) {
    const Connection::State state = one.second.state;
    return (state == Connection::State::greeted || state == Connection::State::answered) &&
           now - one.second.since > 2 * kAnswer;
  });
}

std::string RollCall::describe_missing(const Job& job) {
  std::string out;
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
    if (job.ranks[rank] < 0 && ++count <= 4) out += (out.empty() ? "" : ", ") + std::to_string(rank);
  if (count == 0) return "a rank has left the roll call of latecomer run";
  if (count > 4) out += " and " + std::to_string(count - 4) + " more";
  return (count == 1 ? "rank " : "ranks ") + out + (count == 1 ? " is" : " are") +
         " not preloaded with this build of latecomer, or late, or latecomer run cannot be reached from there (policy "
         "key roll_call_timeout_s)";
}

}  // namespace latecomer::profiles
