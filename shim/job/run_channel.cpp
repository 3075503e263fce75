// SPDX-License-Identifier: BSD-3-Clause
// The rank's side of the channel that `latecomer run` offers for the roll call (profiles/base/roll_call.hpp). A rank
// may leave until it says that it is ready. `run` says yes only when all ranks are ready. From then on the rank waits
// as long as `run` lives: if `run` ends there, it takes its launcher along, and this rank cannot know what others
// heard.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "profiles/base/descriptor.hpp"
#include "profiles/base/roll_call.hpp"
#include "shim/job/output.hpp"
#include "shim/job/roll_call.hpp"
#include "shim/log.hpp"
#include "shim/mpi/end_job.hpp"
#include "shim/mpi/entry.hpp"

namespace latecomer::shim {
namespace {

using profiles::Descriptor;
using profiles::RollCallOffer;
using profiles::send_roll_call_line;

/// A connection, perhaps to another program that listens at the same port.
struct RunConnection {
  Descriptor fd = Descriptor();
  profiles::RollCallLines lines;
};

/// Waits for events at the descriptors. deadline 0: without limit. Returns false at the deadline.
bool wait_for_events(std::vector<pollfd>& wanted, Nanoseconds deadline) {
  for (;;) {
    const Nanoseconds left = deadline == 0 ? 0 : deadline - now();
    if (deadline != 0 && left <= 0) return false;
    const int n = poll(wanted.data(), wanted.size(), deadline == 0 ? -1 : static_cast<int>(left / 1'000'000 + 1));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

/// Tries all addresses at once: some of them may belong to this host, too, or lead nowhere. The greeting tells.
RunConnection connect_to_run(const RollCallOffer& offer, Nanoseconds deadline) {
  std::vector<RunConnection> tried;
  for (const std::string& address : offer.addresses) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(offer.port));
    if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) continue;
    Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd.get() < 0) continue;
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS)
      tried.push_back({std::move(fd), {}});
  }
  std::vector<pollfd> wanted;
  while (!tried.empty()) {
    wanted.clear();
    for (const RunConnection& one : tried) wanted.push_back({one.fd.get(), POLLIN, 0});
    if (!wait_for_events(wanted, deadline)) break;
    for (std::size_t i = tried.size(); i-- > 0;) {
      if (wanted[i].revents == 0) continue;
      const bool open = tried[i].lines.read_bytes(tried[i].fd.get());
      const auto line = tried[i].lines.take_line();
      if (line && *line == offer.greeting()) return std::move(tried[i]);
      if (line || !open) tried.erase(tried.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return {};
}

/// The next line of `run`; "": the connection is lost, or the deadline has come.
std::string hear_line(RunConnection& run, Nanoseconds deadline) {
  for (bool open = true;;) {
    if (const auto line = run.lines.take_line()) return *line;
    std::vector<pollfd> wanted = {{run.fd.get(), POLLIN, 0}};
    if (!open || !wait_for_events(wanted, deadline)) return "";
    open = run.lines.read_bytes(run.fd.get());
  }
}

/// Then the kernel notices within 20 s that the other host is gone.
void watch_host(int fd) {
  const auto set = [fd](int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

bool run_offers_roll_call() { return std::getenv(RollCallOffer::kVariable) != nullptr; }

RunAnswer ask_run(int rank, int size, Nanoseconds deadline) {
  const char* offered = std::getenv(RollCallOffer::kVariable);
  const auto offer = profiles::parse_roll_call_offer(offered ? offered : "");
  if (!offer) return {};
  RunConnection run = connect_to_run(*offer, deadline);
  char here[256];
  std::snprintf(here, sizeof here, "%s %016llx %d %d %s", offer->secret.c_str(),
                static_cast<unsigned long long>(job_signature()), rank, size, roll_call_build().c_str());
  if (run.fd.get() < 0 || !send_roll_call_line(run.fd.get(), here)) return {};
  std::string line = hear_line(run, deadline);
  if (line == "here") {
    watch_host(run.fd.get());
    if (!send_roll_call_line(run.fd.get(), "ready")) return {};
    line = hear_line(run, 0);
    if (line.empty()) {
      warn("latecomer run ended in the roll call, and the ranks may have heard different answers: the job ends");
      end_job(MPI_COMM_WORLD, MPI_ERR_OTHER);
    }
  } else if (line.empty()) {
    // Leave: `run` then answers no to all others. This rank may still read the reason.
    constexpr Nanoseconds kFarewell = 1'000'000'000;
    shutdown(run.fd.get(), SHUT_WR);
    do line = hear_line(run, now() + kFarewell);
    while (line == "here");
  }
  if (line == "yes") return {RunAnswer::yes, ""};
  if (!line.starts_with("no ")) return {};
  return {RunAnswer::no, line.starts_with("no 1 ") ? line.substr(5) : ""};
}

}  // namespace latecomer::shim
