// SPDX-License-Identifier: BSD-3-Clause
// The roll call between rooms, by the process manager's name service. The lowest rank of a room speaks for it, and
// publishes
// - here R: on entry. The speaker looks its own name up, to know that the service works.
// - room R: the ranks of the room, once the speaker has found `here 0` of its build. Then it waits for the verdict
//   without a limit. Without `here 0` in time, or answers of the service, `room R` says so, and the room waits no more.
// - verdict 0: from rank 0, in any case: yes if the rooms hold each rank of MPI_COMM_WORLD once.
// So a verdict "yes" means that all rooms wait for the verdict, and all of them read it.
//
// No rank knows how many rooms there are. A room publishes each run of its ranks under the lowest rank of the run. So
// the lowest rank that no run so far holds is the next such name, and rank 0 knows for which name to wait.
//
// The rooms are a tree of one level. The service is one process, which answers one request after the other. Further
// levels add requests, and no answer comes sooner. The more rooms wait, the less often each of them asks (Names). So
// waiting rooms do not delay rank 0.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "profiles/base/roll_call.hpp"
#include "shim/job/names.hpp"
#include "shim/job/roll_call.hpp"
#include "shim/log.hpp"
#include "shim/mpi/end_job.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/state/output.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

// The value that a room publishes in place of its ranks.
constexpr char kDeaf[] = "deaf", kLeft[] = "left";

/// A value that begins with the build.
std::string with_build(const std::string& text) { return roll_call_build() + "#" + text; }
/// The text behind the build in a value; nullptr if the value is of another build.
const char* skip_build(const char* value) {
  const char* end = std::strchr(value, '#');
  return end && std::string_view(value, static_cast<std::size_t>(end - value)) == roll_call_build() ? end + 1 : nullptr;
}
/// Whether the value is of a rank that declines.
bool declines(const char* value) {
  const std::string_view text = value;
  return text.substr(0, text.find('#')).ends_with(profiles::kSessionMark);
}

/// The ranks of a room, ascending, as values of `room`: by the first rank, runs FIRST.COUNT.STEP. "+" before all but
/// the first.
std::map<Rank, std::string> write_runs(const std::vector<Rank>& ranks) {
  std::map<Rank, std::string> out;
  for (std::size_t i = 0, end = 1; i < ranks.size(); i = end++) {
    const Rank step = end < ranks.size() ? ranks[end] - ranks[i] : 1;
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == step) ++end;
    const std::string run = std::to_string(ranks[i]) + "." + std::to_string(end - i) + "." + std::to_string(step);
    out[ranks[i]] = with_build((i > 0 ? "+" : "") + run);
  }
  return out;
}

/// Marks the ranks of a run. Returns false if one is outside, or marked already.
bool mark_run(const char* run, std::vector<bool>& held) {
  const auto size = static_cast<long>(held.size());
  long first, count, step;
  if (std::sscanf(run, "%9ld.%9ld.%9ld", &first, &count, &step) != 3 || first < 0 || count < 1 || count > size ||
      step < 1 || step > size || first + (count - 1) * step >= size)
    return false;
  while (count-- > 0) {
    const auto at = static_cast<std::size_t>(first + count * step);
    if (held[at]) return false;
    held[at] = true;
  }
  return true;
}

std::string describe_end() {
  return run_offers_roll_call() ? ", and latecomer run does not answer" : " (latecomer run would help)";
}
std::string describe_deaf() {
  return "the name service of " + describe_launcher() + " does not show a rank its own name" + describe_end();
}
std::string describe_missing(int rank, const Names& names, double timeout_s) {
  char why[400];
  std::snprintf(why, sizeof why,
                names.serves_many_jobs()
                    ? "rank %d did not answer through mpiexec -nameserver: it is on another host, or its parent is "
                      "not the launcher, or it is not preloaded with this build of latecomer, or it answers more "
                      "than %g s late (policy key roll_call_timeout_s)"
                    : "rank %d is not preloaded with this build of latecomer, or it answers more than %g s late "
                      "(policy key roll_call_timeout_s), or the name service of %s does not show it",
                rank, timeout_s, describe_launcher().c_str());
  return why;
}

/// The value of `here`. Ranks that observe alone take from rank 0 which job this is.
std::string write_identity() {
  const std::string& id = job_output().id.id;
  const bool plain =
      id.size() < 100 && id.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-") ==
                             std::string::npos;  // all process managers take it
  char key[24];
  std::snprintf(key, sizeof key, "%llx#", static_cast<unsigned long long>(job_output().id.key));
  return with_build(key + (plain ? id : ""));
}

/// The behaviour of the service.
enum class Service { good, lies, missing, deaf };
std::string describe_fault(Service service) {
  if (service == Service::lies)
    return "the name service of " + describe_launcher() + " answers names that nobody published" + describe_end();
  if (service == Service::missing) return describe_launcher() + " has no name service" + describe_end();
  return describe_deaf();
}

/// Publishes `here`, and tests the service by it.
Service test_service(Names& names, int rank, const std::string& here) {
  PortName value;
  if (!names.test_unknown_name(rank)) return Service::lies;
  if (!names.publish_name("here", rank, here)) return Service::missing;
  return names.look_up_name("here", rank, value) && here == value ? Service::good : Service::deaf;
}

/// On rank 0: whether the rooms hold each rank once.
bool hear_rooms(Names& names, RoomCall& call, const std::map<Rank, std::string>& own) noexcept try {
  constexpr std::size_t kMostMissing = 4;  // chosen, as in profiles/launch/roll_call.cpp
  std::vector<bool> held(static_cast<std::size_t>(call.size));
  for (const auto& [first, value] : own) mark_run(skip_build(value.c_str()), held);
  int rooms = 1;
  for (auto next = held.begin(); (next = std::find(next, held.end(), false)) != held.end();) {
    const auto lowest = static_cast<int>(next - held.begin());
    PortName value;
    const bool found = names.wait_for_name("room", lowest, call.deadline, value);
    const char* said = found ? skip_build(value) : nullptr;
    if (said && mark_run(said, held) && *next) {
      rooms += *said != '+';
      continue;
    }
    const bool deaf = said && std::strcmp(said, kDeaf) == 0, left = said && std::strcmp(said, kLeft) == 0;
    // If rank 0 itself has come too late for the room, rank 1 has said so, or has met rank 0.
    if (deaf) call.wrong.push_back(describe_deaf());
    else if (found && declines(value)) call.wrong.push_back(profiles::describe_session(lowest));
    else if (!left || lowest != 1) call.wrong.push_back(describe_missing(left ? 0 : lowest, names, call.timeout_s));
    if (deaf || left || call.wrong.size() == kMostMissing) return false;
    *next = true;
  }
  if (call.wrong.empty()) say(2, "the ranks met in %d rooms", rooms);
  return call.wrong.empty();
} catch (const std::exception&) {  // without memory
  return false;
}

/// Asks as another rank.
bool await_verdict(Names& names, RoomCall& call, const std::map<Rank, std::string>& own) {
  const int speaker = call.ranks.front();
  PortName found;
  const bool here = names.wait_for_name("here", 0, call.deadline, found);
  if (!here || !skip_build(found)) {
    names.publish_name("room", speaker, with_build(kLeft));
    if (speaker == 1 && !(here && declines(found))) call.wrong.push_back(describe_missing(0, names, call.timeout_s));
    return false;
  }
  // From here on, nothing may take memory.
  for (const auto& [first, value] : own) names.publish_name("room", first, value);
  PortName verdict;
  names.wait_for_name("verdict", 0, 0, verdict);
  // Rank 0 has read them before its verdict.
  for (const auto& [first, value] : own) names.unpublish_name("room", first, value);
  return std::strcmp(verdict, "yes") == 0;
}

}  // namespace

bool ask_rooms(RoomCall& call) noexcept try {
  const int speaker = call.ranks.front();
  const auto own = write_runs(call.ranks);
  const std::string here = write_identity();
  Names names(speaker == 0 ? 1 : call.size / static_cast<int>(call.ranks.size()));
  // Once rank 0 has published `here`, nothing may take memory before its verdict: all others wait for that.
  const Service service = test_service(names, speaker, here);
  bool yes = false;
  if (service == Service::good)
    yes = speaker != 0 ? await_verdict(names, call, own) : !job_world().sessions && hear_rooms(names, call, own);
  // Other ranks may see this one's names all the same.
  else if (speaker != 0) names.publish_name("room", speaker, with_build(kDeaf));
  const bool promised = service == Service::good || service == Service::deaf;  // others may have seen `here 0`
  if (speaker == 0 && !names.publish_name("verdict", 0, yes ? "yes" : "no") && promised) {
    warn("the name service fails in the roll call, and other ranks wait for its answer: the job ends");
    end_job(MPI_COMM_WORLD, MPI_ERR_OTHER);
  }
  // All others have read `here 0` before the verdict. The verdict stays until the job ends.
  if (yes) names.unpublish_name("here", speaker, here);
  if (speaker == 0 && service != Service::good) call.wrong.push_back(describe_fault(service));
  return yes;
} catch (const std::exception&) {  // without memory, before a promise
  return false;
}

void adopt_identity(int rank) {
  Names names(1);
  PortName value;
  if (!names.test_unknown_name(rank) || !names.look_up_name("here", 0, value)) return;
  const char* key = std::strchr(value, '#');
  const char* id = key ? std::strchr(key + 1, '#') : nullptr;
  if (!id) return;
  job_output().id.key = std::strtoull(key + 1, nullptr, 16);
  if (id[1] != '\0') job_output().id.id = id + 1;
}

}  // namespace latecomer::shim
